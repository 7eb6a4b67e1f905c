"""The schema. ``log`` is the truth; ``publications`` and ``publication_attributes`` are its
projection; the other tables travel with the log in the same transactions.

Times are milliseconds in 64 bits. An event is numbered by the seq of its first
publication. Text compares by code point (``COLLATE "C"``; SQLite does so anyway)
and is escaped by ``datastore.sql.text``.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    text,
)

metadata = MetaData()

#: ``INTEGER PRIMARY KEY`` is the row id in SQLite, ``BIGINT`` would be a second index.
_SEQ = BigInteger().with_variant(Integer(), "sqlite")
_TEXT = Text().with_variant(Text(collation="C"), "postgresql")

log = Table(
    "log",
    metadata,
    Column("seq", _SEQ, primary_key=True, autoincrement=False),
    Column("uid", _TEXT, nullable=False),
    Column("part", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("arrived", BigInteger, nullable=False),
    Column("start_ms", BigInteger),
    Column("end_ms", BigInteger),
    #: The latest arrival so far: rises with seq even where a clock was set back.
    Column("clock", BigInteger, nullable=False),
    Column("body", Text, nullable=False),
    Index("log_uid", "uid"),
    Index("log_clock", "clock", "seq"),
)

publications = Table(
    "publications",
    metadata,
    Column("first_seq", _SEQ, primary_key=True, autoincrement=False),
    Column("last_seq", BigInteger, nullable=False),
    Column("uid", _TEXT, nullable=False),
    Column("start_ms", BigInteger),
    Column("end_ms", BigInteger),
    #: The start, or the end where there is none: what answers are ordered by.
    Column("place_ms", BigInteger, nullable=False),
    Column("class", SmallInteger, nullable=False),
    Column("inserted", BigInteger, nullable=False),
    Column("updated", BigInteger, nullable=False),
    Index("publications_uid", "uid", unique=True),
    Index("publications_place", "place_ms", "first_seq"),
    Index("publications_class", "class", "place_ms"),
    Index("publications_last", "last_seq"),
)

#: ``kind``: n null, t true, f false, l long, d double, s string, b bag. ``member`` is -1
#: for the value itself, 0 and up for the members of a bag. Exactly one typed column is
#: set for l, d and s; NaN is a double whose column is null, as SQLite would make it.
publication_attributes = Table(
    "publication_attributes",
    metadata,
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

indexed_names = Table("indexed_names", metadata, Column("name", _TEXT, primary_key=True))

inners = Table(
    "inners",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("inner_hash", _TEXT, nullable=False, unique=True),
    Column("filter", Text, nullable=False),
    Column("upto", BigInteger, nullable=False),
)

#: Only decisions that hold have a row: a false one removes it.
decisions = Table(
    "decisions",
    metadata,
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

marks = Table(
    "marks",
    metadata,
    Column("name", _TEXT, primary_key=True),
    Column("value", BigInteger, nullable=False),
)

#: What the store itself remembers; ``marks`` are the broker's.
meta = Table(
    "meta",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

sessions = Table(
    "sessions",
    metadata,
    Column("name", _TEXT, primary_key=True),
    Column("confirmed", BigInteger, nullable=False),
    Column("lost", BigInteger, nullable=False),
)

session_subscriptions = Table(
    "session_subscriptions",
    metadata,
    Column("session", _TEXT, nullable=False),
    Column("number", Integer, nullable=False),
    Column("id", _TEXT, nullable=False),
    Column("filter", Text, nullable=False),
    Column("history", Boolean, nullable=False),
    Column("since", BigInteger),
    PrimaryKeyConstraint("session", "number", name="session_subscriptions_pk"),
)

backlog = Table(
    "backlog",
    metadata,
    Column("session", _TEXT, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("receivers", Text, nullable=False),
    PrimaryKeyConstraint("session", "seq", name="backlog_pk"),
    Index("backlog_seq", "seq"),
    sqlite_with_rowid=False,
)

spool = Table(
    "spool", metadata, Column("seq", _SEQ, primary_key=True, autoincrement=False)
)  # fmt: skip

#: What is left of a publication whose log row may be in an archive: enough to know it again.
archived_ids = Table(
    "archived_ids",
    metadata,
    Column("seq", _SEQ, primary_key=True, autoincrement=False),
    Column("part", Text, nullable=False),
    Column("print", BigInteger, nullable=False),
)
