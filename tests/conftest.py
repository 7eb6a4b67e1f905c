"""Hypothesis profiles: ``ci`` is short, ``deep`` is for long runs (``make deep``)."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile("ci", max_examples=200, deadline=None, derandomize=True)
settings.register_profile(
    "deep",
    max_examples=20_000,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("KBN_PROFILE", "ci"))
