"""Questions to a broker about its history: what was told of an event, and why it matched."""

from __future__ import annotations

from pathlib import Path

import pytest

import kbn
from kbn.errors import RefusedError
from tests.server.history import remembering
from tests.sockets import over_sockets, running, url_of


@over_sockets
async def test_an_event_is_told_as_it_was_published_also_after_a_restart(tmp_path: Path) -> None:
    async with remembering(tmp_path) as broker, kbn.connect(url_of(broker)) as client:
        event = await client.start(kind="storm", sev="warning", at=1_000)
        assert [told["sev"] for told in await client.publications(event)] == ["warning"]
        await client.end(event, sev="clear", at=2_000)
        plain = await client.publish(n=1)
    async with remembering(tmp_path) as broker, kbn.connect(url_of(broker)) as client:
        start, end = await client.publications(event)
        assert (start["sev"], start["KBN_START_TIME"]) == ("warning", 1_000)
        assert (end["sev"], "kind" in end, end["KBN_END_TIME"]) == ("clear", False, 2_000)
        assert [dict(told) for told in await client.publications(plain)] == [{"n": 1}]
        assert await client.publications("unknown") == []


@over_sockets
async def test_who_may_not_subscribe_to_an_event_is_not_told_of_it_either(tmp_path: Path) -> None:
    rights = [{"name": "anonymous", "subscribe": "secret = false"}]
    async with (
        remembering(tmp_path, principals=rights) as broker,
        kbn.connect(url_of(broker)) as client,
    ):
        await client.instant(secret=False, id="open")
        await client.instant(secret=True, id="closed")
        assert len(await client.publications("open")) == 1
        with pytest.raises(RefusedError) as refused:
            await client.publications("closed")
        assert refused.value.code == "forbidden"


@over_sockets
async def test_each_publication_and_each_subscription_is_explained(tmp_path: Path) -> None:
    async with (
        remembering(tmp_path) as broker,
        kbn.connect(url_of(broker), name="ann") as client,
        client.subscribe("k = 2 and start during { k = 1 }"),
    ):
        outer = await client.start(k=1, at=1_000)
        inner = await client.start(k=2, text="é\n" * 3000, at=5_000)
        await client.end(outer, k=1, at=9_000)
        await client.end(inner, k=2, at=9_500)
        start, end = await client.explain("ann/1", inner)
        assert (start["match"], end["match"]) == (True, False)
        assert start["event"]["text"] == "é\n" * 3000
        (alternative,) = start["alternatives"]
        why = alternative["constraints"][-1]["why"]
        assert why == f"1000 ≤ 5000 and it is still going on: within event '{outer}'"
        with pytest.raises(RefusedError) as refused:
            await client.explain("ann/1", "unknown")
        assert refused.value.code == "temporal_missing"


@over_sockets
async def test_a_broker_without_a_history_says_so() -> None:
    async with running() as broker, kbn.connect(url_of(broker)) as client:
        for asked in (client.publications("x"), client.explain("x", "y")):
            with pytest.raises(RefusedError) as refused:
                await asked
            assert refused.value.code == "unsupported"
