"""The operator's port, over a socket."""

from __future__ import annotations

import asyncio
import json
from urllib.parse import quote, urlsplit

import pytest

import kbn
from kbn.server.run import Broker
from tests.sockets import over_sockets, running, soon, url_of

HTTP = "127.0.0.1:0"


async def get(broker: Broker, path: str, request: str | None = None) -> tuple[int, str]:
    assert broker.place.http is not None
    where = urlsplit(broker.place.http)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    writer.write((request or f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").encode())
    answer = (await soon(reader.read(), "an answer")).decode()
    writer.close()
    await writer.wait_closed()
    head, _, body = answer.partition("\r\n\r\n")
    assert f"Content-Length: {len(body.encode())}" in head
    return int(head.split(" ")[1]), body


@over_sockets
async def test_health_readiness_and_metrics_are_answered() -> None:
    async with running(http=HTTP) as broker:
        assert await get(broker, "/healthz") == (200, "ok\n")
        assert await get(broker, "/readyz") == (200, "ready\n")
        async with (
            kbn.connect(url_of(broker)) as client,
            client.subscribe("n any") as stream,
        ):
            await client.publish(n=1)
            await client.publish(m=1)
            await anext(stream)
            status, page = await get(broker, "/metrics")
        assert status == 200
        for line in (
            "kbn_publications_received_total 2.0",
            'kbn_publications_total{fate="matched"} 1.0',
            'kbn_publications_total{fate="unmatched"} 1.0',
            "kbn_delivered_total 1.0",
            "kbn_subscriptions 1.0",
            'kbn_unaccounted{law="publications"} 0.0',
            'kbn_unaccounted{law="deliveries"} 0.0',
        ):
            assert line in page.splitlines()


@over_sockets
async def test_subscriptions_that_an_event_would_match_are_listed() -> None:
    async with running(http=HTTP) as broker, kbn.connect(url_of(broker), name="ann") as client:
        cheap = await client.subscribe("price < 80").ready()
        dear = await client.subscribe("price > 100").ready()
        status, body = await get(broker, "/subs?test=" + quote("price=79.5"))
        told = json.loads(body)
        assert (status, told["count"]) == (200, 1)
        assert told["subscriptions"][0]["subscription"] == "price < 80"
        assert told["subscriptions"][0]["subscriber"] == "ann/1"
        assert json.loads((await get(broker, "/subs"))[1])["count"] == 2
        status, body = await get(broker, "/subs?test=" + quote("price="))
        assert (status, json.loads(body)["code"]) == (400, "syntax")
        await cheap.close()
        await dear.close()


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        ("GET /nothing HTTP/1.1\r\n\r\n", 404),
        ("POST /healthz HTTP/1.1\r\n\r\n", 405),
        ("nonsense\r\n\r\n", 400),
    ],
)
@over_sockets
async def test_other_requests_are_refused_politely(request_text: str, status: int) -> None:
    async with running(http=HTTP) as broker:
        assert (await get(broker, "", request_text))[0] == status


@over_sockets
async def test_a_broker_that_drains_is_not_ready() -> None:
    async with running(http=HTTP) as broker:
        assert broker._http is not None
        broker._ready = False
        assert (await get(broker, "/readyz"))[0] == 503
        assert (await get(broker, "/healthz"))[0] == 200


def test_subscriptions_are_told_to_this_machine_only() -> None:
    @over_sockets
    async def ask() -> None:
        async with running(http=HTTP) as broker:
            assert broker._http is not None
            for path in ("/subs", "/subs?test=n%3D1"):
                request = f"GET {path} HTTP/1.1"
                assert broker._http.answer(request, local=True)[0] == 200
                assert broker._http.answer(request, local=False)[0] == 403
            assert broker._http.answer("GET /metrics HTTP/1.1", local=False)[0] == 200

    ask()
