"""Events that last, the past and durable names, as people type them, on a SQLite history."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import kbn
from tests.server.processes import Served, environment, served
from tests.server.processes import kbn as command

THREE = "log_level = 4 and end after(2s) { log_level = 4 and end after(2s) { log_level = 4 } }"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("broker"), "--id", "b1") as made:
        yield made


def run(broker: Served, *words: str) -> str:
    done = command(*words, KBN_BROKER=broker.url)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(broker: Served, *words: str) -> str:
    done = command(*words, KBN_BROKER=broker.url)
    assert (done.returncode, done.stdout) == (2, ""), done.stdout
    return done.stderr


def warn(broker: Served, base: int, *offsets: int) -> list[str]:
    """Publish a warning at each time from the command line; returns the ids."""
    return [
        run(broker, "pub", "--instant", "log_level=4", "--at", str(base + offset)).strip()
        for offset in offsets
    ]


class Listening:
    """A subscription of this test's own, held while commands are run."""

    def __init__(self, broker: Served, asked: str) -> None:
        self.client = kbn.connect_sync(broker.url).open()
        self.stream = self.client.subscribe(asked)

    def heard(self) -> list[str]:
        """The ids of everything so far, ended by a mark that surely matches."""
        with kbn.connect_sync(self.client._client.url) as other:
            other.publish(mark=1)
        ids = []
        while True:
            told = self.stream.get(30)
            if "mark" in told:
                self.client.close()
                return ids
            ids.append(str(told["PUB_ID"]))


def test_three_warnings_within_two_seconds_of_each_other_fire(broker: Served) -> None:
    listening = Listening(broker, f"{THREE} or mark any")
    ids = warn(broker, 1_000_000, 0, 1_500, 3_000)
    assert listening.heard() == [ids[2]]


def test_two_warnings_are_not_enough(broker: Served) -> None:
    listening = Listening(broker, f"{THREE} or mark any")
    warn(broker, 2_000_000, 0, 1_500)
    assert listening.heard() == []


def test_three_warnings_too_far_apart_are_not_enough(broker: Served) -> None:
    listening = Listening(broker, f"{THREE} or mark any")
    warn(broker, 3_000_000, 0, 1_500, 3_501)
    assert listening.heard() == []


def test_explain_tells_of_an_event_in_the_history_as_of_its_arrival(broker: Served) -> None:
    listening = Listening(broker, f"{THREE} or mark any")
    first, second, third = warn(broker, 4_000_000, 0, 1_500, 3_501)
    (row,) = [json.loads(line) for line in run(broker, "subs", "--json").splitlines()]
    asked = ("explain", "--sub", row["subscriber"], "--event-id")
    done = command(*asked, third, KBN_BROKER=broker.url)
    assert done.returncode == 1
    assert (
        f"the nearest was event '{second}', ended 2,001 ms before, limit 2,000 ms" in done.stdout
    )
    # A warning that comes late but happened between is not what the third one found.
    late = warn(broker, 4_000_000, 2_500)[0]
    assert command(*asked, third, KBN_BROKER=broker.url).stdout == done.stdout
    said = command(*asked, late, "--json", KBN_BROKER=broker.url)
    told = json.loads(said.stdout)
    assert (said.returncode, told["match"]) == (0, True)
    assert first in json.dumps(told) or second in json.dumps(told)
    assert "temporal_missing" in refused(broker, *asked, "nobody-published-this")
    assert "kbn subs" in refused(broker, "explain", "--sub", "nobody", "--event-id", third)
    assert listening.heard() == [late]


def test_an_end_repeats_what_its_start_said_unless_it_is_bare(broker: Served) -> None:
    listening = Listening(broker, 'kind = "storm" or bare any or mark any')
    storm = run(
        broker, "pub", "--start", 'kind="storm" n=1', "--at", "2026-01-01T00:00:00Z"
    ).strip()
    assert len(storm) == 36
    assert (
        run(broker, "pub", "--end", storm, "n=2", "--at", "2026-01-01T01:00:00+00:00")
        == f"{storm}\n"
    )
    other = run(broker, "pub", "--start", 'kind="storm"', "--id", "mine", "--json")
    assert json.loads(other) == {"id": "mine"}
    run(broker, "pub", "--end", "mine", "--bare")
    assert listening.heard() == [storm, storm, "mine"]
    with kbn.connect_sync(broker.url) as client:
        start, end = client.publications(storm)
        assert (start["n"], start["KBN_START_TIME"]) == (1, 1_767_225_600_000)
        assert (end["kind"], end["n"], end["KBN_END_TIME"]) == ("storm", 2, 1_767_229_200_000)
        assert set(client.publications("mine")[1]) == {"PUB_ID", "KBN_PUB_TYPE", "KBN_END_TIME"}
    assert "temporal_missing" in refused(broker, "pub", "--end", "never-started")
    assert "temporal_conflict" in refused(
        broker, "pub", "--end", storm, "n=3", "--at", "2027-01-01"
    )


def test_sub_since_prints_the_past_then_the_present(broker: Served) -> None:
    for n in (1, 2):
        run(broker, "pub", f"past={n}")
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "kbn",
            "sub",
            "--since",
            "24h",
            "--json",
            "--count",
            "3",
            "past any",
        ],
        env=environment(KBN_BROKER=broker.url),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == ['{"past": 1}\n', '{"past": 2}\n']
    run(broker, "pub", "past=3")
    assert process.communicate(timeout=60) == ('{"past": 3}\n', "")
    assert process.returncode == 0
    assert run(broker, "sub", "--since", "1970-01-01", "--count", "1", "past any") == "past=1\n"
    assert run(broker, "sub", "--since", "0", "--count", "1", "past any") == "past=1\n"


def test_a_durable_name_gets_what_it_missed_also_over_a_restart(tmp_path: Path) -> None:
    words = ("sub", "--durable", "ann", "--json", "--count")
    with served(tmp_path, "--id", "b1") as broker:
        run(broker, "pub", "n=0")
        process = subprocess.Popen(
            [sys.executable, "-m", "kbn", *words, "1", "n any"],
            env=environment(KBN_BROKER=broker.url),
            stdout=subprocess.PIPE,
            text=True,
        )
        with kbn.connect_sync(broker.url) as client:
            while not client.subscriptions():
                assert process.poll() is None
        run(broker, "pub", "n=1")
        assert process.communicate(timeout=60)[0] == '{"n": 1}\n'
        run(broker, "pub", "n=2")
        assert broker.end(signal.SIGTERM)[0] == 0
    with served(tmp_path, "--id", "b1") as broker:
        run(broker, "pub", "n=3")
        assert run(broker, *words, "2", "n any") == '{"n": 2}\n{"n": 3}\n'
        # Under the same name with another filter, the first is asked no more.
        run(broker, "pub", "n=4")
        run(broker, "pub", "m=1")
        with kbn.connect_sync(broker.url) as client:
            process = subprocess.Popen(
                [sys.executable, "-m", "kbn", *words, "1", "m any"],
                env=environment(KBN_BROKER=broker.url),
                stdout=subprocess.PIPE,
                text=True,
            )
            while [row["subscription"] for row in client.subscriptions()] != ["m any"]:
                assert process.poll() is None
            client.publish(m=2)
        assert process.communicate(timeout=60)[0] == '{"m": 2}\n'


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("pub", "--start", "--instant", "a=1"), "one of --start, --end and --instant"),
        (("pub", "a=1", "--at", "5"), "go with --start"),
        (("pub", "a=1", "--id", "x"), "go with --start"),
        (("pub", "--end", "x", "--id", "y"), "--end says the id itself"),
        (("pub", "--start", "a=1", "--bare"), "--bare goes with --end"),
        (("pub", "--start"), "give an EVENT"),
        (("pub", "--start", "--file", "x"), "--file"),
        (("pub", "--start", "a=1", "--at", "yesterday"), "is no time"),
        (("pub", "--instant", 'PUB_ID="x"'), "temporal_conflict"),
        (("pub", "--instant", "a=1", "--at", "999999999999999"), "time_range"),
        (("sub", "--since", "often", "a any"), "neither an age"),
        (("explain", "--event-id", "x", "a any"), "--event-id goes with --sub"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_was_asked_wrongly_is_said(broker: Served, words: tuple[str, ...], said: str) -> None:
    told = refused(broker, *words)
    assert said in told
    assert "Traceback" not in told


def test_without_a_history_the_past_and_durable_names_are_refused(tmp_path: Path) -> None:
    with served(tmp_path, "--store", "none") as broker:
        for words in (
            ("sub", "--since", "1h", "a any"),
            ("sub", "--durable", "ann", "a any"),
            ("pub", "--end", "x"),
            ("sub", "a any and end during { b any }"),
        ):
            assert refused(broker, *words).startswith("kbn: unsupported: ")
