"""Turtle files shipped with KBN, and the generators that write them."""
