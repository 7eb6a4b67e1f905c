"""Does a notification satisfy what a subscriber asked?

``naive`` is the definition: slow, obvious, read aloud. Everything faster (the
index, SQL, Spark) and everything that reasons about it (covering, the tree) is
held equal to it by tests. ``explain`` tells a person what ``naive`` decided.
One file per operator family; ``covering`` mirrors the names.
"""
