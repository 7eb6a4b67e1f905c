"""The two case studies whole: a broker in a process of its own, and the backtest by Spark."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from case_studies.dynamic_logging import __main__ as logging_study
from case_studies.review import read_log
from case_studies.weather import __main__ as weather_study

RECORDED = Path(__file__).parent.parent / "case_studies" / "recorded"
SVG = "{http://www.w3.org/2000/svg}"


def counted(said: str) -> list[int]:
    """The three numbers of the backtest that was printed: of both, of the first and the second."""
    engine, *numbers = re.search(
        r"^backtest of .*, (.*):\n  both: (\d+)\n  only .*: (\d+)\n  only .*: (\d+)$", said, re.M
    ).groups()  # type: ignore[union-attr]
    assert engine == "by Spark"
    return [int(number) for number in numbers]


def drawn(path: Path) -> list[str]:
    """The words of a picture, which can be read by whoever reads XML."""
    root = ElementTree.parse(path).getroot()
    assert root.tag == f"{SVG}svg"
    assert root.find(f"{SVG}title") is not None
    return ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]


def test_storms_of_a_recording_are_told_replayed_and_backtested_by_spark(
    spark: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    words = ["--alerts", "sample", "--speed", "0", "--out", str(tmp_path), "--data-dir", str(data)]
    assert weather_study.main(words) == 0
    said = capsys.readouterr().out
    assert "York asks\n  noaa_msg_severity" in said
    # What is in brackets is part of the question, and none of the terminal's business.
    assert "superbag[equivalent] [geo:HamiltonCountyNE]" in said
    assert counted(said) == [1, 0, 1]
    assert "what was told live is what the history read again says" in said
    assert "this process counts otherwise" not in said
    assert any("York" in text for text in drawn(tmp_path / "weather-alerts.svg"))
    assert len(read_log(data)) > 10


def test_an_attack_of_a_recording_turns_the_log_up_and_spark_counts_the_pattern(
    spark: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = str(RECORDED / "two_attacks.jsonl")
    words = ["--script", script, "--speed", "0", "--out", str(tmp_path)]
    assert logging_study.main(words) == 0
    said = capsys.readouterr().out
    assert "ERROR → INFO → ERROR → INFO → ERROR" in said
    both, only_shorter, only_longer = counted(said)
    assert f"after(2s): the pattern came {both} times" in said
    assert f"after(4s): the pattern came {both + only_longer} times" in said
    assert only_shorter == 0
    assert both > 0
    assert drawn(tmp_path / "logging.svg")
