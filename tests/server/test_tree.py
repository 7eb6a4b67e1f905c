"""Brokers in a tree over sockets: up, down, away and back, and not in a circle."""

from __future__ import annotations

import asyncio

import kbn
from kbn.server.run import Broker
from tests.sockets import LOOPBACK, over_sockets, port_of, running, until, url_of

QUICK = {"times.retry_first": 0.01, "times.retry_most": 0.05}


async def reached(child: Broker, *path: str) -> None:
    uplink = child.state.uplink
    assert uplink is not None
    await until(
        lambda: uplink.established and child.state.core.path == path, f"the path is {path}"
    )


async def asked(broker: Broker, units: int) -> None:
    await until(lambda: len(broker.state.core.table) == units, f"{units} filters came up")


@over_sockets
async def test_a_publication_goes_up_and_down_a_tree_of_three() -> None:
    async with (
        running(identity="root") as root,
        running(identity="left", master=url_of(root), **QUICK) as left,
        running(identity="right", master=url_of(root), **QUICK) as right,
    ):
        await reached(left, "left", "root")
        await reached(right, "right", "root")
        async with (
            kbn.connect(url_of(left)) as publisher,
            kbn.connect(url_of(right)) as subscriber,
            kbn.connect(url_of(root)) as middle,
            publisher.subscribe("price < 80") as own,
            subscriber.subscribe("price < 80") as far,
            middle.subscribe("price < 80") as near,
        ):
            await asked(root, 3)
            uid = await publisher.publish(price=79.5)
            for stream in (own, near, far):
                told = await anext(stream)
                assert (dict(told), told.uid) == ({"price": 79.5}, uid)
            await subscriber.publish(price=1)
            for stream in (own, near, far):
                assert (await anext(stream))["price"] == 1
            assert subscriber.path == ("right", "root")


@over_sockets
async def test_only_the_widest_filters_go_up_and_nothing_more_than_asked_comes_down() -> None:
    async with (
        running(identity="root") as root,
        running(identity="leaf", master=url_of(root), **QUICK) as leaf,
        kbn.connect(url_of(leaf)) as client,
    ):
        await reached(leaf, "leaf", "root")
        narrow = await client.subscribe("price < 80").ready()
        await asked(root, 1)
        wide = await client.subscribe("price < 100").ready()
        await until(
            lambda: (
                [str(u.asked) for u in root.state.core.table.units.values()] != []
                and len(root.state.core.table) == 1
                and root.state.core.table.match(kbn.Notification({"price": 99}))
            ),
            "only the wider one is asked of the root",
        )
        await wide.close()
        await until(
            lambda: (
                len(root.state.core.table) == 1
                and not root.state.core.table.match(kbn.Notification({"price": 99}))
            ),
            "the narrower one is asked again",
        )
        async with kbn.connect(url_of(root)) as publisher:
            await publisher.publish(price=99)
            await publisher.publish(price=79)
        assert (await anext(narrow))["price"] == 79
        assert leaf.state.core.accounts.received == 1
        await narrow.close()
        await asked(root, 0)


@over_sockets
async def test_what_is_published_while_the_master_is_away_arrives_once_and_in_order() -> None:
    async with running(identity="root") as root:
        port = port_of(root)
        leaf = running(identity="leaf", master=url_of(root), **QUICK)
        low = await leaf.__aenter__()
        try:
            await reached(low, "leaf", "root")
            client = await kbn.connect(url_of(low)).open()
            stream = await client.subscribe("from_root any").ready()
            await asked(root, 1)
        except BaseException:
            await leaf.__aexit__(None, None, None)
            raise
    uplink = low.state.uplink
    assert uplink is not None
    await until(lambda: not uplink.established, "the leaf noticed that its master is gone")
    for n in range(20):
        await client.publish(n=n)
    assert uplink.spooled == 20
    async with (
        running(identity="root", listen=(f"ka://{LOOPBACK}:{port}",)) as root,
        kbn.connect(url_of(root)) as above,
        above.subscribe("n any") as heard,
    ):
        # The leaf may be faster than this subscription: publish again what tells them apart.
        await asked(root, 2)
        await until(lambda: uplink.spooled == 0, "the spool is empty")
        await client.publish(n=20)
        got: list[object] = []
        while not got or got[-1] != 20:
            got.append((await anext(heard))["n"])
        assert got == list(range(21 - len(got), 21))
        accounts = root.state.core.accounts
        assert accounts.received - accounts.duplicate == 21
        await above.publish(from_root=1)
        assert (await anext(stream))["from_root"] == 1
        await client.close()
        await leaf.__aexit__(None, None, None)


@over_sockets
async def test_a_cut_between_brokers_loses_and_doubles_nothing() -> None:
    async with (
        running(identity="root") as root,
        running(identity="leaf", master=url_of(root), **QUICK) as leaf,
        kbn.connect(url_of(leaf)) as low,
        kbn.connect(url_of(root)) as high,
        low.subscribe("down any", queue=5000) as down,
        high.subscribe("up any", queue=5000) as up,
    ):
        await reached(leaf, "leaf", "root")
        await asked(root, 2)
        uplink = leaf.state.uplink
        assert uplink is not None
        cuts = 0
        for n in range(300):
            await high.publish(down=n)
            await low.publish(up=n)
            if n % 50 == 25 and uplink.link is not None:
                # Not there yet while it is being called again.
                connection = leaf.shell._connections.get(uplink.link.number)
                if connection is not None:
                    connection.abort()
                    cuts += 1
        assert [(await anext(down))["down"] for _ in range(300)] == list(range(300))
        assert [(await anext(up))["up"] for _ in range(300)] == list(range(300))
        await until(lambda: uplink.spooled == 0, "everything is acknowledged")
        assert cuts


@over_sockets
async def test_brokers_in_a_circle_refuse_each_other_and_serve_on() -> None:
    async with running(identity="p", **QUICK) as first:
        port = port_of(first)
    async with (
        running(identity="q", master=f"ka://{LOOPBACK}:{port}", **QUICK) as q,
        running(identity="p", listen=(f"ka://{LOOPBACK}:{port}",), master=url_of(q), **QUICK) as p,
    ):
        await until(
            lambda: any(b.state.uplink and b.state.uplink.refusal for b in (p, q)),
            "one of them refused with loop",
        )
        async with kbn.connect(url_of(p)) as client, client.subscribe("n any") as stream:
            await client.publish(n=1)
            assert (await anext(stream))["n"] == 1
            assert "loop" in str(
                [b.state.uplink.refusal for b in (p, q) if b.state.uplink is not None]
            )


@over_sockets
async def test_a_broker_that_is_its_own_master_refuses_itself() -> None:
    async with running(identity="x") as first:
        port = port_of(first)
    url = f"ka://{LOOPBACK}:{port}"
    async with running(identity="x", listen=(url,), master=url, **QUICK) as broker:
        uplink = broker.state.uplink
        assert uplink is not None
        await until(lambda: uplink.refusal is not None, "it noticed")
        assert uplink.refusal == "loop: x -> x"


@over_sockets
async def test_a_master_that_asks_for_a_token_gets_it() -> None:
    principals = [{"name": "leaf", "token": "secret"}]
    async with (
        running(identity="root", principals=principals) as root,
        running(identity="leaf", master=url_of(root), master_token="secret", **QUICK) as leaf,
    ):
        await reached(leaf, "leaf", "root")


@over_sockets
async def test_three_brokers_in_a_row_pass_everything_on_under_load() -> None:
    async with (
        running(identity="a") as a,
        running(identity="b", master=url_of(a), **QUICK) as b,
        running(identity="c", master=url_of(b), **QUICK) as c,
        kbn.connect(url_of(a)) as top,
        kbn.connect(url_of(c)) as bottom,
        top.subscribe("from_c any", queue=5000) as at_top,
        bottom.subscribe("from_a any", queue=5000) as at_bottom,
    ):
        await reached(c, "c", "b", "a")
        await asked(a, 2)
        await asyncio.gather(
            top.publish_many({"from_a": n} for n in range(2000)),
            bottom.publish_many({"from_c": n} for n in range(2000)),
        )
        assert [(await anext(at_top))["from_c"] for _ in range(2000)] == list(range(2000))
        assert [(await anext(at_bottom))["from_a"] for _ in range(2000)] == list(range(2000))
        # What b sent up does not come back to it, nor does what it was sent go up again.
        assert b.state.core.accounts.received == 4000
        assert b.state.core.accounts.duplicate == 0
