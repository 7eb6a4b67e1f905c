"""What is known: ontologies, read and reasoned over once, then only looked up.

``hierarchy`` (a low layer, pure) is all that matching and covering ever see.
Above it: ``request`` says what to build, ``build`` has a ``worker`` process do it
(``loader``, ``reason``, ``closure``, ``builder``; the only places that know rdflib)
or finds it in the ``cache``, and ``library`` keeps the files of a data directory.
"""
