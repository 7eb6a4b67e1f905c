"""The broker's brain: stimuli in, instructions out, nothing else.

``state`` is the one door; ``publishing``, ``subscribing``, ``sessions``,
``uplink`` and ``inquiry`` are the rooms behind it. No socket, clock, file or
randomness lives here: a whole tree of brokers runs in one process under a fake
clock, and every fault can be replayed from a seed.
"""
