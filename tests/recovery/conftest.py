"""The PostgreSQL of the store's own tests serves here too."""

from __future__ import annotations

from tests.datastore.conftest import postgres  # noqa: F401  a fixture
