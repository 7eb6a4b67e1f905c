"""Severe weather: path A, path B and the alerts of a recording, over a real broker."""

from __future__ import annotations

import asyncio
import functools
import io
import json
import re
import threading
from datetime import UTC, datetime
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from rich.console import Console

import ontologies
from case_studies.pace import Pace
from case_studies.review import read_log, review
from case_studies.served import served
from case_studies.weather import __main__ as program
from case_studies.weather import alerts, lead, picture, storms
from case_studies.weather.broadcast import Broadcast, broadcast
from case_studies.weather.bulletins import END, START, WARNING, Alert, Bulletin, in_order
from case_studies.weather.places import TOWNS, by_fips, counties, county_at, near
from case_studies.weather.subscribers import ASKED, AURORA, GENEVA, LOOSER, YORK, in_lines
from case_studies.weather.view import Map, raster
from kbn.client.events import as_notification
from kbn.covering.filters import covers
from kbn.knowledge.build import obtain
from kbn.knowledge.cache import Cache
from kbn.knowledge.request import Request, Source
from kbn.language import parse_subscription
from kbn.model import LogEntry, Notification, Part
from kbn.temporal import replay

SAMPLE = Path(program.__file__).with_name("sample_alerts.json")
EVENING = program.EVENING
MINUTE = storms.MINUTE


def told_of(bulletins: list[Bulletin], data_dir: Path) -> Broadcast:
    with served(data_dir, knows=["nebraska"]) as url:
        return asyncio.run(broadcast(url, bulletins, ASKED, Pace(EVENING, 0)))


def ids(done: Broadcast) -> dict[str, list[str]]:
    return {town: [b.alert.id for b in heard] for town, heard in done.told.items()}


def warning(
    name: str, county: str, begin: int, end: int, severity: str = WARNING
) -> list[Bulletin]:
    alert = Alert(name, "tstorm", severity, (counties()[county],), "spotter")
    return [
        Bulletin(EVENING + begin * MINUTE, START, alert),
        Bulletin(EVENING + end * MINUTE, END, alert),
    ]


# --- the story -----------------------------------------------------------------------------


def test_path_a_reaches_york_and_not_geneva_path_b_the_reverse_and_aurora_both(
    tmp_path: Path,
) -> None:
    bulletins = in_order(
        warning("hall", "Hall", 0, 30)
        + warning("a", "Hamilton", 20, 50)
        + warning("merrick", "Merrick", 100, 130)
        + warning("b", "Hamilton", 120, 150)
    )
    done = told_of(bulletins, tmp_path)
    assert ids(done) == {"York": ["a"], "Geneva": ["b"], "Aurora": ["a", "b"]}
    assert all(b.part == START for heard in done.told.values() for b in heard)


def test_what_is_no_path_reaches_nobody(tmp_path: Path) -> None:
    bulletins = in_order(
        # Buffalo lies west of Hall and is not next door: directions are not transitive.
        warning("buffalo", "Buffalo", 0, 30)
        + warning("born here", "Hamilton", 20, 40)
        # Hall is over before Hamilton starts; a watch in Hall is no warning.
        + warning("hall", "Hall", 50, 60)
        + warning("late", "Hamilton", 61, 70)
        + warning("watched", "Hall", 80, 99, "watch")
        + warning("only watched", "Hamilton", 85, 95)
        # From the east and the south: neither York's way nor Geneva's.
        + warning("york", "York", 120, 150)
        + warning("clay", "Clay", 120, 150)
        + warning("from elsewhere", "Hamilton", 130, 140)
    )
    assert ids(told_of(bulletins, tmp_path)) == {"York": [], "Geneva": [], "Aurora": []}


def test_a_storm_from_both_sides_is_told_to_aurora_once(tmp_path: Path) -> None:
    bulletins = in_order(
        warning("hall", "Hall", 0, 30)
        + warning("merrick", "Merrick", 5, 30)
        + warning("both", "Hamilton", 20, 50)
    )
    assert ids(told_of(bulletins, tmp_path)) == {town: ["both"] for town in ASKED}


def test_the_sample_of_alerts_is_told_as_its_paths_say(tmp_path: Path) -> None:
    reading = alerts.read(alerts.fetch(str(SAMPLE)))
    done = told_of(reading.bulletins, tmp_path)
    assert not done.refused
    a, b = (f"urn:oid:2.49.0.1.840.0.sample.{number}.1" for number in ("004", "008"))
    assert ids(done) == {"York": [a], "Geneva": [b], "Aurora": [a, b]}


def test_the_program_says_so_agrees_with_its_history_and_leaves_a_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    words = ["--speed", "0", "--no-spark", "--out", str(tmp_path), "--data-dir", str(data)]
    assert program.main(words) == 0
    said = capsys.readouterr().out
    assert "path A reached York and not Geneva, path B Geneva and not York" in said
    assert "York was told once. Had it asked for storms from any side, it would have" in said
    drawn = (tmp_path / "weather.svg").read_text(encoding="utf-8")
    assert drawn.startswith("<svg")
    assert "told: York, Aurora" in drawn
    sources = {entry.notification.get("noaa_source") for entry in read_log(data)}
    assert sources == {"spotter", "prediction centre", None}  # none: the end of the broadcast
    looser = review(data, {"york": YORK, "looser": LOOSER})
    assert [entry.uid for entry in looser.only("looser", "york")] == ["storm7-B-1"]
    assert looser.only("york", "looser") == ()


def test_the_program_notices_when_a_town_is_told_the_wrong_thing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "ASKED", {**ASKED, "York": GENEVA})
    assert program.main(["--speed", "0", "--no-spark", "--out", str(tmp_path)]) == 1
    assert "York heard of ['B'], not of ['A']" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--alerts", "/nowhere/at/all.json"], "cannot read the alerts"),
        (["--data-dir", str(Path(__file__).parent)], "is not empty"),
    ],
)
def test_a_wrong_question_is_answered_with_exit_code_2(
    words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert program.main(words) == 2
    assert reason in capsys.readouterr().err


# --- storms ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_every_seed_tells_a_and_b_to_whom_they_concern(seed: int, tmp_path: Path) -> None:
    knowledge = obtain(
        Request((Source.read(ontologies.path("nebraska")),)), Cache(tmp_path)
    ).hierarchy

    entries = []
    for seq, bulletin in enumerate(storms.bulletins(storms.season(seed, EVENING), "x"), 1):
        said: Notification = as_notification(bulletin.event)
        start = bulletin.at if bulletin.part == START else None
        end = bulletin.at if bulletin.part == END else None
        part = Part(bulletin.part)
        entries.append(LogEntry(seq, bulletin.alert.id, part, 0, 0, start, end, said))
    asked = {town: parse_subscription(text) for town, text in ASKED.items()}
    deliveries, _ = replay(entries, asked, knowledge=knowledge)  # type: ignore[arg-type]
    heard = {
        town: [entries[d.seq - 1].uid for d in deliveries if town in d.keys] for town in asked
    }
    assert heard == {"York": ["x-A-1"], "Geneva": ["x-B-1"], "Aurora": ["x-A-1", "x-B-1"]}


def test_a_seed_makes_one_evening_and_another_seed_another() -> None:
    assert storms.season(3, EVENING) == storms.season(3, EVENING)
    assert storms.season(3, EVENING) != storms.season(4, EVENING)


def test_bulletins_come_in_order_and_each_start_has_its_end() -> None:
    bulletins = storms.bulletins(storms.season(5, EVENING), "x")
    assert [b.at for b in bulletins] == sorted(b.at for b in bulletins)
    starts = {b.alert.id: b.at for b in bulletins if b.part == START}
    ends = {b.alert.id: b.at for b in bulletins if b.part == END}
    assert starts.keys() == ends.keys()
    assert all(starts[name] < ends[name] for name in starts)


def test_other_storms_keep_away_from_the_counties_around_hamilton() -> None:
    around = near(frozenset({"Hamilton"}))
    for cell in storms.season(11, EVENING)[2:]:
        assert not around & {county.name for _, _, county in cell.visits()}


# --- the map ---------------------------------------------------------------------------------


def test_each_county_holds_its_own_centre() -> None:
    astray = [c.name for c in counties().values() if county_at(c.centre) is not c]
    assert astray == []
    assert len(by_fips()) == 93


def test_the_towns_lie_where_the_figure_has_them() -> None:
    places = {town.name: county_at(town.place) for town in TOWNS}
    names = {town: county.name for town, county in places.items() if county is not None}
    assert names == {"York": "York", "Geneva": "Fillmore", "Aurora": "Hamilton"}


def test_aurora_covers_both_and_neither_covers_the_other(tmp_path: Path) -> None:
    order = obtain(Request((Source.read(ontologies.path("nebraska")),)), Cache(tmp_path)).hierarchy
    york, geneva, aurora, looser = map(parse_subscription, (YORK, GENEVA, AURORA, LOOSER))
    assert covers(aurora, york, order)
    assert covers(aurora, geneva, order)
    assert not covers(york, geneva, order)
    assert not covers(york, aurora, order)
    assert not covers(york, looser, order)


def test_the_live_view_draws_warnings_notices_and_cells() -> None:
    console = Console(width=100, height=50, record=True, file=io.StringIO())
    cells = storms.season(7, EVENING)
    pace = Pace(EVENING + 60 * MINUTE, 0)
    shown = Map(console, pace, cells)
    for bulletin in storms.bulletins(cells, "x"):
        if bulletin.at <= pace.now():
            shown.said(bulletin)
            shown.told("York", bulletin)
    console.print(shown.drawn())
    text = console.export_text()
    assert "Nebraska, 20:00 UTC" in text
    assert "●" in text
    assert "→ York" in text
    assert {name for row in raster() for name in row if name} == set(counties())


def test_a_picture_of_nothing_is_a_picture() -> None:
    assert "none" in picture.draw([], {"York": []})


def drawn_words(drawn: str) -> dict[str, tuple[float, float]]:
    found = re.findall(r'<text x="([^"]+)" y="([^"]+)"[^>]*>([^<]+)</text>', drawn)
    return {said: (float(x), float(y)) for x, y, said in found}


def evening() -> tuple[list[Bulletin], dict[str, list[Bulletin]]]:
    """Both paths, each from its county to the town's own, and who is told."""
    story = in_order(
        warning("hall", "Hall", 20, 60)
        + warning("a", "Hamilton", 44, 90)
        + warning("york", "York", 85, 120)
        + warning("merrick", "Merrick", 130, 170)
        + warning("b", "Hamilton", 150, 230)
        + warning("fillmore", "Fillmore", 205, 238)
    )
    a, b = (next(x for x in story if x.alert.id == name) for name in "ab")
    return story, {"York": [a], "Geneva": [b], "Aurora": [a, b]}


def test_the_time_before_the_warning_at_home_is_told() -> None:
    story, told = evening()
    assert lead.minutes(story, told) == {"York": 41, "Geneva": 55}  # Aurora is at home
    said = "York was told 41 minutes before its own warning, Geneva 55."
    assert lead.in_words(lead.minutes(story, told)) == said
    assert said in picture.draw(story, told)
    assert lead.minutes(story[:4], {"York": [], "Geneva": []}) == {}
    assert lead.in_words({}) == ""


def test_the_picture_names_its_day_full_hours_and_only_what_is_drawn() -> None:
    story, told = evening()
    words = drawn_words(picture.draw(story, told))
    assert any(said.endswith("; 3 June 2026.") for said in words)
    clocks = sorted(said for said in words if re.fullmatch(r"\d\d:\d\d", said))
    assert clocks == ["20:00", "21:00", "22:00"]
    assert "thunderstorm warning" in words
    assert not {"flood warning", "tornado warning", "watch", "dashed: a storm cell's way"} & {
        *words
    }


def test_the_words_of_the_picture_stand_in_their_own_row_and_frame() -> None:
    drawn = picture.draw(*evening())
    words, frame = drawn_words(drawn), picture.AROUND
    rows = {
        float(y) for y in re.findall(r'<line class="row" x1="640" y1="([^"]+)" x2="1200"', drawn)
    }
    for said, (_, y) in words.items():
        if said.startswith("told: "):
            assert y - 4 in rows, said
    geneva = re.search(r'<text x="([^"]+)"[^>]*text-anchor="end"[^>]*>Geneva</text>', drawn)
    assert geneva is not None
    assert frame.left + 60 < float(geneva[1]) < frame.left + frame.width


@pytest.mark.parametrize(("minutes", "count"), [(5, 1), (60 * 48, 12)])
def test_hours_are_never_none_and_never_too_many(minutes: int, count: int) -> None:
    assert 1 <= len(picture._hours(EVENING + MINUTE, EVENING + minutes * MINUTE)) <= count + 1


def test_a_wish_is_shown_in_lines_that_say_the_same() -> None:
    shown = in_lines(AURORA)
    assert parse_subscription(shown) == parse_subscription(AURORA)
    assert max(map(len, shown.splitlines())) <= 100


def test_the_picture_of_alerts_has_its_own_name(tmp_path: Path) -> None:
    words = ["--speed", "0", "--no-spark", "--out", str(tmp_path), "--alerts", "sample"]
    assert program.main(words) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["weather-alerts.svg"]


# --- the National Weather Service's alerts ------------------------------------------------------


def properties(number: int, kind: str = "Alert", **more: object) -> dict[str, object]:
    said: dict[str, object] = {
        "id": f"m{number}",
        "messageType": kind,
        "event": "Tornado Warning",
        "geocode": {"SAME": ["031081"], "UGC": ["NEC081"]},
        "sent": f"2026-06-03T10:{number:02}:00+00:00",
        "effective": f"2026-06-03T10:{number:02}:00+00:00",
        "onset": None,
        "expires": "2026-06-03T12:00:00+00:00",
        "ends": None,
        "references": [],
    }
    return {**said, **more}


def answer(*messages: dict[str, object]) -> dict[str, object]:
    return {"features": [{"properties": message} for message in messages]}


def brief(reading: alerts.Reading) -> list[tuple[str, str, str]]:
    return [
        (datetime.fromtimestamp(b.at / 1000, UTC).strftime("%H:%M"), b.part, b.alert.id)
        for b in reading.bulletins
    ]


def refers(*numbers: int) -> list[dict[str, str]]:
    return [
        {"identifier": f"m{number}", "sent": f"2026-06-03T10:{number:02}:00+00:00"}
        for number in numbers
    ]


def test_an_alert_starts_at_its_onset_else_when_it_took_effect_and_ends_when_it_says() -> None:
    reading = alerts.read(
        answer(
            properties(1),
            properties(2, onset="2026-06-03T11:00:00+00:00", ends="2026-06-03T11:30:00+00:00"),
        )
    )
    assert brief(reading) == [
        ("10:01", START, "m1"),
        ("11:00", START, "m2"),
        ("11:30", END, "m2"),
        ("12:00", END, "m1"),
    ]


def test_an_update_ends_what_it_refers_to_and_starts_anew() -> None:
    reading = alerts.read(
        answer(
            properties(1),
            properties(5, "Update", references=refers(1)),
            properties(9, "Update", references=refers(1, 5)),
        )
    )
    assert brief(reading) == [
        ("10:01", START, "m1"),
        ("10:05", START, "m5"),
        ("10:05", END, "m1"),
        ("10:09", START, "m9"),
        ("10:09", END, "m5"),
        ("12:00", END, "m9"),
    ]


def test_a_cancel_is_the_end_and_starts_nothing() -> None:
    reading = alerts.read(answer(properties(1), properties(7, "Cancel", references=refers(1))))
    assert brief(reading) == [("10:01", START, "m1"), ("10:07", END, "m1")]


def test_a_cancel_of_what_is_not_here_ends_the_newest_it_names() -> None:
    reading = alerts.read(answer(properties(7, "Cancel", references=refers(3, 2))))
    assert brief(reading) == [("10:07", END, "m3")]


def test_an_end_that_is_not_reached_yet_is_not_said() -> None:
    now = 1_780_484_400_000  # 11:00
    reading = alerts.read(answer(properties(1), properties(2, onset="2026-06-03T11:30:00Z")), now)
    assert brief(reading) == [("10:01", START, "m1")]


def test_an_alert_that_is_over_before_its_onset_ends_as_it_starts() -> None:
    late = properties(1, onset="2026-06-03T11:00:00+00:00")
    reading = alerts.read(answer(late, properties(7, "Cancel", references=refers(1))))
    assert brief(reading) == [("11:00", START, "m1"), ("11:00", END, "m1")]


def test_what_is_not_ours_is_skipped_and_counted_by_reason() -> None:
    kansas = {"SAME": ["020157"], "UGC": ["KSC157"]}
    both = {"SAME": ["020157", "031081", "031185"], "UGC": []}
    reading = alerts.read(
        answer(
            properties(1, geocode=kansas),
            properties(2, geocode=both),
            properties(3, event="Heat Advisory"),
            properties(4, event="Tornado Statement"),
            properties(5, status="Test"),
            properties(6, "Ack"),
        )
    )
    assert reading.taken == 1
    assert reading.skipped == {
        "county elsewhere": 2,
        "no county of Nebraska": 1,
        "other event": 2,
        "not actual": 1,
        "other message type": 1,
    }
    assert [c.name for c in reading.bulletins[0].alert.counties] == ["Hamilton", "York"]


def test_counties_named_by_the_service_s_own_codes_only_are_found() -> None:
    codes = {"UGC": ["NEC081", "NEZ050", "KSC157"]}
    reading = alerts.read(answer(properties(1, geocode=codes)))
    assert [c.name for c in reading.bulletins[0].alert.counties] == ["Hamilton"]
    assert reading.skipped == {"county elsewhere": 1}


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ([], "'features' is expected"),
        ({"features": [{}]}, r"features\[0\]"),
        (answer(properties(1, sent="yesterday")), r"features\[0\].*yesterday"),
        (answer(properties(1), properties(2, geocode=3)), r"features\[1\]"),
    ],
)
def test_what_are_no_alerts_is_refused_with_its_place(document: object, reason: str) -> None:
    with pytest.raises(alerts.AlertsError, match=reason):
        alerts.read(document)


def test_a_file_that_is_no_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "alerts.json"
    path.write_text("<html>", encoding="utf-8")
    with pytest.raises(alerts.AlertsError, match=r"alerts\.json"):
        alerts.fetch(str(path))


def test_alerts_are_read_from_an_address_as_well(tmp_path: Path) -> None:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    (tmp_path / "alerts").write_text(json.dumps(answer(properties(1))), encoding="utf-8")
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(tmp_path))
    )
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        found = alerts.fetch(f"http://127.0.0.1:{server.server_address[1]}/alerts")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert alerts.read(found).taken == 1
