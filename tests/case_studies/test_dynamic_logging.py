"""The log that turns itself up: the same program, a real broker, recorded visitors."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from case_studies.dynamic_logging import __main__ as program
from case_studies.dynamic_logging import picture, script, verdict
from case_studies.dynamic_logging.controller import Changed, Levels, pattern
from case_studies.dynamic_logging.handler import ERROR, INFO
from case_studies.dynamic_logging.story import Told, play
from case_studies.pace import Pace
from case_studies.review import read_log, review
from case_studies.served import served

RECORDED = Path(__file__).parent / "recorded"
BEGUN = 1_700_000_000_000
CALM = 8_000


def told_by(name: str, data_dir: Path) -> Told:
    """Play a recorded script without waiting; the broker is a process of its own."""
    steps = script.read(RECORDED / f"{name}.jsonl")
    with served(data_dir) as url:
        return asyncio.run(play(url, steps, Pace(BEGUN, 0), CALM))


def went(told: Told) -> list[tuple[int, int]]:
    return [(change.at - BEGUN, change.level) for change in told.changes]


def messages(told: Told) -> list[str]:
    return [str(line["log_message"]) for line in told.lines]


def test_two_failures_change_nothing(tmp_path: Path) -> None:
    told = told_by("two_failures", tmp_path)
    assert went(told) == []
    assert messages(told) == ["report not written: disk full"]


def test_three_failures_spread_out_change_nothing(tmp_path: Path) -> None:
    told = told_by("three_spread_out", tmp_path)
    assert went(told) == []
    assert messages(told) == ["report not written: disk full"]


def test_three_failures_each_within_two_seconds_change_the_level_and_calm_brings_it_back(
    tmp_path: Path,
) -> None:
    told = told_by("three_in_a_row", tmp_path)
    # The request is made at 4,000 ms and 5,000 ms; the failure is its second record.
    assert went(told) == [(4_001, INFO), (5_001 + CALM, ERROR)]
    assert messages(told) == [
        "report not written: disk full",
        "login of 'guest' tried from 192.0.2.4",
        "'guest' came in",
        "login of 'admin' tried from 203.0.113.9",
        "login of 'admin' failed",
        "a report was asked for from 192.0.2.4",
        "report not written: disk full",
        "report not written: disk full",
    ]


def test_a_second_attack_is_noticed_as_the_first_was_and_a_gap_breaks_the_row(
    tmp_path: Path,
) -> None:
    told = told_by("two_attacks", tmp_path)
    assert went(told) == [
        (2_001, INFO),
        (2_001 + CALM, ERROR),
        (24_501, INFO),
        (24_501 + CALM, ERROR),
    ]


@pytest.mark.parametrize("name", ["three_spread_out", "three_in_a_row", "two_attacks"])
def test_history_read_again_says_what_happened_live(tmp_path: Path, name: str) -> None:
    told = told_by(name, tmp_path)
    log = read_log(tmp_path)
    assert verdict.expected(log, CALM) == told.changes
    again = review(tmp_path, {"pattern": pattern()}).told["pattern"]
    assert [entry.end for entry in again] == verdict.alarms(log)


def test_the_program_ends_well_and_leaves_the_picture_of_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert program.main(["--speed", "0", "--no-spark", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert said.index("before") < said.index("during") < said.index("after:")
    assert "ERROR → INFO → ERROR" in said
    drawn = (tmp_path / "logging.svg").read_text(encoding="utf-8")
    shown = Path(picture.__file__).with_name("picture.svg").read_text(encoding="utf-8")
    assert drawn == shown, "draw it with --speed 0 --no-spark and copy it"


@given(st.lists(st.integers(0, 40_000), unique=True, max_size=9).map(sorted))
def test_words_of_changes_are_never_over_each_other(moments: list[int]) -> None:
    changes = [Changed(at, ERROR if n % 2 else INFO) for n, at in enumerate(moments)]
    placed = picture.labels(changes, lambda moment: 110 + moment * 980 / 40_000)
    assert all("in a row: INFO" in said for said, *_ in placed[:1])
    placed = [label for label in placed if label[0]]
    for (said, left, up), (_, other, height) in itertools.combinations(placed, 2):
        apart = left + len(said) * picture.LETTER <= other
        assert up != height or apart


def test_the_program_notices_a_level_that_went_astray(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdict, "expected", lambda log, calm: [])
    assert program.main(["--speed", "0", "--no-spark", "--out", str(tmp_path)]) == 1


def test_a_script_that_cannot_be_read_is_a_wrong_question(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"at": 1, "do": "visit"}\n{"at": 2, "do": "dance"}\n')
    assert program.main(["--script", str(bad)]) == 2
    assert "line 2" in capsys.readouterr().err


@pytest.mark.parametrize("seed", range(20))
def test_every_seed_tells_the_same_story(seed: int) -> None:
    failures = [step.at for step in script.made(seed) if step.fails]
    rows = [1]
    for before, now in itertools.pairwise(failures):
        rows.append(rows[-1] + 1 if now - before <= 2_000 else 1)
    assert rows == [1, 2, 1, 1, 1, 1, 2, 3, *range(4, 12), 1]


def test_each_alarm_prolongs_the_loud_time_and_none_shortens_it() -> None:
    levels = Levels(calm=100)
    assert levels.level == ERROR
    assert levels.alarmed(1_000) == INFO
    assert levels.alarmed(1_050) == INFO
    levels.alarmed(1_020)
    assert levels.passed(1_149) == INFO
    assert levels.passed(1_150) == ERROR
    assert levels.until is None


def test_what_should_happen_has_two_turns_for_each_attack() -> None:
    assert verdict.expected([], CALM) == []
    assert Changed(1, INFO) != Changed(1, ERROR)
