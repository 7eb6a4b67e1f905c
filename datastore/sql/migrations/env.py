"""Alembic's entry: runs the steps on the connection that ``migrate`` hands over."""

from __future__ import annotations

from alembic import context

from datastore.sql.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
