"""Wines of the world: colour, body, grape, region."""
