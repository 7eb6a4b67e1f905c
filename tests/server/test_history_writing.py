"""What an acknowledgement means, and what becomes of publications a disk does not take."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import kbn
from kbn.errors import RefusedError
from kbn.server import shell
from tests.server.history import Disk, disk, remembering, store_url, stored
from tests.sockets import Raw, over_sockets, port_of, soon, until, url_of

__all__ = ["disk"]
START = 'PUB_ID="e" KBN_PUB_TYPE=["START"] KBN_START_TIME=1000'
REFUSED = [
    ('PUB_ID="x" KBN_PUB_TYPE=["START"]', "temporal_missing"),
    ('PUB_ID="x" KBN_START_TIME=5', "temporal_missing"),
    ('PUB_ID="x" KBN_PUB_TYPE=["START" "END"] KBN_START_TIME=5', "syntax"),
    ('PUB_ID="" KBN_PUB_TYPE=["START"] KBN_START_TIME=5', "syntax"),
    ('PUB_ID="x" KBN_PUB_TYPE=["START"] KBN_START_TIME="5"', "syntax"),
    ('PUB_ID="x" KBN_PUB_TYPE=["START"] KBN_START_TIME=253402300800000', "time_range"),
    ('PUB_ID="x" KBN_PUB_TYPE=["END"] KBN_END_TIME=5 KBN_START_TIME=9', "temporal_conflict"),
    (
        'PUB_ID="x" KBN_PUB_TYPE=["START" "END" "INSTANT"] KBN_START_TIME=5 KBN_END_TIME=6',
        "temporal_conflict",
    ),
    ('PUB_ID="e" KBN_PUB_TYPE=["START"] KBN_START_TIME=1001', "temporal_conflict"),
    ('PUB_ID="e" KBN_PUB_TYPE=["END"] KBN_END_TIME=999', "temporal_conflict"),
]


def pub(seq: int, *events: str) -> str:
    """A PUB packet of one event, or of a batch."""
    header = f'senp{{version=1 method="PUB" ttl=30 seq={seq}}}'
    said = [f"event{{ {event}}}" for event in events]
    return f"{header} {said[0]}" if len(said) == 1 else f"{header} events{{ {' '.join(said)}}}"


@over_sockets
async def test_what_is_acknowledged_is_on_disk(tmp_path: Path) -> None:
    async with remembering(tmp_path) as broker, kbn.connect(url_of(broker)) as client:
        for n in range(20):
            await client.publish(n=n)
            told = await asyncio.to_thread(stored, tmp_path)
            assert [row["n"] for row in told] == list(range(n + 1))


@over_sockets
async def test_a_refused_publication_changes_nothing(tmp_path: Path) -> None:
    async with remembering(tmp_path) as broker:
        raw = await Raw.session(port_of(broker), "p")
        assert 'method="ACK"' in await raw.ask(pub(1, START))
        for seq, (event, code) in enumerate(REFUSED, 2):
            answer = await raw.ask(pub(seq, event))
            assert f'method="ERR" ttl=30 seq={seq} code="{code}"' in answer, event
        assert len(stored(tmp_path)) == 1
        assert broker.state.core.accounts.refused == len(REFUSED)
        await raw.close()


@over_sockets
async def test_a_duplicate_is_acknowledged_and_neither_stored_nor_matched(tmp_path: Path) -> None:
    async with remembering(tmp_path) as broker:
        listener = await Raw.session(port_of(broker), "s")
        await listener.ask('senp{version=1 method="SUB" ttl=30 seq=1} filter{ PUB_ID any}')
        raw = await Raw.session(port_of(broker), "p")
        for seq in (1, 2):
            assert f'method="ACK" ttl=30 seq={seq}}}' in await raw.ask(pub(seq, START))
        await raw.ask(pub(3, 'PUB_ID="last" KBN_PUB_TYPE=["START"] KBN_START_TIME=1'))
        assert 'PUB_ID="e"' in await listener.receive()
        assert 'PUB_ID="last"' in await listener.receive()
        assert len(stored(tmp_path)) == 2
        assert broker.state.core.accounts.duplicate == 1
        await listener.close()
        await raw.close()


@over_sockets
async def test_a_batch_with_one_bad_part_is_not_stored_at_all(tmp_path: Path) -> None:
    async with remembering(tmp_path) as broker:
        raw = await Raw.session(port_of(broker), "p")
        for seq, (event, code) in enumerate(REFUSED[:8], 1):
            answer = await raw.ask(pub(seq, "n=1", START, "n=2", event, "n=3"))
            assert f'seq={seq} code="{code}"' in answer
        assert stored(tmp_path) == []
        # Nothing of it is remembered either: the same START is no duplicate.
        assert 'method="ACK"' in await raw.ask(pub(20, "n=1", START, "n=2"))
        assert [row.get("n") for row in stored(tmp_path)] == [1, None, 2]
        await raw.close()


@over_sockets
async def test_a_store_that_fails_is_told_and_the_broker_recovers(
    tmp_path: Path, disk: Disk
) -> None:
    async with (
        remembering(tmp_path) as broker,
        kbn.connect(url_of(broker)) as client,
        client.subscribe("n any and end after(1h) { n any }") as chained,
        client.subscribe("n any") as plain,
    ):
        await client.instant(n=0, at=1_000)
        disk.broken = True
        for n in (1, 2, 3):
            with pytest.raises(RefusedError) as refused:
                await client.instant(n=n, at=1_000 + n, id=f"e{n}")
            assert refused.value.code == "store_unavailable"
        disk.broken = False
        # What was refused may come again, and was never part of the history.
        await client.instant(n=1, at=1_001, id="e1")
        assert [(await anext(plain))["n"] for _ in range(2)] == [0, 1]
        assert (await anext(chained))["n"] == 1
        assert [row["n"] for row in stored(tmp_path)] == [0, 1]
        assert broker.state.core.accounts.errors["store_unavailable"] == 3


@over_sockets
async def test_what_was_matched_against_a_failed_publication_fails_with_it(
    tmp_path: Path, disk: Disk
) -> None:
    async with remembering(tmp_path) as broker, kbn.connect(url_of(broker)) as client:
        disk.stop()
        disk.broken = True
        waiting = [asyncio.create_task(client.publish(n=n)) for n in range(50)]
        await until(lambda: broker.state.core.accounts.pending == 50, "all are on their way")
        disk.go()
        codes = await asyncio.gather(*waiting, return_exceptions=True)
        assert {getattr(error, "code", None) for error in codes} == {"store_unavailable"}
        disk.broken = False
        await client.publish(n=99)
        assert [row["n"] for row in stored(tmp_path)] == [99]


@over_sockets
async def test_a_slow_disk_holds_publishers_back_and_loses_nothing(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell, "PENDING_HIGH", 20_000)
    async with remembering(tmp_path) as broker:
        raw = await Raw.session(port_of(broker), "p")
        disk.stop()
        filler = "x" * 1000
        sending = asyncio.create_task(
            raw.send(*(pub(n, f'n={n} filler="{filler}"') for n in range(1, 3001)))
        )
        pending = broker.state.publishing
        await until(lambda: pending.pending_bytes > 20_000, "the broker has its hands full")
        for _ in range(50):
            await asyncio.sleep(0)
        # It reads no further: what it holds is bounded by what one read brought.
        assert pending.pending_bytes < 600_000
        disk.go()
        answers = [await raw.receive() for _ in range(3000)]
        await soon(sending, "everything is sent")
        assert all('method="ACK"' in answer for answer in answers)
        assert [row["n"] for row in stored(tmp_path)] == list(range(1, 3001))
        assert disk.largest > 1, "what gathered meanwhile became one transaction"
        await raw.close()


@over_sockets
async def test_publications_are_refused_before_the_disk_is_full(tmp_path: Path) -> None:
    url = f"{store_url(tmp_path)}?low_water={2**60}"
    async with (
        remembering(tmp_path, store=url) as broker,
        kbn.connect(url_of(broker)) as client,
        client.subscribe("n any") as stream,
    ):
        with pytest.raises(RefusedError, match="low-water mark") as refused:
            await client.publish(n=1)
        assert refused.value.code == "store_unavailable"
        # The rest of the broker goes on.
        await client.ping()
        assert (await client.who())["publications.refused"] == 1
        await stream.close()
