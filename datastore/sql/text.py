"""Text that every engine can hold, in an order no engine changes.

PostgreSQL refuses U+0000 and some of SQLite's functions stop at it, so U+0000
becomes U+0001 U+0001 and U+0001 becomes U+0001 U+0002. Law: the code is free of
prefixes and keeps order, so ``=``, ``<`` and prefix hold of escaped strings exactly
when they hold of the strings. Suffix and substring may hold of too many, and only
where the operand starts with one of the first three characters (``is_blurred``).
"""

from __future__ import annotations

_BLURRED = ("\x00", "\x01", "\x02")


def escape(text: str) -> str:
    """The text as a column holds it."""
    if "\x00" in text or "\x01" in text:
        return text.replace("\x01", "\x01\x02").replace("\x00", "\x01\x01")
    return text


def unescape(text: str) -> str:
    """The text a column holds."""
    if "\x01" in text:
        return text.replace("\x01\x01", "\x00").replace("\x01\x02", "\x01")
    return text


def is_blurred(operand: str) -> bool:
    """Whether a suffix or substring test by this operand may say yes too often."""
    return operand.startswith(_BLURRED)


def after_prefix(prefix: str) -> str | None:
    """The least string above all that start with ``prefix``; None if there is none."""
    for at in range(len(prefix) - 1, -1, -1):
        code = ord(prefix[at])
        if code < 0x10FFFF:
            # The surrogates between are no characters of UTF-8.
            return prefix[:at] + chr(0xE000 if code == 0xD7FF else code + 1)
    return None
