"""New inner filters over history that is archived: answers as if everything were hot."""

from __future__ import annotations

import asyncio
import os
import random
import threading
from pathlib import Path

import pytest

import kbn
from datastore.delta import store as deltas
from datastore.delta.archive import Archive
from datastore.delta.attached import attach, move
from datastore.delta.store import DeltaStore
from datastore.factory import open_store
from datastore.sql.store import SqlStore
from kbn.errors import RefusedError
from kbn.language import parse_subscription
from kbn.matching.naive import matches
from kbn.matching.temporal import NaiveHistory
from kbn.matching.world import NOTHING_KNOWN, World
from kbn.model.filters import Subscription, needs_ontology
from kbn.model.time import PUB_ID, PUB_TYPE
from kbn.server.run import Broker
from senp import Packet, encode
from tests.datastore.conftest import postgres  # noqa: F401 - a fixture
from tests.server.history import remembering
from tests.server.test_archiving import NOW
from tests.sockets import Raw, over_sockets, port_of, soon, until, url_of
from tests.spark.stories import published
from tests.temporal.sweep import _subscription

SEEDS = range(20 if os.environ.get("KBN_PROFILE") == "deep" else 2)
NESTED = "k = 2 and start after(1h) { k = 1 and start after(1h) { k = 0 } }"


def url_of_kind(kind: str, request: pytest.FixtureRequest, folder: Path) -> str:
    if kind == "postgresql":
        made: str = request.getfixturevalue("postgres")()
        return made
    return f"{kind.removesuffix('-archiving')}:///{folder}/history?low_water=0"


def archive_all(url: str, folder: Path) -> None:
    """Move everything; what is open, or lacks its start, stays hot as well."""
    with open_store(url) as store:
        assert isinstance(store, SqlStore)
        if isinstance(store, DeltaStore):
            move(store, store.last_seq(), run=13)
        else:
            move(attach(store, folder / "archive"), store.last_seq(), run=13)


def asked_in(seed: int) -> list[Subscription]:
    """Temporal subscriptions of one to three levels that ask for no ontology."""
    draw = random.Random(f"asked {seed}")
    made = (_subscription(draw, depth, certain=True) for depth in [1, 2, 3] * 20)
    return [one for one in made if not needs_ontology(one)][:12]


def by_definition(
    url: str, asked: list[Subscription], after: int
) -> list[list[str]]:  # fmt: skip
    """What each subscription is to be told of entries behind a number."""
    with open_store(url, read_only=True) as store:
        log = list(store.log())
    naive = NaiveHistory()
    told: list[list[str]] = [[] for _ in asked]
    for entry in log:
        world = World(NOTHING_KNOWN.knowledge, naive.about(entry))
        for number, one in enumerate(asked):
            if entry.seq > after and matches(one, entry.notification, world):
                told[number].append(_name(entry.notification))
        naive.append(entry)
    return told


def _name(told) -> str:
    """What a publication is told apart by: its event and its part."""
    return f"{told[PUB_ID]} {' '.join(told[PUB_TYPE])}"


async def publish(client: kbn.Client, told: list) -> None:
    for notification in told:
        try:
            await client.publish(notification)
        except RefusedError as refused:
            assert refused.code.startswith("temporal")  # noqa: PT017 - stories contradict themselves


async def story(kind: str, seed: int, url: str, folder: Path) -> list[list[str]]:
    """A history of which two thirds are archived and a sixth is hot, new subscriptions, the
    rest: what each was told."""
    told = [n for n, _ in published(f"backfill {seed}", 400) if PUB_TYPE in n.attributes]
    first, second = len(told) * 4 // 6, len(told) * 5 // 6
    more = NOW if kind == "sqlite-archiving" else {}
    async with (
        remembering(folder, store=url, **more) as broker,
        kbn.connect(url_of(broker)) as client,
    ):
        await publish(client, told[:first])
    if kind not in ("hot", "sqlite-archiving"):
        archive_all(url, folder)
    async with (
        remembering(folder, store=url, **more) as broker,
        kbn.connect(url_of(broker)) as client,
    ):
        await publish(client, told[first:second])
        before = broker.state.memory.accepted
        asked = asked_in(seed)
        streams = [await client.subscribe(one).ready() for one in asked]
        await publish(client, told[second:])
        await until(lambda: not broker.state.core.accounts.pending, "all is on disk")
        expected = by_definition(url, asked, before)
        heard = [
            [_name(await anext(stream)) for _ in owed]
            for stream, owed in zip(streams, expected, strict=True)
        ]
        assert heard == expected
        assert broker.state.core.accounts.matches == sum(map(len, expected)), "and no more"
        if kind != "hot":
            reads = broker._store.archiving().reads
            assert reads, "the archive was asked"
    return heard


@pytest.mark.parametrize("kind", ["sqlite", "sqlite-archiving", "postgresql", "delta"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_new_subscription_is_told_what_it_would_be_with_everything_hot(
    kind, seed, request, tmp_path, monkeypatch
) -> None:
    monkeypatch.setitem(deltas.open_delta.__kwdefaults__, "keep", 0)

    @over_sockets
    async def compared() -> None:
        folders = [tmp_path / "hot", tmp_path / "archived"]
        for folder in folders:
            folder.mkdir()
        hot = await story("hot", seed, f"sqlite:///{folders[0]}/h.db?low_water=0", folders[0])
        url = url_of_kind(kind, request, folders[1])
        assert await story(kind, seed, url, folders[1]) == hot
        assert sum(map(len, hot)) > 20

    compared()


class Gate:
    """Stands before the archive: who reads waits until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked = threading.Event()
        self.free = threading.Event()
        self.left = 0
        read = Archive.read

        def waiting(archive: Archive, low: int, high: int):
            self.asked.set()
            assert self.free.wait(60), "nobody let the archive go"
            self.left += 1
            return read(archive, low, high)

        monkeypatch.setattr(Archive, "read", waiting)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    return Gate(monkeypatch)


async def with_history(folder: Path) -> None:
    async with remembering(folder) as broker, kbn.connect(url_of(broker)) as client:
        await client.instant(k=0, at=1_000)
        await client.instant(k=1, at=2_000)
    archive_all(f"sqlite:///{folder}/history.db", folder)


def nothing_kept(broker: Broker) -> bool:
    engine = broker.state.memory.engine
    return not (engine.memory.nodes or engine._backfills or broker._store.inners())


async def is_answered(client: kbn.Client) -> None:
    """The same subscription, asked again, works and finds what is archived."""
    stream = await client.subscribe(NESTED).ready()
    await client.instant(k=2, n=7, at=3_000)
    assert (await anext(stream))["n"] == 7


@over_sockets
async def test_a_back_fill_that_takes_too_long_is_overloaded_and_keeps_nothing(
    tmp_path: Path, gate: Gate
) -> None:
    gate.free.set()
    await with_history(tmp_path)
    async with (
        remembering(tmp_path, **{"times.fill": 0.05}) as broker,
        kbn.connect(url_of(broker)) as client,
    ):
        gate.free.clear()
        with pytest.raises(RefusedError) as refused:
            await client.subscribe(NESTED).ready()
        assert refused.value.code == "overloaded"
        assert nothing_kept(broker)
        gate.free.set()
    async with remembering(tmp_path) as broker, kbn.connect(url_of(broker)) as client:
        await is_answered(client)


@pytest.mark.parametrize("leaves", ["UNS", "by going away"])
@over_sockets
async def test_who_leaves_while_the_archive_is_read_leaves_nothing_behind(
    tmp_path: Path, gate: Gate, leaves: str
) -> None:
    gate.free.set()
    await with_history(tmp_path)
    async with remembering(tmp_path) as broker:
        gate.free.clear()
        gate.asked.clear()
        peer = await Raw.session(port_of(broker), "x")
        asked = Packet(method="SUB", id="x/1", seq=1, payload=parse_subscription(NESTED))
        await peer.send(encode(asked))
        await soon(asyncio.to_thread(gate.asked.wait, 20), "the back-fill began")
        if leaves == "UNS":
            await peer.send(encode(Packet(method="UNS", id="x/1", seq=2)))
            said = [await peer.receive(), await peer.receive()]
            assert 'code="overloaded"' in said[0]
            assert 'method="ACK"' in said[1]
            await peer.close()
        else:
            await peer.close()
            await until(lambda: not broker.state.core.links, "the broker noticed")
        assert nothing_kept(broker)
        gate.free.set()
        async with kbn.connect(url_of(broker)) as client:
            await is_answered(client)


@over_sockets
async def test_publications_go_on_while_the_archive_is_read(tmp_path: Path, gate: Gate) -> None:
    gate.free.set()
    await with_history(tmp_path)
    async with remembering(tmp_path) as broker, kbn.connect(url_of(broker)) as client:
        gate.free.clear()
        gate.asked.clear()
        stream = client.subscribe(NESTED)
        ready = asyncio.create_task(stream.ready())
        await soon(asyncio.to_thread(gate.asked.wait, 20), "the back-fill began")
        await client.instant(k=2, n=1, at=3_000)
        await client.instant(k=1, at=4_000_000)
        await client.instant(k=0, at=3_999_000)
        assert not ready.done()
        gate.free.set()
        await ready
        await client.instant(k=2, n=2, at=3_500)
        await client.instant(k=2, n=3, at=4_000_001)
        await client.instant(k=1, at=4_000_002)
        await client.instant(k=2, n=4, at=4_000_003)
        # 3 found a k = 1 that had found no k = 0 when it came.
        assert [(await anext(stream))["n"] for _ in range(2)] == [2, 4]
