"""The first schema."""

from __future__ import annotations

from alembic import op
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    PrimaryKeyConstraint,
    SmallInteger,
    Text,
    text,
)

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_SEQ = BigInteger().with_variant(Integer(), "sqlite")
_TEXT = Text().with_variant(Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Make every table. Written out: a later change of ``tables`` must not change this step."""
    op.create_table(
        "log",
        Column("seq", _SEQ, primary_key=True, autoincrement=False),
        Column("uid", _TEXT, nullable=False),
        Column("part", Text, nullable=False),
        Column("at", BigInteger, nullable=False),
        Column("arrived", BigInteger, nullable=False),
        Column("start_ms", BigInteger),
        Column("end_ms", BigInteger),
        Column("clock", BigInteger, nullable=False),
        Column("body", Text, nullable=False),
        Index("log_uid", "uid"),
        Index("log_clock", "clock", "seq"),
    )

    op.create_table(
        "publications",
        Column("first_seq", _SEQ, primary_key=True, autoincrement=False),
        Column("last_seq", BigInteger, nullable=False),
        Column("uid", _TEXT, nullable=False),
        Column("start_ms", BigInteger),
        Column("end_ms", BigInteger),
        Column("place_ms", BigInteger, nullable=False),
        Column("class", SmallInteger, nullable=False),
        Column("inserted", BigInteger, nullable=False),
        Column("updated", BigInteger, nullable=False),
        Index("publications_uid", "uid", unique=True),
        Index("publications_place", "place_ms", "first_seq"),
        Index("publications_class", "class", "place_ms"),
        Index("publications_last", "last_seq"),
    )

    op.create_table(
        "publication_attributes",
        Column("event", BigInteger, nullable=False),
        Column("name", _TEXT, nullable=False),
        Column("member", Integer, nullable=False),
        Column("kind", Text, nullable=False),
        Column("l", BigInteger),
        Column("d", Double),
        Column("s", _TEXT),
        Column("value", Text, nullable=False),
        PrimaryKeyConstraint("event", "name", "member", name="publication_attributes_pk"),
        Index(
            "attributes_l", "name", "l", "event",
            sqlite_where=text("l IS NOT NULL"), postgresql_where=text("l IS NOT NULL"),
        ),
        Index(
            "attributes_d", "name", "d", "event",
            sqlite_where=text("d IS NOT NULL"), postgresql_where=text("d IS NOT NULL"),
        ),
        Index(
            "attributes_s", "name", "s", "event",
            sqlite_where=text("s IS NOT NULL"), postgresql_where=text("s IS NOT NULL"),
        ),
        sqlite_with_rowid=False,
    )  # fmt: skip

    op.create_table("indexed_names", Column("name", _TEXT, primary_key=True))

    op.create_table(
        "inners",
        Column("id", Integer, primary_key=True, autoincrement=False),
        Column("inner_hash", _TEXT, nullable=False, unique=True),
        Column("filter", Text, nullable=False),
        Column("upto", BigInteger, nullable=False),
    )

    op.create_table(
        "decisions",
        Column("inner_id", Integer, nullable=False),
        Column("event", _TEXT, nullable=False),
        Column("seq", BigInteger, nullable=False),
        Column("start_ms", BigInteger),
        Column("end_ms", BigInteger),
        Column("class", SmallInteger, nullable=False),
        Column("place_ms", BigInteger, nullable=False),
        PrimaryKeyConstraint("inner_id", "event", name="decisions_pk"),
        Index("decisions_class", "inner_id", "class", "place_ms", "end_ms", "event"),
        Index("decisions_end", "inner_id", "end_ms", "place_ms", "class", "event"),
        Index("decisions_place", "inner_id", "place_ms", "seq"),
        sqlite_with_rowid=False,
    )

    op.create_table(
        "marks",
        Column("name", _TEXT, primary_key=True),
        Column("value", BigInteger, nullable=False),
    )

    op.create_table(
        "meta",
        Column("name", Text, primary_key=True),
        Column("value", Text, nullable=False),
    )

    op.create_table(
        "sessions",
        Column("name", _TEXT, primary_key=True),
        Column("confirmed", BigInteger, nullable=False),
        Column("lost", BigInteger, nullable=False),
    )

    op.create_table(
        "session_subscriptions",
        Column("session", _TEXT, nullable=False),
        Column("number", Integer, nullable=False),
        Column("id", _TEXT, nullable=False),
        Column("filter", Text, nullable=False),
        Column("history", Boolean, nullable=False),
        Column("since", BigInteger),
        PrimaryKeyConstraint("session", "number", name="session_subscriptions_pk"),
    )

    op.create_table(
        "backlog",
        Column("session", _TEXT, nullable=False),
        Column("seq", BigInteger, nullable=False),
        Column("receivers", Text, nullable=False),
        PrimaryKeyConstraint("session", "seq", name="backlog_pk"),
        Index("backlog_seq", "seq"),
        sqlite_with_rowid=False,
    )

    op.create_table(
        "spool", Column("seq", _SEQ, primary_key=True, autoincrement=False)
    )  # fmt: skip
