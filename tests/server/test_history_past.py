"""The past, then the present: no gap, no double, positions that rise."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

import kbn
from kbn.client.moments import now
from kbn.errors import RefusedError
from tests.server.history import remembering
from tests.sockets import over_sockets, port_of, running, until, url_of

QUICK = (0.01, 0.02)


@over_sockets
async def test_the_past_is_told_and_then_the_present_while_publishers_go_on(
    tmp_path: Path,
) -> None:
    async with (
        remembering(tmp_path) as broker,
        kbn.connect(url_of(broker)) as writer,
        kbn.connect(url_of(broker)) as reader,
    ):
        total = 3000
        await writer.publish_many({"n": n} for n in range(1000))

        async def go_on() -> None:
            for n in range(1000, total, 50):
                await writer.publish_many({"n": m} for m in range(n, n + 50))

        going = asyncio.create_task(go_on())

        async def listen() -> None:
            async with reader.subscribe("n any", since=0, queue=50) as stream:
                heard = [await anext(stream) for _ in range(total)]
                assert [told["n"] for told in heard] == list(range(total))
                assert [told.pos for told in heard] == sorted({told.pos for told in heard})
                assert stream.gaps == 0

        await asyncio.gather(*(listen() for _ in range(3)))
        await going


@over_sockets
async def test_temporal_operators_of_the_past_are_asked_as_of_its_arrival(tmp_path: Path) -> None:
    asked = "k = 2 and end after(1h) { k = 1 }"
    async with remembering(tmp_path) as broker, kbn.connect(url_of(broker)) as client:
        await client.instant(k=2, n=1, at=2_000)
        await client.instant(k=1, at=1_000)
        await client.instant(k=2, n=2, at=2_000)
        stream = await client.subscribe(asked, since=0).ready()
        await client.instant(k=2, n=3, at=2_000)
        # The first came before what it would have followed was known.
        assert [(await anext(stream))["n"] for _ in range(2)] == [2, 3]


@over_sockets
async def test_since_counts_arrival_and_not_when_it_happened(tmp_path: Path) -> None:
    async with remembering(tmp_path) as broker, kbn.connect(url_of(broker)) as client:
        await client.instant(n=1, at=5)
        await client.instant(n=2, at=now() + 10_000_000)
        for since in (timedelta(hours=1), now() - 3_600_000):
            async with client.subscribe("n any", since=since) as stream:
                assert [(await anext(stream))["n"] for _ in range(2)] == [1, 2]
        async with client.subscribe("n any", since=now() + 3_600_000) as stream:
            await client.publish(n=3)
            assert (await anext(stream))["n"] == 3


@over_sockets
async def test_a_broker_without_a_store_refuses_the_past() -> None:
    async with running() as broker, kbn.connect(url_of(broker)) as client:
        with pytest.raises(RefusedError) as refused:
            await client.subscribe("n any", since=0).ready()
        assert refused.value.code == "unsupported"


@over_sockets
async def test_a_lost_connection_leaves_neither_gap_nor_double(tmp_path: Path) -> None:
    async with remembering(tmp_path) as broker:
        port = port_of(broker)
        client = await kbn.connect(url_of(broker), backoff=QUICK).open()
        stream = await client.subscribe("n any", since=0).ready()
        await client.publish_many({"n": n} for n in range(100))
        heard = [await anext(stream) for _ in range(60)]
    await until(lambda: not client.connected, "the client noticed")
    # The client is not told of this one: the broker's log is.
    async with (
        remembering(tmp_path, port) as broker,
        kbn.connect(url_of(broker)) as writer,
    ):
        await writer.publish_many({"n": n} for n in range(100, 200))
        heard += [await anext(stream) for _ in range(140)]
        assert [told["n"] for told in heard] == list(range(200))
        assert len({told.pos for told in heard}) == 200
        assert stream.gaps == 0
        await client.close()


@over_sockets
async def test_another_broker_in_the_same_place_is_a_gap(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    async with remembering(tmp_path / "one") as broker:
        port = port_of(broker)
        client = await kbn.connect(url_of(broker), backoff=QUICK).open()
        stream = await client.subscribe("n any", since=0).ready()
        await client.publish_many({"n": n} for n in range(10))
        assert [(await anext(stream))["n"] for _ in range(10)] == list(range(10))
    await until(lambda: not client.connected, "the client noticed")
    async with remembering(tmp_path / "two", port, identity="b2"):
        await client.publish(n=10)
        # Its log is new: position 1 is no repetition of what was heard before.
        told = await anext(stream)
        assert (told["n"], told.pos) == (10, 1)
        assert stream.gaps == 1
        await client.close()
