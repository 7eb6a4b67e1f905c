"""What is left of archived publications, so that they are known again without the archive."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, Integer, Text

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_SEQ = BigInteger().with_variant(Integer(), "sqlite")


def upgrade() -> None:
    """Entries archived before this step have no row: they are asked of the archive itself."""
    op.create_table(
        "archived_ids",
        Column("seq", _SEQ, primary_key=True, autoincrement=False),
        Column("part", Text, nullable=False),
        Column("print", BigInteger, nullable=False),
    )
