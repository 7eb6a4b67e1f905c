"""Ontologies in a running broker, over sockets: start, load, swap under load, remove."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from urllib.parse import quote

import pytest

import kbn
from datastore.factory import open_store
from datastore.swaps import swaps_in
from kbn.errors import KbnError, RefusedError
from kbn.knowledge.library import Library
from kbn.knowledge.request import Source
from tests.server.test_http import get
from tests.sockets import Raw, over_sockets, port_of, running, url_of

HEAD = "@prefix x: <http://x/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"
#: Red is a Wine; in the second world it is a Beer.
WINE = (HEAD + "x:Red rdfs:subClassOf x:Wine . x:merlot a x:Red . x:stout a x:Beer .").encode()
BEER = (HEAD + "x:Red rdfs:subClassOf x:Beer . x:merlot a x:Red . x:stout a x:Beer .").encode()


def stored(folder: Path, data: bytes) -> str:
    change = Library(folder).prepare_load(Source("drinks.ttl", data, "turtle"))
    change.commit()
    assert change.built is not None
    return change.built.hierarchy.hash


@over_sockets
async def test_a_broker_starts_with_its_library_and_says_its_hash(tmp_path: Path) -> None:
    name = stored(tmp_path, WINE)
    async with (
        running(data_dir=str(tmp_path), http="127.0.0.1:0") as broker,
        kbn.connect(url_of(broker)) as client,
        client.subscribe("w is_a x:Wine") as stream,
    ):
        assert client.limits.ontology == name
        assert "semantic" in client.limits.capabilities
        await client.publish(w="x:stout")
        await client.publish(w="http://x/merlot")
        assert (await anext(stream))["w"] == "http://x/merlot"
        status, body = await get(broker, "/subs?test=" + quote('w="x:merlot"'))
        assert (status, json.loads(body)["count"]) == (200, 1)


@over_sockets
async def test_without_an_ontology_the_operator_is_named(tmp_path: Path) -> None:
    async with running(data_dir=str(tmp_path)) as broker, kbn.connect(url_of(broker)) as client:
        assert client.limits.ontology == ""
        assert "semantic" not in client.limits.capabilities
        with pytest.raises(RefusedError, match=r"'is_a' needs an ontology") as caught:
            await client.subscribe("w is_a x:Wine").ready()
        assert caught.value.code == "no_ontology"


@over_sockets
async def test_a_broken_library_keeps_no_broker_from_starting(tmp_path: Path) -> None:
    (tmp_path / "ontologies").mkdir()
    (tmp_path / "ontologies" / "library.json").write_text("{")
    async with running(data_dir=str(tmp_path)) as broker, kbn.connect(url_of(broker)) as client:
        with pytest.raises(RefusedError, match=r"cannot be read") as caught:
            await client.subscribe("w is_a x:Wine").ready()
        assert caught.value.code == "no_ontology"
        assert "broken" in (await client.ontologies())[0]


@over_sockets
async def test_loading_takes_effect_at_once_and_outlives_the_broker(tmp_path: Path) -> None:
    async with running(data_dir=str(tmp_path)) as broker, kbn.connect(url_of(broker)) as client:
        told = await client.load_ontology("drinks", WINE, source="drinks.ttl")
        assert client.limits.ontology == told["hash"]
        async with client.subscribe("w is_a x:Wine") as stream:
            await client.publish(w="x:merlot")
            assert (await anext(stream))["w"] == "x:merlot"
        rows = await client.ontologies()
        assert [row.get("name") for row in rows[1:]] == ["drinks"]
    async with running(data_dir=str(tmp_path)) as broker, kbn.connect(url_of(broker)) as client:
        assert client.limits.ontology == told["hash"]


@over_sockets
async def test_a_file_that_cannot_be_read_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    name = stored(tmp_path, WINE)
    async with running(data_dir=str(tmp_path)) as broker, kbn.connect(url_of(broker)) as client:
        with pytest.raises(KbnError) as caught:
            await client.load_ontology("bad", b"x:Red rdfs:subClassOf", source="bad.ttl")
        assert caught.value.code == "syntax"
        with pytest.raises(KbnError):
            await client.remove_ontology("nothing")
        assert (await client.ontologies())[0]["hash"] == name


@over_sockets
async def test_a_large_file_comes_in_parts(tmp_path: Path) -> None:
    big = WINE + b"".join(b"x:i%d a x:Red .\n" % n for n in range(6_000))
    async with running(data_dir=str(tmp_path)) as broker, kbn.connect(url_of(broker)) as client:
        told = await client.load_ontology("drinks", big, source="drinks.ttl")
        assert told["terms"] > 6_000


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ('what="load" name="d" part=2 parts=2 data="eA=="', "syntax"),
        ('what="load" name="d" data="?"', "syntax"),
        ('what="load" name="d" part=0 parts=1 data="eA=="', "syntax"),
        ('what="load" data="eA=="', "syntax"),
        ('what="forget" name="d"', "unsupported"),
    ],
)
@over_sockets
async def test_requests_that_make_no_sense_are_refused(said: str, code: str) -> None:
    async with running() as broker:
        raw = await Raw.session(port_of(broker), "ann")
        answer = await raw.ask(f'senp{{version=1 method="ONT" seq=1}} event{{ {said}}}')
        assert f'code="{code}"' in answer
        await raw.close()


@over_sockets
async def test_a_subscription_to_an_unknown_term_stays_and_is_pointed_at(tmp_path: Path) -> None:
    stored(tmp_path, WINE)
    async with (
        running(data_dir=str(tmp_path)) as broker,
        kbn.connect(url_of(broker)) as client,
        client.subscribe("w is_a x:Cider or w is_a x:Wine") as stream,
    ):
        await stream.ready()
        (row,) = await client.subscriptions()
        assert list(row["unknown"]) == ["x:Cider"]
        await client.remove_ontology("drinks")
        (row,) = await client.subscriptions()
        assert sorted(row["unknown"]) == ["x:Cider", "x:Wine"]
        await client.publish(w="x:merlot", n=1)
        await client.load_ontology("drinks", WINE, source="d.ttl")
        await client.publish(w="x:merlot", n=2)
        assert (await anext(stream))["n"] == 2
        (row,) = await client.subscriptions()
        assert list(row["unknown"]) == ["x:Cider"]


@over_sockets
async def test_replacing_ontologies_under_load_loses_and_reorders_nothing(tmp_path: Path) -> None:
    """Who is_a Red hears everything; wine and beer lovers share it, in order, without gap."""
    stored(tmp_path, WINE)
    async with (
        running(data_dir=str(tmp_path), store=None) as broker,
        kbn.connect(url_of(broker)) as client,
        kbn.connect(url_of(broker)) as other,
        client.subscribe("w is_a x:Red", queue=100_000) as red,
        client.subscribe("w is_a x:Wine", queue=100_000) as wine,
        client.subscribe("w is_a x:Beer", queue=100_000) as beer,
    ):
        for stream in (red, wine, beer):
            await stream.ready()
        swapping = True
        published = 0

        async def publish() -> None:
            nonlocal published
            while swapping or published % 20:
                await other.publish(w="x:merlot", n=published)
                published += 1

        task = asyncio.create_task(publish())
        for turn in range(8):
            await client.load_ontology("drinks", (BEER, WINE)[turn % 2], source="d.ttl")
        swapping = False
        await task
        heard = [(await anext(red))["n"] for _ in range(published)]
        assert heard == list(range(published))
        await client.publish(w="x:stout", n=-1)
        await client.load_ontology("drinks", WINE, source="d.ttl")
        await client.publish(w="x:merlot", n=-1)
        told: list[list[object]] = [[], []]
        for heard_by, stream in zip(told, (wine, beer), strict=True):
            while (n := (await anext(stream))["n"]) != -1:
                heard_by.append(n)
            assert heard_by == sorted(heard_by)
        assert sorted(told[0] + told[1]) == list(range(published))
        assert told[1], "some were published while Red was a Beer"


@over_sockets
async def test_an_exchange_is_a_line_in_the_log_and_a_mark_in_the_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = stored(tmp_path, WINE)
    async with (
        running(data_dir=str(tmp_path), store=None) as broker,
        kbn.connect(url_of(broker)) as client,
    ):
        for n in range(3):
            await client.publish(n=n)
        told = await client.load_ontology("drinks", BEER, source="d.ttl")
        assert broker.state.memory is not None
        await client.publish(n=3)
    (line,) = [one for one in capsys.readouterr().err.splitlines() if " ontology: " in one]
    named = rf"drinks \({before[:12]}\), now drinks \({str(told['hash'])[:12]}\), after number 3"
    assert re.search(rf"info .*load drinks in \d+ ms: {named}$", line), line
    stored(tmp_path, WINE)  # and once more while no broker runs
    async with (
        running(data_dir=str(tmp_path), store=None) as broker,
        kbn.connect(url_of(broker)) as client,
    ):
        await client.publish(n=4)
    with open_store(f"sqlite:///{tmp_path}/history.db", read_only=True) as store:
        swaps = swaps_in(store.info()["marks"])  # type: ignore[arg-type]
        assert [swap.seq for swap in swaps] == [3, 4]
        assert swaps[1].at == next(iter(store.log(4))).arrived


@over_sockets
async def test_inner_filters_are_decided_anew_over_stored_history(tmp_path: Path) -> None:
    stored(tmp_path, WINE)
    asked = "end after(1h) { w is_a x:Beer }"
    when = {"KBN_PUB_TYPE": ["START", "END", "INSTANT"]}
    async with running(data_dir=str(tmp_path), store=None) as broker:
        async with (
            kbn.connect(url_of(broker)) as client,
            client.subscribe(asked) as stream,
        ):
            await stream.ready()
            instant = {**when, "KBN_START_TIME": 1_000, "KBN_END_TIME": 1_000}
            await client.publish({**instant, "PUB_ID": "a", "w": "x:merlot"})
            later = {**when, "KBN_START_TIME": 2_000, "KBN_END_TIME": 2_000}
            await client.publish({**later, "PUB_ID": "b", "n": 1})
            await client.load_ontology("drinks", BEER, source="d.ttl")
            await client.publish({**later, "PUB_ID": "c", "n": 2})
            assert (await anext(stream))["n"] == 2
        assert broker.state.memory is not None
        balance = broker.state.core.accounts
        assert balance.refused == 0


@over_sockets
async def test_only_admins_change_ontologies_where_principals_are_configured(
    tmp_path: Path,
) -> None:
    config = tmp_path / "kbn.toml"
    config.write_text(
        '[[principals]]\nname = "root"\ntoken = "r"\nadmin = true\n'
        '[[principals]]\nname = "ann"\ntoken = "a"\nsubscribe = "w is_a x:Wine"\n'
    )
    from kbn.server.config import load
    from kbn.server.run import Broker

    flags = {"http": "none", "store": "none", "identity": "b1", "data_dir": str(tmp_path)}
    broker = Broker(load(config, {}, {"listen": ("ka://127.0.0.1:0",), **flags}))
    await broker.start()
    try:
        async with (
            kbn.connect(url_of(broker), token="r") as root,
            kbn.connect(url_of(broker), token="a") as ann,
        ):
            with pytest.raises(RefusedError) as caught:
                await ann.load_ontology("drinks", WINE, source="d.ttl")
            assert caught.value.code == "forbidden"
            await root.load_ontology("drinks", WINE, source="d.ttl")
            await ann.subscribe("w is_a x:Red").ready()
            with pytest.raises(RefusedError) as caught:
                await ann.subscribe("w is_a x:Beer").ready()
            assert caught.value.code == "forbidden"
    finally:
        await broker.stop()
