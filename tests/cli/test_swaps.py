"""The verbs over all of history say where their window crosses an exchange of ontologies."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from datastore.spark.source import History
from datastore.swaps import Swap
from kbn.cli.sparks import times, window


def test_a_window_that_crosses_an_exchange_says_so_on_standard_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    history = History(None, 9, 2_000, swaps=(Swap(5, 1_000),))  # type: ignore[arg-type]
    window(history, times("1001", None, None))
    assert capsys.readouterr().err == ""
    window(history, times(None, None, None))
    said = capsys.readouterr().err
    assert said == (
        "ontologies changed after number 5, 1970-01-01T00:00:01.000Z: here one decides all of it\n"
    )
