"""Durable sessions: what a name missed is kept, at least once, resumable by position."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from pathlib import Path

import pytest

import kbn
from kbn.errors import RefusedError
from senp import encode_subscription
from tests.server.history import remembering
from tests.sockets import Raw, over_sockets, port_of, until, url_of

QUICK = (0.01, 0.02)


def named(url: str, **told: object) -> kbn.Client:
    return kbn.connect(url, name="ann", durable=True, **told)


@over_sockets
async def test_what_was_missed_is_told_to_the_next_run_and_survives_a_restart(
    tmp_path: Path,
) -> None:
    async with remembering(tmp_path) as broker, kbn.connect(url_of(broker)) as writer:
        async with named(url_of(broker)) as client, client.subscribe("n any") as stream:
            await writer.publish(n=0)
            assert (await anext(stream))["n"] == 0
        await writer.publish_many({"n": n} for n in range(1, 6))
    async with remembering(tmp_path) as broker, kbn.connect(url_of(broker)) as writer:
        await writer.publish_many({"n": n} for n in range(6, 10))
        async with named(url_of(broker)) as client, client.subscribe("n any") as stream:
            heard = [await anext(stream) for _ in range(9)]
            assert [told["n"] for told in heard] == list(range(1, 10))
            positions = [told.pos for told in heard]
            assert positions == sorted(set(positions))
        await writer.publish(n=10)
        # Confirmed by an orderly end: the next run hears only what is new.
        async with named(url_of(broker)) as client, client.subscribe("n any") as stream:
            assert (await anext(stream))["n"] == 10


@over_sockets
async def test_what_was_being_read_when_a_reader_failed_is_told_again(tmp_path: Path) -> None:
    async with remembering(tmp_path) as broker, kbn.connect(url_of(broker)) as writer:
        async with named(url_of(broker)) as client:
            await client.subscribe("n any").ready()
        await writer.publish_many({"n": n} for n in range(5))

        async def fail() -> None:
            async with named(url_of(broker)) as client, client.subscribe("n any") as stream:
                async for told in stream:
                    if told["n"] == 2:
                        raise RuntimeError("on the way")

        with pytest.raises(RuntimeError):
            await fail()
        async with named(url_of(broker)) as client, client.subscribe("n any") as stream:
            assert [(await anext(stream))["n"] for _ in range(3)] == [2, 3, 4]


@over_sockets
async def test_a_lost_connection_is_heard_once_within_a_run(tmp_path: Path) -> None:
    async with remembering(tmp_path) as broker:
        port = port_of(broker)
        client = await named(url_of(broker), backoff=QUICK).open()
        stream = await client.subscribe("n any").ready()
        await client.publish_many({"n": n} for n in range(50))
        heard = [(await anext(stream))["n"] for _ in range(20)]
    await until(lambda: not client.connected, "the client noticed")
    async with remembering(tmp_path, port) as broker, kbn.connect(url_of(broker)) as writer:
        await writer.publish_many({"n": n} for n in range(50, 100))
        heard += [(await anext(stream))["n"] for _ in range(80)]
        assert heard == list(range(100))
        assert stream.gaps == 0
        await client.close()


@over_sockets
async def test_a_program_may_confirm_by_itself_and_resume_where_it_says(tmp_path: Path) -> None:
    async with remembering(tmp_path) as broker, kbn.connect(url_of(broker)) as writer:
        async with named(url_of(broker), auto_confirm=False) as client:
            stream = await client.subscribe("n any").ready()
            await writer.publish_many({"n": n} for n in range(6))
            heard = [await anext(stream) for _ in range(6)]
            client.confirm(heard[1].pos)
        async with named(url_of(broker), auto_confirm=False) as client:
            stream = await client.subscribe("n any").ready()
            assert (await anext(stream))["n"] == 2
        async with named(url_of(broker), resume=heard[3].pos) as client:
            stream = await client.subscribe("n any").ready()
            assert (await anext(stream))["n"] == 4


@over_sockets
async def test_a_second_connection_under_the_name_ends_the_first(tmp_path: Path) -> None:
    async with remembering(tmp_path) as broker, kbn.connect(url_of(broker)) as writer:
        first = await named(url_of(broker)).open()
        stream = await first.subscribe("n any").ready()
        async with named(url_of(broker)) as second:
            with pytest.raises(RefusedError) as refused:
                await anext(stream)
            assert refused.value.code == "name_in_use"
            mine = await second.subscribe("n any").ready()
            await writer.publish(n=1)
            assert (await anext(mine))["n"] == 1
        await first.close()


@over_sockets
async def test_what_an_earlier_run_asked_for_waits_until_it_is_claimed_or_dropped(
    tmp_path: Path,
) -> None:
    async with remembering(tmp_path) as broker, kbn.connect(url_of(broker)) as writer:
        async with named(url_of(broker)) as client:
            await client.subscribe("old any").ready()
            await client.subscribe("both any").ready()
        await writer.publish_many([{"old": 1}, {"both": 1}, {"old": 2}, {"both": 2}])
        async with named(url_of(broker)) as client:
            both = await client.subscribe("both any").ready()
            assert [(await anext(both))["both"] for _ in range(2)] == [1, 2]
            old = await client.subscribe("old any").ready()
            assert (await anext(old))["old"] == 1
            await old.close()
            again = await client.subscribe("old any").ready()
            assert (await anext(again))["old"] == 2
            await again.close()
        await writer.publish(old=3)
        async with named(url_of(broker)) as client, client.subscribe("both any") as both:
            await client.drop_unclaimed()
            await writer.publish_many([{"old": 4}, {"both": 3}])
            assert (await anext(both))["both"] == 3
            await until(
                lambda: list(broker.state.core.table.subscribers) == [_id(both)],
                "only what is asked for is held",
            )


def _id(stream: kbn.Stream) -> str:
    return f"ann/{sha256(encode_subscription(stream.subscription)).hexdigest()[:12]}"


@over_sockets
async def test_a_session_that_is_forgotten_leaves_nothing(tmp_path: Path) -> None:
    async with remembering(tmp_path) as broker, kbn.connect(url_of(broker)) as writer:
        client = await named(url_of(broker)).open()
        await client.subscribe("n any").ready()
        await client.forget()
        await writer.publish(n=1)
        assert broker.state.core.durables == {}
        async with named(url_of(broker)) as client, client.subscribe("n any") as stream:
            await writer.publish(n=2)
            assert (await anext(stream))["n"] == 2


@over_sockets
async def test_a_durable_session_may_begin_with_the_past(tmp_path: Path) -> None:
    async with remembering(tmp_path) as broker, kbn.connect(url_of(broker)) as writer:
        await writer.publish_many({"n": n} for n in range(100))
        async with named(url_of(broker)) as client, client.subscribe("n any", since=0) as stream:
            await writer.publish_many({"n": n} for n in range(100, 200))
            heard = [await anext(stream) for _ in range(200)]
            assert [told["n"] for told in heard] == list(range(200))
            assert [told.pos for told in heard] == sorted({told.pos for told in heard})
        await writer.publish(n=200)
        # The next run goes on where this one ended; the past is not told again.
        async with named(url_of(broker)) as client, client.subscribe("n any", since=0) as stream:
            assert (await anext(stream))["n"] == 200


@over_sockets
async def test_a_killed_client_is_told_again_what_it_did_not_confirm(tmp_path: Path) -> None:
    async with remembering(tmp_path) as broker, kbn.connect(url_of(broker)) as writer:
        for began in (0, 50):
            client = await named(url_of(broker), reconnect=False).open()
            stream = await client.subscribe("n any").ready()
            await writer.publish_many({"n": n} for n in range(began, began + 50))
            heard = [(await anext(stream))["n"] for _ in range(began + 50)]
            assert heard == list(range(began + 50))
            # Gone without a word, and before what was gathered is confirmed.
            assert client._connection._line._transport is not None
            client._connection._confirmed = 2**62
            client._connection._line._transport.abort()
            target = broker.state.core.durables["ann"]
            await until(lambda target=target: target.link is None, "the broker noticed")
            await client.close()


@over_sockets
async def test_the_wire_confirms_by_position_and_resumes_behind_it(tmp_path: Path) -> None:
    async with remembering(tmp_path) as broker, kbn.connect(url_of(broker)) as writer:
        raw = await Raw.session(port_of(broker), "wire", hello=" durable=true")
        await raw.ask('senp{version=1 method="SUB" ttl=30 id="wire/1" seq=1} filter{ n any}')
        await writer.publish_many({"n": n} for n in range(4))
        told = [await raw.receive() for _ in range(4)]
        positions = [int(t.split(" pos=")[1].split(" ")[0]) for t in told]
        assert positions == sorted(set(positions))
        await raw.send(f'senp{{version=1 method="ACK" ttl=30 pos={positions[1]}}}')
        await raw.ask('senp{version=1 method="PING" ttl=30 seq=2}')
        await raw.close()
        again = await Raw.session(port_of(broker), "wire", hello=" durable=true")
        heard = [await again.receive() for _ in range(2)]
        assert ["n=2}" in heard[0], "n=3}" in heard[1]] == [True, True]
        await again.close()


@over_sockets
async def test_the_synchronous_twin_has_the_same_durable_sessions(tmp_path: Path) -> None:
    async with remembering(tmp_path) as broker:
        url = url_of(broker)

        def use() -> None:
            with (
                kbn.connect_sync(url, name="ann", durable=True) as client,
                client.subscribe("kind any") as stream,
            ):
                with client.event(kind="storm", at=1_000) as event:
                    event.update(at=2_000, strength=9)
                assert stream.get(10)["KBN_START_TIME"] == 1_000
                end = stream.get(10)
                assert (end["kind"], end["strength"], end["KBN_END_TIME"]) == ("storm", 9, 2_000)
                started = client.start(kind="rain")
                client.end(started, repeat=True, drops=3)
                assert client.publications(started)[1]["kind"] == "rain"
            client = kbn.connect_sync(url, name="ann", durable=True)
            with client, client.subscribe("kind any") as stream:
                assert [stream.get(10)["kind"] for _ in range(2)] == ["rain", "rain"]
                assert client.lost == 0

        await asyncio.to_thread(use)
