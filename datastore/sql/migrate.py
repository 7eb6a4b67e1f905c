"""Bring a database to this version's schema.

Alembic does the work and knows the steps; it is imported only if there are any to
take, since most starts find the schema as it should be.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import Connection, inspect, text

from kbn.errors import StoreError

MIGRATIONS = Path(__file__).parent / "migrations"
#: The newest step in ``migrations/versions``; a test holds the two together.
HEAD = "0002"


def current(connection: Connection) -> str | None:
    """The schema's version, None for an empty database."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)


def upgrade(connection: Connection, store: str) -> bool:
    """Take the steps that are missing, in the connection's transaction; whether there were any."""
    found = current(connection)
    if found == HEAD:
        return False
    if found is not None and found > HEAD:
        raise StoreError(
            f"its schema is version {found}, this program knows {HEAD}: use a newer kbn",
            store=store,
        )
    _run(connection)
    return True


def _run(connection: Connection) -> None:
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    config: Any = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
