"""The client against a real broker: reconnecting, batches, the synchronous twin."""

from __future__ import annotations

import asyncio

import pytest

import kbn
from kbn.errors import ClosedError, RefusedError, UnreachableError
from tests.sockets import LOOPBACK, over_sockets, port_of, running, until, url_of

QUICK = (0.01, 0.02)


@over_sockets
async def test_a_client_comes_back_after_a_restart_and_subscribes_again() -> None:
    async with running() as broker:
        port = port_of(broker)
        client = kbn.connect(url_of(broker), backoff=QUICK)
        await client.open()
        stream = await client.subscribe("n any").ready()
        await client.publish(n=1)
        assert (await anext(stream))["n"] == 1
    await until(lambda: not client.connected, "the client noticed")
    # Published while nobody is there: sent once the broker is back.
    late = asyncio.create_task(client.publish(n=2))
    async with running(listen=(f"ka://{LOOPBACK}:{port}",), identity="b2"):
        await late
        assert (await anext(stream))["n"] == 2
        assert client.identity == "b2"
        assert stream.gaps == 1
        await client.close()
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


@over_sockets
async def test_a_client_that_may_not_reconnect_ends_its_streams() -> None:
    async with running() as broker:
        client = kbn.connect(url_of(broker), reconnect=False)
        await client.open()
        stream = await client.subscribe("n any").ready()
    with pytest.raises(UnreachableError):
        await anext(stream)
    with pytest.raises(UnreachableError):
        await client.publish(n=1)
    await client.close()


@over_sockets
async def test_a_batch_keeps_its_order_and_a_refusal_is_raised() -> None:
    async with (
        running(principals=[{"name": "anonymous", "publish": "n < 5000"}]) as broker,
        kbn.connect(url_of(broker)) as client,
        client.subscribe("n any", queue=10_000) as stream,
    ):
        assert await client.publish_many({"n": n} for n in range(3000)) == 3000
        assert [(await anext(stream))["n"] for _ in range(3000)] == list(range(3000))
        with pytest.raises(RefusedError) as refused:
            await client.publish_many([{"n": 1}, {"n": 6000}])
        assert refused.value.code == "forbidden"
        assert await client.publish_many([]) == 0


@over_sockets
async def test_two_streams_of_one_client_do_not_swallow_each_other() -> None:
    async with (
        running() as broker,
        kbn.connect(url_of(broker)) as client,
        client.subscribe("price < 100") as wide,
        client.subscribe("price < 80") as narrow,
    ):
        await client.publish(price=79)
        assert (await anext(wide))["price"] == 79
        assert (await anext(narrow))["price"] == 79
        assert len(await client.subscriptions()) == 2
        await wide.close()
        await client.publish(price=78)
        assert (await anext(narrow))["price"] == 78


@over_sockets
async def test_a_reader_that_waits_stops_the_socket_and_loses_nothing() -> None:
    async with (
        running() as broker,
        kbn.connect(url_of(broker)) as reader,
        kbn.connect(url_of(broker)) as writer,
        reader.subscribe("n any", queue=10) as stream,
    ):
        await writer.publish_many({"n": n} for n in range(500))
        assert [(await anext(stream))["n"] for _ in range(500)] == list(range(500))


@over_sockets
async def test_every_row_is_told_however_many_pages_it_takes() -> None:
    async with running() as broker, kbn.connect(url_of(broker)) as client:
        streams = [await client.subscribe(f"n = {n}").ready() for n in range(250)]
        rows = await client.subscriptions()
        assert [row["subscription"] for row in rows] == [f"n = {n}" for n in range(250)]
        assert (await client.who())["subscriptions"] == 250
        for stream in streams:
            await stream.close()
        assert await client.subscriptions() == []


@over_sockets
async def test_the_synchronous_twin_publishes_subscribes_and_ends() -> None:
    async with running() as broker:
        url = url_of(broker)

        def use() -> None:
            with kbn.connect_sync(url) as client, client.subscribe("price < 80") as stream:
                uid = client.publish(price=79.5, tags=["a", "b"])
                got = stream.get(10)
                assert dict(got) == {"price": 79.5, "tags": kbn.Bag(["a", "b"])}
                assert got.uid == uid
                with pytest.raises(TimeoutError):
                    stream.get(0.01)
                with pytest.raises(RefusedError):
                    client.subscribe("w is_a wine:Red")
            with pytest.raises(ClosedError):
                client.publish(price=1)

        await asyncio.to_thread(use)


@over_sockets
async def test_what_listens_there_and_is_no_broker_is_told_apart() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(hang_up, LOOPBACK, 0)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(RefusedError, match="does not speak ka"):
        await kbn.connect(f"ka://{LOOPBACK}:{port}").open()
    server.close()
    with pytest.raises(UnreachableError, match="kbn serve"):
        await kbn.connect(f"ka://{LOOPBACK}:{port}").open()
