"""What the studies share: told time, a broker of their own, the history read again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest

import kbn
from case_studies import review as reviewing
from case_studies.pace import Pace
from case_studies.review import backtest, review
from case_studies.served import BrokerDiedError, served
from case_studies.svg import element, text
from kbn.errors import UnsupportedError

ASKED = {"cheap": "price < 10", "any price": "price any"}


@pytest.fixture
def history(tmp_path: Path) -> Path:
    with served(tmp_path) as url, kbn.connect_sync(url) as client:
        for price in (5, 15, 25):
            client.publish(price=price)
    return tmp_path


def spark_says(monkeypatch: pytest.MonkeyPatch, **said: int) -> None:
    """Put something in the place of Spark."""
    monkeypatch.setattr(reviewing, "_no_spark", lambda: None)
    job = SimpleNamespace(difference=lambda data_dir, old, new: SimpleNamespace(**said))
    monkeypatch.setattr(reviewing, "import_module", lambda name: job)


def test_a_backtest_counts_what_both_and_what_one_alone_would_be_told(history: Path) -> None:
    found = backtest(history, ASKED, spark=False)
    assert (found.both, found.alone) == (1, {"cheap": 0, "any price": 2})
    assert "no Spark: as was asked" in str(found)
    again = review(history, ASKED)
    assert [e.notification["price"] for e in again.only("any price", "cheap")] == [15, 25]


def test_what_spark_counts_is_told_and_compared(
    history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark_says(monkeypatch, both=1, only_old=0, only_new=2)
    found = backtest(history, ASKED, spark=True)
    assert found.agreed
    assert "by Spark" in str(found)
    spark_says(monkeypatch, both=1, only_old=0, only_new=3)
    assert not backtest(history, ASKED, spark=True).agreed


def test_where_spark_cannot_start_the_reason_is_told(
    history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(data_dir: Path, old: str, new: str) -> None:
        raise UnsupportedError("there is no Java")

    monkeypatch.setattr(reviewing, "_no_spark", lambda: None)
    monkeypatch.setattr(
        reviewing, "import_module", lambda name: SimpleNamespace(difference=refuse)
    )
    assert "no Spark: there is no Java" in str(backtest(history, ASKED, spark=True))


def test_a_broker_that_cannot_start_says_why(tmp_path: Path) -> None:
    with (
        served(tmp_path / "a") as url,
        pytest.raises(BrokerDiedError, match="unreachable"),
        served(tmp_path / "b", listen=url),
    ):
        pass


def test_at_speed_zero_time_is_what_is_waited_for_and_never_goes_back() -> None:
    pace = Pace(1_000, 0)

    async def wait() -> list[int]:
        seen = []
        for moment in (5_000, 3_000, 90_000_000):
            await pace.until(moment)
            seen.append(pace.now())
        return seen

    assert asyncio.run(wait()) == [5_000, 5_000, 90_000_000]
    with pytest.raises(ValueError, match="speed"):
        Pace(0, -1)


def test_a_waiter_is_woken_when_told_time_has_come_and_not_before() -> None:
    pace = Pace(1_000, 1_000)
    asyncio.run(pace.until(3_000))
    assert pace.now() >= 3_000


def test_a_picture_holds_no_markup_of_others() -> None:
    assert text("<b>", 1.0, 2.25) == '<text x="1" y="2.2">&lt;b&gt;</text>'
    assert element("a", title='"') == '<a title="&quot;"/>'
