"""The client: one conversation with a broker, asynchronous and, wrapped, synchronous.

``protocol`` is the conversation without I/O: bytes in, happenings out. ``aio``
gives it a socket, time and reconnection, ``stream`` is one subscription's
notifications, ``sync`` is the same client for programs without a loop. ``holding``
knows what is subscribed to and how far it was told, ``confirming`` and ``parking``
serve durable sessions, ``handle`` and ``telling`` events that last. People
reach all of it as ``kbn.connect`` and ``kbn.connect_sync``.
"""
