"""Giving memory back to the system, where the C library can."""

from __future__ import annotations

import ctypes


def return_free_pages() -> None:
    """Have glibc return free pages; elsewhere nothing happens. Slow: not on the loop."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return
    trim(0)
