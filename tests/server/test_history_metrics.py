"""What a broker with a history tells of each publication."""

from __future__ import annotations

from pathlib import Path

import kbn
from tests.server.history import remembering
from tests.server.test_http import HTTP, get
from tests.sockets import over_sockets, running, url_of


def samples(page: str) -> dict[str, float]:
    lines = [line for line in page.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


@over_sockets
async def test_stored_delivered_and_measured_are_counted_by_what_they_were(
    tmp_path: Path,
) -> None:
    async with (
        remembering(tmp_path, http=HTTP) as broker,
        kbn.connect(url_of(broker)) as client,
        client.subscribe("n any and start after(1h) { n = 0 }") as chained,
        client.subscribe("n any and start during { n = 7 }"),
        client.subscribe("n filter(>, last 5) { n any }") as grown,
        client.subscribe("n any") as plain,
    ):
        event = await client.start(n=0, at=1_000)
        await client.end(event, n=0, at=2_000)
        await client.instant(n=1, at=3_000)
        for stream, count in ((plain, 3), (chained, 1), (grown, 1)):
            for _ in range(count):
                await anext(stream)
        told = samples((await get(broker, "/metrics"))[1])
    assert told["kbn_stored_publications"] == 3
    assert told["kbn_pending_publications"] == 0
    assert told["kbn_inner_filters"] == 3
    assert told["kbn_publication_deliveries_count"] == 3
    assert told["kbn_publication_deliveries_sum"] == told["kbn_matches_total"] == 5
    assert told['kbn_publication_deliveries_bucket{le="1.0"}'] == 2
    assert told["kbn_publication_accept_seconds_count"] == 3
    assert told["kbn_publication_total_seconds_count"] == 3
    assert told["kbn_publication_total_seconds_sum"] > 0
    assert told['kbn_store_seconds_count{change="insert"}'] == 2
    assert told['kbn_store_seconds_count{change="update"}'] == 1
    asked = {
        (operator, matched): told[
            f'kbn_operator_seconds_count{{matched="{matched}",operator="{operator}"}}'
        ]
        for operator in ("during", "after", "filter", "relation")
        for matched in ("true", "false")
    }
    assert asked["after", "true"] == asked["filter", "true"] == 1
    assert asked["during", "true"] == asked["relation", "true"] == asked["relation", "false"] == 0
    assert asked["during", "false"] >= 1


@over_sockets
async def test_a_broker_without_a_history_measures_nothing() -> None:
    async with running(http=HTTP) as broker, kbn.connect(url_of(broker)) as client:
        await client.publish(n=1)
        assert "kbn_operator_seconds" not in (await get(broker, "/metrics"))[1]
        assert broker.state.core.statistics.accepted.count == 0
