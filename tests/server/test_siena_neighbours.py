"""An original dispatcher above and below a broker of ours."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import kbn
from kbn.language import parse_subscription
from kbn.model import Filter, Notification
from kbn.server.run import Broker
from tests.server.siena import Dispatcher, readable, swallows
from tests.sockets import Handler, Raw, over_sockets, running, until, url_of

QUICK = {"times.probe": 0.05, "times.retry_first": 0.01, "times.retry_most": 0.05}


@asynccontextmanager
async def below(siena: Dispatcher, **more: object) -> AsyncIterator[Broker]:
    """A broker of ours whose master is the dispatcher, joined."""
    try:
        async with running(master=siena.url, **QUICK, **more) as broker:
            uplink = broker.state.uplink
            assert uplink is not None
            await until(lambda: uplink.established, "the master is found to be a Siena one")
            yield broker
    finally:
        await siena.close()


async def held(siena: Dispatcher, count: int) -> None:
    await until(
        lambda: len(siena.subscribers.get("b1", [])) == count, f"the master holds {count} filters"
    )


@over_sockets
async def test_a_siena_master_is_found_out_and_asked_in_its_own_words() -> None:
    siena = await Dispatcher().open()
    async with below(siena) as broker, kbn.connect(url_of(broker)) as client:
        assert broker.state.core.path == ("b1", "siena")
        async with client.subscribe("price < 80") as stream:
            await held(siena, 1)
            await siena.publish(Notification({"price": 79.5}), "somebody")
            assert (await anext(stream))["price"] == 79.5
            await client.publish(price=1, tags=["a", "b"])
            wanted = 'event{ price=1 tags="[\\"a\\" \\"b\\"]"}'
            await until(lambda: any(wanted in p for p in siena.heard), "it came up as a string")
            assert (await anext(stream))["price"] == 1
        await held(siena, 0)
        assert all('method="HLO"' in p for p in siena.unreadable)
        assert siena.unreadable == []


@over_sockets
async def test_auto_says_only_what_the_original_can_read() -> None:
    siena = await Dispatcher().open()
    async with below(siena):
        assert siena.heard[0] == 'senp{version=1 method="HLO" ttl=30 id="b1"}'
        assert 'method="WHO" ttl=30 id="b1" handler="ka://' in siena.heard[1]
        assert siena.unreadable == []


@over_sockets
async def test_what_siena_cannot_decide_is_asked_widely_and_decided_here() -> None:
    siena = await Dispatcher().open()
    async with (
        below(siena, master_protocol="siena") as broker,
        kbn.connect(url_of(broker)) as client,
        client.subscribe('kind = "x" and tags superbag ["a"]') as stream,
    ):
        await held(siena, 1)
        asked = next(p for p in siena.heard if 'method="SUB"' in p)
        assert asked.endswith('filter{ kind ="x" tags any}')
        await siena.publish(Notification({"kind": "x", "tags": "b"}), "s")
        await siena.publish(Notification({"kind": "x", "tags": "a"}), "s")
        assert (await anext(stream))["tags"] == "a"


@over_sockets
async def test_siena_s_unsound_covering_swallows_nothing_of_ours() -> None:
    siena = await Dispatcher().open()
    async with (
        below(siena, master_protocol="siena") as broker,
        kbn.connect(url_of(broker)) as client,
        client.subscribe('x <= "abc"') as low,
    ):
        await held(siena, 1)
        async with client.subscribe('x prefix "ab"') as prefix:
            await until(
                lambda: sum('method="SUB"' in p for p in siena.heard) == 2, "both were sent up"
            )
            await siena.publish(Notification({"x": "abz"}), "s")
            assert (await anext(prefix))["x"] == "abz"
            await siena.publish(Notification({"x": "abb"}), "s")
            assert (await anext(prefix))["x"] == "abb"
            assert (await anext(low))["x"] == "abb"


@over_sockets
async def test_an_idle_connection_that_siena_closed_is_made_again_for_the_next_event() -> None:
    siena = await Dispatcher().open()
    async with (
        below(siena, master_protocol="siena") as broker,
        kbn.connect(url_of(broker)) as client,
        client.subscribe("n any") as stream,
    ):
        await held(siena, 1)
        uplink = broker.state.uplink
        assert uplink is not None
        for n in range(3):
            siena.hang_up()
            await until(lambda: not uplink.established, "the end of the connection is noticed")
            await client.publish(n=n)
            assert (await anext(stream))["n"] == n
            await until(
                lambda n=n: sum(f"event{{ n={n}}}" in p for p in siena.heard) == 1,  # type: ignore[misc]
                "the event reached the master once",
            )


@over_sockets
async def test_an_original_child_subscribes_and_publishes_through_us() -> None:
    siena = await Dispatcher().open()
    async with (
        running() as broker,
        kbn.connect(url_of(broker)) as client,
        client.subscribe("price any") as stream,
    ):
        await siena.join(url_of(broker))
        assert siena.master == "b1"
        # A client of the child asks the child; the child asks us.
        place = await Handler().open()
        peer = await Raw.open(siena.port)
        await peer.send(
            f'senp{{version=1 method="SUB" id="x" handler="{place.url}"}} filter{{ price <80}}'
        )
        await until(lambda: len(broker.state.core.table) == 2, "the child asked us")
        await client.publish(price=79)
        assert 'to="x"} event{ price=79}' in await place.receive()
        assert (await anext(stream))["price"] == 79
        await siena.publish(Notification({"price": 5}), "somebody")
        assert (await anext(stream))["price"] == 5
        assert sum("price=5}" in p for p in siena.heard) == 0, "it does not come back"
        await peer.close()
        await place.close()
        await siena.close()


def only(text: str) -> Filter:
    (asked,) = parse_subscription(text).alternatives
    return asked


def test_the_scripted_dispatcher_has_the_original_s_faults() -> None:
    assert swallows(only('x <= "abc"'), only('x prefix "ab"'))
    assert not swallows(only('x <= "abc"'), only('x prefix "abd"'))
    assert readable('senp{version=1 method="SUB" id="a=b"} filter{ a any}')
    assert not readable('senp{version=1 method="PUB" seq=1} event{ a=1}')
    assert not readable('senp{version=1 method="SUB"} filter{ a #> ["x"]}')
