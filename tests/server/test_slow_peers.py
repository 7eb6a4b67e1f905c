"""Slow and silent peers over sockets: each bounded, each loss counted, nobody else held up."""

from __future__ import annotations

import asyncio

import pytest

import kbn
from kbn.server.run import Broker
from tests.sockets import Handler, Raw, over_sockets, port_of, running, until, url_of

SMALL = {"limits.queue": 131_072}
PAD = "x" * 40_000


async def stuck(broker: Broker, name: str = "slow") -> Raw:
    """A subscriber to everything with a number that stops reading."""
    peer = await Raw.session(port_of(broker), name)
    answer = await peer.ask(f'senp{{version=1 method="SUB" id="{name}/1" seq=1}} filter{{ n any}}')
    assert 'method="ACK"' in answer
    peer.writer.transport.pause_reading()
    return peer


async def flood(client: kbn.Client, dropped: object, start: int = 0) -> int:
    """Publish until the condition holds; returns how many were published."""
    n = start
    while not dropped():  # type: ignore[operator]
        await client.publish(n=n, pad=PAD)
        n += 1
        assert n < 2000, "the stuck peer was never full"
    return n


@over_sockets
async def test_drop_oldest_loses_only_the_stuck_one_s_and_names_it() -> None:
    async with (
        running(**SMALL) as broker,
        kbn.connect(url_of(broker)) as client,
        client.subscribe("n any") as stream,
    ):
        peer = await stuck(broker)
        accounts = broker.state.core.accounts
        heard: list[object] = []

        async def listen() -> None:
            async for notification in stream:
                heard.append(notification["n"])

        listening = asyncio.create_task(listen())
        count = await flood(client, lambda: accounts.dropped["queue_full"] >= 5)
        await until(lambda: len(heard) == count, "the other subscriber heard everything")
        assert heard == list(range(count))
        assert set(accounts.dropped_by) == {"slow/1"}
        rows = await client.drops()
        assert rows[0]["subscriber"] == "slow/1"
        assert rows[0]["queue_full"] == accounts.dropped["queue_full"]
        listening.cancel()
        await peer.close()


@over_sockets
async def test_disconnect_ends_the_stuck_one_s_connection() -> None:
    async with (
        running(policy="disconnect", **{"times.handshake": 0.1}, **SMALL) as broker,
        kbn.connect(url_of(broker)) as client,
    ):
        peer = await stuck(broker)
        core = broker.state.core
        await flood(client, lambda: core.accounts.dropped["queue_full"] > 0)
        await until(lambda: "slow/1" not in core.table.subscribers, "the subscriber is gone")
        await until(lambda: len(core.links) == 1, "its connection is closed though it never read")
        await peer.close()


@over_sockets
async def test_block_holds_publishing_sessions_back_and_lets_them_go_on() -> None:
    async with (
        running(policy="block", **SMALL) as broker,
        kbn.connect(url_of(broker), window=1) as client,
    ):
        peer = await stuck(broker)
        publishing = broker.state.publishing
        accounts = broker.state.core.accounts
        total = 0
        enough = asyncio.Event()

        async def publish() -> None:
            nonlocal total
            while not enough.is_set():
                await client.publish(n=total, pad=PAD)
                total += 1

        task = asyncio.create_task(publish())
        await until(lambda: publishing.answering.blocking, "the stuck subscriber blocks")
        assert not task.done(), "the publisher waits for its acknowledgement"
        enough.set()
        peer.writer.transport.resume_reading()
        n = 0
        while n < total or not task.done():
            # What was withheld is among what comes, so this ends with the last one.
            assert f"event{{ n={n} " in await peer.receive()
            n += 1
        await task
        assert not accounts.dropped
        await peer.close()


@over_sockets
async def test_who_asks_and_never_reads_is_not_read_from() -> None:
    async with running() as broker, kbn.connect(url_of(broker)) as client:
        peer = await Raw.session(port_of(broker), "asker")
        peer.writer.transport.pause_reading()
        core = broker.state.core
        link = next(link for link in core.links.values() if link.name == "asker")
        connection = broker.shell._connections[link.number]
        question = b'senp{version=1 method="WHO" seq=1}'
        while connection.reading:
            peer.writer.write((len(question).to_bytes(2) + question) * 500)
            await client.ping()
        assert link.target is not None
        held = link.target.outbox.answers
        peer.writer.write((len(question).to_bytes(2) + question) * 500)
        await client.ping()
        await client.ping()
        assert link.target.outbox.answers == held
        peer.writer.transport.resume_reading()
        await peer.receive()
        peer.writer.transport.abort()
        await until(lambda: len(core.links) == 1, "the asker is gone")


@over_sockets
async def test_a_peer_that_says_nothing_is_let_go_and_a_silent_session_is_asked() -> None:
    times = {"times.handshake": 0.05, "times.idle": 0.05}
    async with running(**times) as broker:
        mute = await Raw.open(port_of(broker))
        assert await mute.ended() == []
        session = await Raw.session(port_of(broker), "quiet")
        assert await session.receive() == 'senp{version=1 method="PING" ttl=30}'
        assert await session.ended() == []
        await mute.close()
        await session.close()


@pytest.mark.parametrize("transport", ["ka", "senp"])
@over_sockets
async def test_a_handler_that_comes_up_late_gets_what_waited_in_order(transport: str) -> None:
    times = {"times.retry_first": 0.01, "times.retry_most": 0.02}
    async with running(**times) as broker:
        place = await Handler(transport).open()
        port = place.port
        await place.close()
        peer = await Raw.open(port_of(broker))
        await peer.send(
            f'senp{{version=1 method="SUB" id="s" handler="{place.url}"}} filter{{ n any}}',
            *(f'senp{{version=1 method="PUB" id="p"}} event{{ n={n}}}' for n in range(5)),
        )
        handlers = broker.state.core.handlers
        await until(lambda: any(t.retries for t in handlers.values()), "it was tried in vain")
        place = await Handler(transport).open(port)
        for n in range(5):
            assert f"event{{ n={n}}}" in await place.receive()
        await peer.close()
        await place.close()


@over_sockets
async def test_500_idle_connections_come_and_go_and_nothing_is_left() -> None:
    async with running() as broker:
        port, core = port_of(broker), broker.state.core
        peers = [await Raw.session(port, f"c{n}") for n in range(250)]
        peers += [await Raw.open(port) for _ in range(250)]
        await until(lambda: len(core.links) == 500, "all are connected")
        for peer in peers[:125]:
            await peer.send(f'senp{{version=1 method="SUB" id="{id(peer)}"}} filter{{ n any}}')
        await until(lambda: len(core.table) == 125, "some have subscribed")
        for peer in peers:
            await peer.close()
        await until(lambda: not core.links, "all are gone")
        assert len(core.table) == 0
        assert core.held_units == {}
        assert broker.shell.connections == 0
        assert broker.shell.admits()


@over_sockets
async def test_a_flood_of_malformed_packets_does_not_keep_others_from_being_served() -> None:
    async with (
        running() as broker,
        kbn.connect(url_of(broker)) as client,
        client.subscribe("n any") as stream,
    ):
        hostile = await Raw.open(port_of(broker))
        bad = b"\x00\x05garba" * 1000
        for n in range(20):
            hostile.writer.write(bad)
            await client.publish(n=n)
            assert (await anext(stream))["n"] == n
        accounts = broker.state.core.accounts
        await until(lambda: accounts.malformed_legacy == 20_000, "every packet was looked at")
        await hostile.close()


@over_sockets
async def test_who_sends_nonsense_waits_its_turn_and_is_answered_in_order() -> None:
    async with running() as broker:
        peer = await Raw.session(port_of(broker), "clumsy")
        # Long enough that reading one takes a while: the rest waits for its turn.
        bad = 'senp{version=1 method="SUB" seq=%d} filter{ ' + "a =1 " * 1_500 + "}"
        for start in range(0, 40, 10):
            await peer.send(
                *(
                    packet
                    for n in range(start + 1, start + 11)
                    for packet in (bad % n, f'senp{{version=1 method="PING" seq={n}}}')
                )
            )
        for n in range(1, 41):
            assert f'method="ERR" ttl=30 seq={n} code="limit"' in await peer.receive()
            assert await peer.receive() == f'senp{{version=1 method="PONG" ttl=30 seq={n}}}'
        await peer.close()
