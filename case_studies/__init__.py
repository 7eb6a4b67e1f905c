"""Programs that a newcomer starts in one command, and that are worth keeping afterwards.

``served`` runs a real broker in a process of its own, ``pace`` lets told time run as
fast as one likes, ``review`` reads the history again under other subscriptions. The
studies themselves are packages: ``python -m case_studies.weather`` and
``python -m case_studies.dynamic_logging``.
"""
