"""Backlogs have bounds, and a history may forget; what is lost is counted and told."""

from __future__ import annotations

from pathlib import Path

import kbn
from kbn.server.run import Broker
from tests.server.history import remembering, stored
from tests.sockets import over_sockets, until, url_of

SOON = {"times.care": 0.02}
FILLER = "x" * 50_000


@over_sockets
async def test_a_backlog_that_is_cut_is_counted_and_told_at_resume(tmp_path: Path) -> None:
    bounds = {**SOON, "limits.backlog": 200_000}
    async with remembering(tmp_path, **bounds) as broker, kbn.connect(url_of(broker)) as writer:
        async with kbn.connect(url_of(broker), name="ann", durable=True) as client:
            await client.subscribe("n any").ready()
            assert client.lost == 0
        for n in range(10):
            await writer.publish(n=n, filler=FILLER)
        target = broker.state.core.durables["ann"]
        await until(lambda: target.lost == 7, "the oldest seven were cut")
        assert broker.state.core.accounts.dropped["backlog"] == 7
        assert [dict(row)["backlog"] for row in await writer.drops()] == [7]
        async with kbn.connect(url_of(broker), name="ann", durable=True) as client:
            stream = await client.subscribe("n any").ready()
            assert client.lost == 7
            assert [(await anext(stream))["n"] for _ in range(3)] == [7, 8, 9]


@over_sockets
async def test_a_loss_is_told_once_also_when_the_broker_restarts(tmp_path: Path) -> None:
    bounds = {**SOON, "times.backlog": 0}

    async def losses(broker: Broker) -> int:
        async with kbn.connect(url_of(broker), name="ann", durable=True) as client:
            return client.lost

    async with remembering(tmp_path, **bounds) as broker, kbn.connect(url_of(broker)) as writer:
        async with kbn.connect(url_of(broker), name="ann", durable=True) as client:
            await client.subscribe("n any").ready()
        await writer.publish_many({"n": n} for n in range(3))
        target = broker.state.core.durables["ann"]
        await until(lambda: target.lost == 3, "what is older than nothing at all was cut")
    async with remembering(tmp_path, **bounds) as broker:
        assert await losses(broker) == 3
        assert await losses(broker) == 0
    async with remembering(tmp_path, **bounds) as broker, kbn.connect(url_of(broker)) as writer:
        assert await losses(broker) == 0
        await writer.publish(n=3)
        target = broker.state.core.durables["ann"]
        await until(lambda: target.lost == 1, "one more was cut")
    async with remembering(tmp_path, **bounds) as broker:
        assert await losses(broker) == 1


@over_sockets
async def test_a_backlog_is_cut_by_age(tmp_path: Path) -> None:
    bounds = {**SOON, "times.backlog": 0}
    async with remembering(tmp_path, **bounds) as broker, kbn.connect(url_of(broker)) as writer:
        async with kbn.connect(url_of(broker), name="ann", durable=True) as client:
            await client.subscribe("n any").ready()
        await writer.publish(n=1)
        target = broker.state.core.durables["ann"]
        await until(lambda: target.lost == 1, "what is older than nothing at all was cut")


@over_sockets
async def test_a_history_forgets_the_oldest_events_and_keeps_open_ones(tmp_path: Path) -> None:
    bounds = {**SOON, "retention.count": 3}
    async with remembering(tmp_path, **bounds) as broker, kbn.connect(url_of(broker)) as client:
        await client.start(n=-1)
        for n in range(10):
            await client.publish(n=n)
        await until(lambda: len(stored(tmp_path)) <= 4, "the oldest were forgotten")
        told = [row["n"] for row in stored(tmp_path)]
        assert told[0] == -1
        assert told[-1] == 9


@over_sockets
async def test_a_live_broker_forgets_with_its_history_as_a_restart_does(tmp_path: Path) -> None:
    bounds = {**SOON, "retention.count": 3}
    asked = "probe any and KBN_START_TIME after(10000000s) { cause = 1 }"

    async def told(broker: Broker) -> list[object]:
        """Whether an instant after the cause is told, and then that all was told."""
        async with kbn.connect(url_of(broker)) as client:
            stream = await client.subscribe(f"({asked}) or final any").ready()
            await client.instant(probe=1, at=5_000)
            await client.publish(final=1)
            heard = [await anext(stream)]
            while "final" not in heard[-1]:
                heard.append(await anext(stream))
            return [one.get("probe") for one in heard]

    async with remembering(tmp_path, **bounds) as broker, kbn.connect(url_of(broker)) as client:
        await client.subscribe(asked).ready()
        await client.instant(cause=1, at=1_000)
        assert await told(broker) == [1, None]
        for n in range(5):
            await client.publish(n=n)
        await until(lambda: len(stored(tmp_path)) <= 3, "the cause was forgotten")
        live = await told(broker)
    async with remembering(tmp_path, **bounds) as broker:
        assert live == await told(broker) == [None]
