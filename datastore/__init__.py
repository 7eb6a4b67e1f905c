"""The history: what was published, kept.

``store`` is the interface and its promises, ``query`` what can be asked; ``memory`` is
the reference, ``sql`` and ``delta`` keep on disk; ``factory`` opens a store by its URL;
``testing`` is the suite they all pass.
"""
