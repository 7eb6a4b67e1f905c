"""Severe weather: who is told of a storm depends on where it comes from.

``places`` is the map, ``bulletins`` what is published, ``storms`` and ``alerts`` where
bulletins come from, ``subscribers`` who asks what, ``broadcast`` the way over a broker,
``view`` and ``picture`` what a person sees. ``python -m case_studies.weather`` runs it.
"""
