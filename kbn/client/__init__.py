"""The client: one conversation with a broker, asynchronous and, wrapped, synchronous.

``protocol`` is the conversation without I/O: bytes in, happenings out. ``aio``
gives it a socket, time and reconnection, ``stream`` is one subscription's
notifications, ``sync`` is the same client for programs without a loop. People
reach all of it as ``kbn.connect`` and ``kbn.connect_sync``.
"""
