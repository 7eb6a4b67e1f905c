"""A broker that archives while it runs: no answer changes, and it says what it does."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import kbn
from datastore.delta.archive import Archive
from datastore.delta.store import DeltaStore
from datastore.factory import open_store
from kbn.errors import KbnError, RefusedError
from kbn.server.run import Broker
from tests.server.history import remembering, store_url
from tests.server.processes import kbn as command
from tests.server.processes import served
from tests.server.test_history_metrics import samples
from tests.server.test_http import HTTP, get
from tests.sockets import config, over_sockets, until, url_of

#: Everything at once, again and again.
NOW = {"archive.older": "0s", "times.care": 0.01}


def store_of(broker: Broker) -> DeltaStore:
    store = broker._store
    assert isinstance(store, DeltaStore)
    return store


@asynccontextmanager
async def archiving(folder: Path, **said: object) -> AsyncIterator[Broker]:
    async with remembering(folder, **{**NOW, **said}) as broker:
        yield broker


async def archived(broker: Broker) -> None:
    """Wait until everything published so far is in the archive, and settled events left SQL."""
    store = store_of(broker)
    last = store.last_seq()
    await until(lambda: store.table.trimmed >= last, f"{last} entries are archived")
    # The ids published lately are asked of nobody: what is looked for here is the store.
    broker.state.memory.engine._recent.clear()


@over_sockets
async def test_entries_move_while_the_broker_runs_and_the_metrics_tell(tmp_path: Path) -> None:
    async with archiving(tmp_path, http=HTTP) as broker, kbn.connect(url_of(broker)) as client:
        await client.publish_many({"n": n} for n in range(300))
        await archived(broker)
        await client.publish(n=300)
        await archived(broker)
        told = samples((await get(broker, "/metrics"))[1])
    assert told["kbn_archived_entries_total"] == 301
    assert told["kbn_archived_upto"] == 301
    assert told["kbn_archive_failures_total"] == told["kbn_archive_failing"] == 0
    with open_store(store_url(tmp_path), read_only=True) as store:
        assert store.info()["trimmed"] == 301, "nothing is left in SQL"
        assert [entry.notification["n"] for entry in store.log()] == list(range(301))
        assert [finding for finding in store.check() if finding.wrong] == []
        assert store.archive.path == tmp_path / "archive"


@over_sockets
async def test_what_is_younger_than_the_age_stays(tmp_path: Path) -> None:
    async with archiving(tmp_path, **{"archive.older": 3600}) as broker:
        store = store_of(broker)
        rounds = []
        older = store.hot_before
        store.hot_before = lambda arrived: rounds.append(arrived) or older(arrived)
        async with kbn.connect(url_of(broker)) as client:
            await client.publish(n=1)
            seen = len(rounds)
            await until(lambda: len(rounds) > seen + 2, "it looked again")
        assert store.archiving().entries == 0


@over_sockets
async def test_duplicates_and_conflicts_of_archived_events_are_known_without_delta(
    tmp_path: Path,
) -> None:
    async with archiving(tmp_path) as broker, kbn.connect(url_of(broker)) as client:
        await client.start(k=1, id="e", at=1_000)
        await client.end("e", k=2, at=2_000)
        await client.instant(k=3, id="i", at=1_500)
        await archived(broker)
        reads = store_of(broker).archive.reads
        await client.start(k=1, id="e", at=1_000)
        await client.end("e", k=2, at=2_000)
        await client.instant(k=3, id="i", at=1_500)
        assert broker.state.core.accounts.duplicate == 3
        for said in (
            client.start(k=9, id="e", at=1_000),
            client.end("e", k=2, at=2_001),
            client.instant(k=3, id="e", at=1_000),
            client.end("i", k=3, at=1_500),
            client.instant(k=4, id="i", at=1_500),
        ):
            with pytest.raises(RefusedError) as refused:
                await said
            assert refused.value.code == "temporal_conflict"
        assert store_of(broker).archive.reads == reads
        assert store_of(broker).last_seq() == 3


@over_sockets
async def test_an_archive_older_than_its_fingerprints_is_asked_itself(tmp_path: Path) -> None:
    async with archiving(tmp_path) as broker, kbn.connect(url_of(broker)) as client:
        await client.instant(k=3, id="i", at=1_500)
        await archived(broker)
    connection = sqlite3.connect(tmp_path / "history.db")
    connection.execute("DELETE FROM archived_ids")
    connection.commit()
    connection.close()
    async with remembering(tmp_path) as broker, kbn.connect(url_of(broker)) as client:
        reads = store_of(broker).archive.reads
        await client.instant(k=3, id="i", at=1_500)
        with pytest.raises(RefusedError, match="said something else"):
            await client.instant(k=4, id="i", at=1_500)
        assert broker.state.core.accounts.duplicate == 1
        assert store_of(broker).archive.reads > reads


@over_sockets
async def test_a_late_end_and_a_late_start_find_their_event(tmp_path: Path) -> None:
    asked = 'k = 9 and start during { k = 1 and word = "begun" }'
    async with archiving(tmp_path) as broker, kbn.connect(url_of(broker)) as client:
        await client.start(k=1, word="begun", id="opened", at=1_000)
        await client.end("ended", k=1, at=9_000)
        await client.publish(n=1)
        await archived(broker)
        stream = await client.subscribe(asked).ready()
        await client.instant(k=9, n=1, at=2_000)
        await client.end("opened", k=1, at=3_000)
        await client.start(k=1, word="begun", id="ended", at=5_000)
        await client.instant(k=9, n=2, at=3_001)
        await client.instant(k=9, n=3, at=5_000)
        assert [(await anext(stream))["n"] for _ in range(2)] == [1, 3]
        with pytest.raises(RefusedError, match="has a END already"):
            await client.end("ended", k=1, at=9_001)
        await archived(broker)
        start, end = await client.publications("opened")
        assert (start["word"], end["KBN_END_TIME"]) == ("begun", 3_000)
    with open_store(store_url(tmp_path)) as store:
        assert [finding for finding in store.check() if finding.wrong] == []


@over_sockets
async def test_the_temporal_memory_answers_for_archived_events_also_after_a_restart(
    tmp_path: Path,
) -> None:
    asked = "k = 2 and start after(1h) { k = 1 and start after(1h) { k = 0 } }"
    window = "v filter(>, last 2) { v any }"
    async with archiving(tmp_path) as broker, kbn.connect(url_of(broker)) as client:
        async with kbn.connect(url_of(broker), name="ann", durable=True) as ann:
            await ann.subscribe(asked).ready()
            await ann.subscribe(window).ready()
        await client.instant(k=0, at=1_000)
        await client.instant(k=1, at=2_000)
        for v, at in ((9, 1), (5, 2), (6, 3)):
            await client.instant(v=v, at=at)
        await archived(broker)
    async with archiving(tmp_path) as broker, kbn.connect(url_of(broker)) as client:
        memory = broker.state.memory.engine.memory
        assert len(memory.nodes) == 3
        assert {len(node.held) for node in memory.nodes.values()} == {1, 3}, "heads came back"
        async with (
            kbn.connect(url_of(broker), name="ann", durable=True) as ann,
            ann.subscribe(asked) as chain,
            ann.subscribe(window) as grown,
        ):
            await client.instant(k=2, n=1, at=3_000)
            assert (await anext(chain))["n"] == 1
            await client.instant(v=5, n=2, at=4)
            await client.instant(v=6, n=3, at=5)
            heard = [(await anext(grown))["v"] for _ in range(2)]
            assert heard == [6, 6], "the 9 is no longer among the last two"


@over_sockets
async def test_the_past_of_a_subscription_reaches_into_the_archive(tmp_path: Path) -> None:
    async with archiving(tmp_path) as broker, kbn.connect(url_of(broker)) as client:
        await client.publish_many({"n": n} for n in range(1200))
        await archived(broker)
        reads = store_of(broker).archive.reads
        going = asyncio.create_task(client.publish_many({"n": n} for n in range(1200, 1500)))
        async with client.subscribe("n any", since=0) as stream:
            heard = [await anext(stream) for _ in range(1500)]
        await going
        assert [told["n"] for told in heard] == list(range(1500))
        assert [told.pos for told in heard] == list(range(1, 1501))
        assert store_of(broker).archive.reads > reads


@over_sockets
async def test_the_backlog_of_a_session_survives_archiving(tmp_path: Path) -> None:
    async with archiving(tmp_path) as broker, kbn.connect(url_of(broker)) as client:
        async with kbn.connect(url_of(broker), name="ann", durable=True) as ann:
            await ann.subscribe("n any").ready()
        await client.publish_many({"n": n} for n in range(50))
        await archived(broker)
    async with archiving(tmp_path) as broker, kbn.connect(url_of(broker)) as client:
        async with (
            kbn.connect(url_of(broker), name="ann", durable=True) as ann,
            ann.subscribe("n any") as stream,
        ):
            assert [(await anext(stream))["n"] for _ in range(50)] == list(range(50))
        await client.publish(n=50)
        await archived(broker)
        # Confirmed: nobody needs them in SQL any more.
        await until(lambda: store_of(broker).hot() == 1, "what was confirmed left SQL")


@over_sockets
async def test_events_are_asked_for_and_explained_from_the_archive(tmp_path: Path) -> None:
    async with (
        archiving(tmp_path) as broker,
        kbn.connect(url_of(broker), name="ann") as client,
        client.subscribe("k = 2 and start during { k = 1 }"),
    ):
        await client.start(k=1, id="outer", at=1_000)
        await client.instant(k=2, id="inner", at=5_000)
        await client.end("outer", k=1, at=9_000)
        await archived(broker)
        (told,) = await client.publications("inner")
        assert told["k"] == 2
        (said,) = await client.explain("ann/1", "inner")
        assert said["match"] is True
        done = await asyncio.to_thread(
            command, "history", "k = 2", "--json", "--store", store_url(tmp_path)
        )
        assert done.returncode == 0, done.stderr
        assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == ["inner"]


@over_sockets
async def test_an_event_of_the_archive_is_told_to_whom_it_would_be_delivered(
    tmp_path: Path,
) -> None:
    rights = [{"name": "anonymous", "subscribe": "secret = false"}]
    async with (
        archiving(tmp_path, principals=rights) as broker,
        kbn.connect(url_of(broker)) as client,
    ):
        await client.instant(secret=True, id="closed")
        await archived(broker)
        with pytest.raises(RefusedError) as refused:
            await client.publications("closed")
        assert refused.value.code == "forbidden"


@over_sockets
async def test_a_run_that_fails_is_told_counted_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    write = Archive.write
    broken = True

    def failing(self: Archive, *given: object) -> None:
        if broken:
            raise OSError("the archive is away")
        write(self, *given)

    monkeypatch.setattr(Archive, "write", failing)
    async with archiving(tmp_path, http=HTTP) as broker, kbn.connect(url_of(broker)) as client:
        await client.publish_many({"n": n} for n in range(20))
        await until(lambda: store_of(broker).archiving().failures > 1, "it failed twice")
        told = samples((await get(broker, "/metrics"))[1])
        assert told["kbn_archive_failing"] == 1
        assert told["kbn_archived_upto"] == 0
        broken = False
        await archived(broker)
        await until(lambda: store_of(broker).archiving().failure is None, "it went well")
        assert store_of(broker).archive.distinct() == (20, 20)
    said = capfd.readouterr().err
    assert "archiving failed and is tried again: the archive is away" in said


@over_sockets
async def test_a_broker_without_the_option_reads_what_one_with_it_archived(tmp_path: Path) -> None:
    async with archiving(tmp_path) as broker, kbn.connect(url_of(broker)) as client:
        await client.publish_many({"n": n} for n in range(20))
        await archived(broker)
    async with remembering(tmp_path) as broker, kbn.connect(url_of(broker)) as client:
        await client.publish(n=20)
        async with client.subscribe("n any", since=0) as stream:
            assert [(await anext(stream))["n"] for _ in range(21)] == list(range(21))
        assert store_of(broker).archiving().entries == 0


@over_sockets
async def test_what_is_archived_may_be_forgotten(tmp_path: Path) -> None:
    async with (
        archiving(tmp_path, **{"retention.count": 3}) as broker,
        kbn.connect(url_of(broker)) as client,
    ):
        await client.start(n=-1, id="open", at=1)
        for n in range(12):
            await client.instant(n=n, id=f"i{n}", at=n)

        def left() -> list[object]:
            with open_store(store_url(tmp_path), read_only=True) as store:
                return [entry.notification["n"] for entry in store.log()]

        await until(lambda: left() in ([-1, 10, 11], [-1, 9, 10, 11]), "the oldest went")
        # Nobody knows it any more but the ids published lately: it is new.
        broker.state.memory.engine._recent.clear()
        await client.instant(n=0, id="i0", at=7)
    with open_store(store_url(tmp_path)) as store:
        assert [finding for finding in store.check() if finding.wrong] == []


@over_sockets
async def test_a_check_and_a_reader_beside_the_broker_find_one_whole_log(tmp_path: Path) -> None:
    def look() -> int:
        with open_store(store_url(tmp_path), read_only=True) as store:
            wrong = [finding for finding in store.check() if finding.wrong]
            assert wrong == []
            seqs = [entry.seq for entry in store.log()]
            assert seqs == list(range(1, len(seqs) + 1))
            return len(seqs)

    async with archiving(tmp_path) as broker, kbn.connect(url_of(broker)) as client:
        loop = asyncio.get_running_loop()
        looking = loop.run_in_executor(None, lambda: [look() for _ in range(8)])
        n = 0
        while not looking.done():
            await client.start(id=f"e{n}", n=n, at=n)
            await client.end(f"e{n}", n=n, at=n)
            await client.publish_many({"n": n} for _ in range(20))
            n += 1
        found = await looking
        assert found == sorted(found)
        assert store_of(broker).archiving().entries > 0


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ({"archive.older": "soon"}, "archive.older: 'soon' is no duration"),
        ({"archive.to": "x"}, "archive.to: say archive.older too"),
        ({"archive.older": -1}, "archive.older"),
    ],
)
def test_a_configuration_of_archiving_that_makes_no_sense_is_refused(said, complaint) -> None:
    with pytest.raises(RefusedError, match=complaint):
        config(**said)


@pytest.mark.parametrize(
    ("older", "age"), [("30d", 2_592_000_000), (60, 60_000), ("1.5", 1_500), (None, None)]
)
def test_the_age_is_a_duration_or_seconds(older, age) -> None:
    assert config(**{"archive.older": older}).archive.age == age


@pytest.mark.parametrize("url", ["memory:", "delta:///{}/d"])
@over_sockets
async def test_only_stores_in_sql_are_archived_by_the_option(tmp_path: Path, url: str) -> None:
    with pytest.raises(RefusedError, match="SQLite and PostgreSQL"):
        async with archiving(tmp_path, store=url.format(tmp_path)):
            pass


@over_sockets
async def test_another_archive_than_the_store_has_is_refused(tmp_path: Path) -> None:
    async with archiving(tmp_path):
        pass
    with pytest.raises(KbnError, match="its archive is"):
        async with archiving(tmp_path, **{"archive.to": str(tmp_path / "another")}):
            pass


def test_archiving_beside_a_broker_says_which_option_to_use(tmp_path: Path) -> None:
    url = store_url(tmp_path)
    with served(tmp_path, "--store", url):
        done = command("archive", "--older", "7d", "--store", url)
    assert done.returncode == 2
    assert "kbn serve --archive-older 7d" in done.stderr
    assert done.stdout == ""


def test_the_option_is_a_flag_and_a_variable(tmp_path: Path) -> None:
    url = store_url(tmp_path)
    place = tmp_path / "elsewhere"
    flags = ("--archive-older", "30d", "--archive-to", str(place))
    with served(tmp_path, "--store", url, *flags) as broker:
        assert broker.end(15)[0] == 0
    assert (place / "_delta_log").is_dir()
    more = {"KBN_ARCHIVE_OLDER": "1h", "KBN_ARCHIVE_TO": str(place)}
    with served(tmp_path, "--store", url, **more) as broker:
        assert broker.end(15)[0] == 0
