"""Pages with verbs or programs that run on Spark, read like the others; one history for all."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from datastore.sql.store import open_sqlite
from datastore.store import Batch
from datastore.testing.histories import entry
from kbn.language import parse_subscription
from kbn.model.publications import LogEntry, Part
from tests.commands import commands_in, on_spark, verb_of, verbs
from tests.pages import all_pages, blocks, name_of
from tests.reader import Reader
from tests.reading import read_through
from tests.test_pages import needs_spark

DAY = 86_400_000
PAGES = [path for path in all_pages() if needs_spark(path)]


def entries(now: int) -> list[LogEntry]:
    """Two months old, and of today: watches and warnings of hosts, and prices."""
    old = now - 60 * DAY
    return [
        entry(1, "watch", Part.START, old, None, old, sev="watch", host="a"),
        entry(2, "storm", Part.INSTANT, old + 9, old + 9, old + 9, sev="warning", host="a"),
        entry(3, "watch", Part.END, None, old + 99, old + 99, sev="watch", host="a"),
        entry(4, "cheap", Part.PLAIN, now - 9, None, now - 9, price=70, symbol="IBM"),
        entry(5, "dear", Part.PLAIN, now - 8, None, now - 8, price=79.5, symbol="IBM"),
        entry(6, "flood", Part.INSTANT, now - 7, now - 7, now - 7, sev="warning", host="b"),
    ]


def prepare(reader: Reader, spark: object) -> None:
    """What these pages take for granted: a history, a file of filters, and names for programs."""
    now = int(time.time() * 1000)
    data = reader.folder / "kbn-data"
    data.mkdir()
    with open_sqlite(data / "history.db") as store:
        store.append(Batch(entries(now)))
    (reader.folder / "filters.txt").write_text('price < 80\nstart during { sev = "watch" }\n')
    reader.names |= {
        "spark": spark,
        "entries": [entry(1, "some-id", Part.PLAIN, 1, price=70)],
        "decided": [],
        "seqs": [1],
        "subscription": parse_subscription("price < 80"),
        "first": parse_subscription("price < 80"),
        "second": parse_subscription('start during { sev = "watch" }'),
        "since": now - DAY,
        "until": now + DAY,
    }


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_every_block_of_a_page_does_what_the_page_says(
    path: Path, tmp_path: Path, spark: object
) -> None:
    reader = Reader(tmp_path)
    prepare(reader, spark)
    assert read_through(path, reader) > 0


def test_every_verb_that_runs_on_spark_is_shown_on_a_page() -> None:
    shown = {
        verb_of(command[1:])[1]
        for path in PAGES
        for block in blocks(path)
        if block.language == "sh"
        for command in commands_in(block.text)
        if on_spark(command)
    }
    assert shown >= {verb for verb in verbs() if on_spark(["kbn", *verb.split()])}
