"""Tokens, passwords, and what a principal may publish and subscribe to."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest
from typer.testing import CliRunner

import kbn
from kbn.cli.main import app
from kbn.errors import RefusedError
from kbn.server.auth import Registry, hash_password, hash_token
from kbn.server.config import PrincipalConfig
from kbn.server.run import Broker
from tests.server.processes import kbn as command
from tests.server.processes import served
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


@pytest.mark.parametrize(
    "said",
    [
        {"token": "secret:" + hash_token("x")},
        {"password": "secret: " + hash_password("x")},
    ],
    ids=["token", "password"],
)
def test_a_hash_with_something_before_it_is_refused(said: dict[str, str]) -> None:
    with pytest.raises(RefusedError) as refused:
        Registry([PrincipalConfig("ann", **said)])
    assert refused.value.code == "syntax"
    assert "principal 'ann'" in str(refused.value)


@pytest.mark.parametrize(
    ("words", "given", "printed"),
    [
        (("--token",), "s3cret\n", hash_token("s3cret") + "\n"),
        (("--token",), "s3cret", hash_token("s3cret") + "\n"),
        (("--token", "s3cret"), "", hash_token("s3cret") + "\n"),
    ],
    ids=["line", "no end of line", "argument"],
)
def test_a_hash_is_all_that_is_printed(words: tuple[str, ...], given: str, printed: str) -> None:
    done = CliRunner().invoke(app, ["hash", *words], input=given)
    assert (done.exit_code, done.stdout, done.stderr) == (0, printed, "")


def test_a_secret_that_is_empty_is_not_hashed() -> None:
    done = CliRunner().invoke(app, ["hash"], input="")
    assert (done.exit_code, done.stdout) == (2, "")


def test_a_broker_that_asks_who_one_is_says_how_and_logs_who_did_not(tmp_path: Path) -> None:
    (tmp_path / "kbn.toml").write_text('[[principals]]\nname = "ann"\ntoken = "t"\n')
    with served(tmp_path, "--config", "kbn.toml", "--store", "none") as broker:
        assert f"kbn sub --broker {broker.url} --token TOKEN 'price" in broker.lines[3]
        assert f"kbn pub --broker {broker.url} --token TOKEN 'price" in broker.lines[4]
        refused = [command("who", "--broker", broker.url), command("who", "--broker", broker.url)]
        refused.append(command("who", "--broker", broker.url, "--token", "wrong"))
        code, said = broker.end(signal.SIGTERM)
    assert [each.returncode for each in refused] == [2, 2, 2]
    assert "--token or KBN_TOKEN (or --user with KBN_PASSWORD)" in refused[0].stderr
    lines = [line for line in said.splitlines() if " warning auth: 127.0.0.1:" in line]
    more = [int(n) for n in re.findall(r"\(and (\d+) more\)", said)]
    assert len(lines) + sum(more) == 3
    assert code == 0


@pytest.mark.parametrize(
    ("said", "asks"),
    [
        ([], None),
        ([{"name": "ann", "token": "t"}, {"name": "bob", "password": "p"}], "token"),
        ([{"name": "bob", "password": "p"}], "user"),
        ([{"name": "bob", "password": "p"}, {"name": "anonymous"}], None),
    ],
    ids=["nobody", "both", "passwords", "anonymous"],
)
def test_what_peers_are_asked_for_is_what_principals_have(
    said: list[dict[str, str]], asks: str | None
) -> None:
    assert Registry([PrincipalConfig(**each) for each in said]).asks == asks
