"""Moving old history to Delta: exactly once, resumable, and no answer changes."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from datastore.delta.attached import ArchivedStore, attach, move
from datastore.factory import open_store
from datastore.query import Query
from datastore.sql.store import open_sqlite
from datastore.store import Batch
from datastore.testing.crash import verify
from datastore.testing.histories import history
from kbn.errors import StoreError
from kbn.language import parse_subscription
from tests.datastore.conftest import postgres  # noqa: F401 - a fixture

DEEP = os.environ.get("KBN_PROFILE") == "deep"


@pytest.mark.parametrize(
    ("kind", "kills"), [("sqlite", 500 if DEEP else 50), ("postgresql", 100 if DEEP else 8)]
)
def test_archiving_killed_at_random_points_loses_and_doubles_nothing(
    kind, kills, request, tmp_path
):
    if kind == "sqlite":
        url = f"sqlite:///{tmp_path}/history.db?low_water=0"
    else:
        url = request.getfixturevalue("postgres")()
    command = [sys.executable, "-m", "tests.spark.killing", url, tmp_path / "archive", str(kills)]
    done = subprocess.run([*command, "1"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    codes = json.loads(done.stdout)
    assert codes.keys() == {"0", "9"}, (codes, done.stderr)
    assert codes["9"] > kills // 4, "few children were ended on their way"
    with open_store(url) as store:
        assert isinstance(store, ArchivedStore)
        verify(store, [])
        rows, seqs = store.archive.distinct()
        assert rows == seqs == store.archived()[0]


@pytest.fixture
def both(tmp_path):
    """The same history in a store that was archived in part, and in one that was not."""
    log = list(history(4, 400))
    with open_sqlite(tmp_path / "plain.db", names=["a"]) as plain:
        with open_sqlite(tmp_path / "history.db", names=["a"]) as store:
            for held in (plain, store):
                held.append(Batch(log))
            archived = attach(store, tmp_path / "archive")
            assert move(archived, log[299].seq, run=70) == 300
        with open_store(f"sqlite:///{tmp_path}/history.db") as store:
            yield store, plain, log


def test_archiving_changes_no_answer(both):
    store, plain, log = both
    assert store.info()["trimmed"] == log[299].seq, "old entries left SQL"
    bounds = ("first_seq", "last_seq", "oldest_arrival", "newest_arrival")
    assert [store.info()[name] for name in bounds] == [plain.info()[name] for name in bounds]
    assert list(store.log()) == log
    assert store.count() == plain.count()
    assert store.last_seq() == plain.last_seq()
    for uid in {entry.uid for entry in log}:
        assert store.get(uid) == plain.get(uid)
        assert store.entries(uid) == plain.entries(uid)
    for text in ("a any", "a < 2", "b superbag [1]", ""):
        query = Query(parse_subscription(text))
        assert list(store.events(query)) == list(plain.events(query))
    assert [finding for finding in store.check() if finding.wrong] == []


def test_a_store_has_one_archive(both, tmp_path):
    store, _, _ = both
    with pytest.raises(StoreError, match="its archive is"):
        attach(store, tmp_path / "another")


def test_a_store_whose_archive_is_gone_says_so(both, tmp_path):
    store, _, _ = both
    store.close()
    (tmp_path / "archive").rename(tmp_path / "moved")
    with pytest.raises(StoreError, match="no Delta table"):
        open_store(f"sqlite:///{tmp_path}/history.db", read_only=True)
