"""Who asked for what, and what of it must be asked of the master.

``table`` holds subscribers and their units over the predicate index; ``upward``
compares the maximal filters before and after a change; ``siena`` knows what an
original Siena master would misread. Pure: no links, no bytes, no clock.
"""
