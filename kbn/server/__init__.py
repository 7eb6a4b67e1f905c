"""The only asyncio and sockets of the broker: a thin shell around ``kbn.broker``.

``run`` puts a broker together; ``shell`` performs instructions; ``listener``,
``session`` and ``legacy`` are the three kinds of connections; ``config``,
``auth``, ``logs`` and ``http`` are for the operator. Nothing here decides what
a packet means.
"""
