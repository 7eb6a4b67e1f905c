"""Tokens, passwords, and what a principal may publish and subscribe to."""

from __future__ import annotations

import pytest

import kbn
from kbn.errors import RefusedError
from kbn.server.auth import hash_password, hash_token
from kbn.server.run import Broker
from tests.sockets import config, over_sockets, running, until, url_of

PRINCIPALS = [
    {"name": "ann", "token": hash_token("ann's token")},
    {"name": "bob", "password": hash_password("bob's password")},
    {"name": "plain", "password": "in clear"},
    {"name": "eyes", "token": "t1", "may_publish": False, "subscribe": "price < 100"},
    {"name": "mouth", "token": "t2", "may_subscribe": False, "publish": 'symbol = "IBM"'},
    {"name": "root", "token": "t3", "admin": True},
]


async def code_of(url: str, **given: str) -> str:
    try:
        async with kbn.connect(url, **given):  # type: ignore[arg-type]
            return "welcome"
    except RefusedError as error:
        return error.code


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"token": "ann's token"}, "welcome"),
        ({"token": "another"}, "auth"),
        ({"token": ""}, "auth"),
        ({"user": "bob", "password": "bob's password"}, "welcome"),
        ({"user": "bob", "password": "wrong"}, "auth"),
        ({"user": "plain", "password": "in clear"}, "welcome"),
        ({"user": "nobody", "password": "x"}, "auth"),
        ({"user": "ann", "password": ""}, "auth"),
        ({}, "auth"),
    ],
    ids=str,
)
@over_sockets
async def test_a_session_is_welcome_only_with_the_right_secret(
    given: dict[str, str], code: str
) -> None:
    async with running(principals=PRINCIPALS) as broker:
        assert await code_of(url_of(broker), **given) == code


@over_sockets
async def test_what_comes_while_credentials_are_checked_is_handled_after_in_order() -> None:
    async with (
        running(principals=PRINCIPALS) as broker,
        kbn.connect(url_of(broker), token="ann's token") as client,
        client.subscribe("n any") as stream,
    ):
        await client.publish_many({"n": n} for n in range(50))
        assert [(await anext(stream))["n"] for _ in range(50)] == list(range(50))


@over_sockets
async def test_a_subscribe_filter_must_cover_what_is_asked() -> None:
    async with (
        running(principals=PRINCIPALS) as broker,
        kbn.connect(url_of(broker), token="t1") as client,
    ):
        await client.subscribe("price < 50").ready()
        await client.subscribe('price < 100 and symbol = "IBM"').ready()
        for wider in ("price < 101", "price any", 'symbol = "IBM"', "price < 50 or n = 1"):
            with pytest.raises(RefusedError) as refused:
                await client.subscribe(wider).ready()
            assert refused.value.code == "forbidden"
        with pytest.raises(RefusedError) as mute:
            await client.publish(price=1)
        assert mute.value.code == "forbidden"


@over_sockets
async def test_a_publish_filter_must_match_the_event() -> None:
    async with running(principals=PRINCIPALS) as broker:
        async with kbn.connect(url_of(broker), token="t2") as client:
            await client.publish(symbol="IBM", price=1)
            with pytest.raises(RefusedError) as refused:
                await client.publish(symbol="XYZ", price=1)
            assert refused.value.code == "forbidden"
            with pytest.raises(RefusedError):
                await client.subscribe("price < 1").ready()
        accounts = broker.state.core.accounts
        assert (accounts.received, accounts.refused, accounts.unmatched) == (2, 1, 1)


@over_sockets
async def test_an_administrator_may_switch_the_broker_off() -> None:
    async with (
        running(principals=PRINCIPALS) as broker,
        kbn.connect(url_of(broker), token="t3") as client,
    ):
        connection = client._connection
        conversation = connection.conversation
        assert not broker.shell.off.is_set()
        from senp import Packet

        conversation._say(Packet(method="OFF"))
        connection._line.flush_soon()
        await until(broker.shell.off.is_set, "the broker is told to stop")


@over_sockets
async def test_anonymous_peers_have_the_rights_of_the_principal_of_that_name() -> None:
    principals = [{"name": "anonymous", "subscribe": "public = true"}, *PRINCIPALS]
    async with running(principals=principals) as broker, kbn.connect(url_of(broker)) as client:
        await client.subscribe("public = true and n > 1").ready()
        with pytest.raises(RefusedError):
            await client.subscribe("n > 1").ready()


def test_a_principal_s_bad_filter_and_a_double_name_are_named() -> None:
    with pytest.raises(RefusedError, match="ann"):
        Broker(config(principals=[{"name": "ann", "publish": "price <"}]))
    with pytest.raises(RefusedError, match="twice"):
        Broker(config(principals=[{"name": "ann"}, {"name": "ann"}]))
