"""Every store passes the one suite."""

from __future__ import annotations

from datastore.testing.suite import StoreSuite


class TestStores(StoreSuite):
    """For each engine of the ``store`` fixture."""
