"""The compliance suite: what every store promises, stated once.

``histories`` makes consistent histories from a seed, ``suite`` is the tests (methods
that take an open, empty store), ``crash`` a child process that is killed while it
appends. ``tests/datastore`` runs them for every engine.
"""
