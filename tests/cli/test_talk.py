"""The verbs that talk to a running broker, as people type them."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main

import kbn
from kbn.cli.main import app
from tests.server.processes import Served, environment, served
from tests.server.processes import kbn as command


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("broker"), "--id", "b1", "--store", "none") as made:
        yield made


def run(broker: Served, *words: str) -> str:
    done = command(*words, KBN_BROKER=broker.url)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Subscribed:
    """``kbn sub`` in the background, once the broker holds its subscription."""

    def __init__(self, broker: Served, *words: str) -> None:
        with kbn.connect_sync(broker.url) as client:
            before = {str(row["subscriber"]) for row in client.subscriptions()}
            self.process = subprocess.Popen(
                [sys.executable, "-m", "kbn", "sub", "--broker", broker.url, *words],
                env=environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            # Each question is a round trip, so this waits without sleeping.
            while not (new := {str(r["subscriber"]) for r in client.subscriptions()} - before):
                assert self.process.poll() is None, self.process.communicate()
            (self.id,) = new

    def result(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


def test_sub_prints_what_pub_publishes_and_ends_after_so_many(broker: Served) -> None:
    listening = Subscribed(broker, "--count", "2", "price < 80")
    uid = run(broker, "pub", 'price=79.5 symbol="IBM"').strip()
    assert len(uid) == 36
    run(broker, "pub", "price=81")
    run(broker, "pub", "price=1 tags=[1 2]")
    assert listening.result() == (0, 'price=79.5 symbol="IBM"\nprice=1 tags=[1 2]\n', "")


def test_sub_says_when_the_broker_is_away_and_when_it_is_back(tmp_path: Path) -> None:
    with served(tmp_path, "--store", "none") as broker:
        listening = Subscribed(broker, "--count", "1", "a any")
        assert listening.process.stderr is not None
        broker.end(signal.SIGTERM)
        assert listening.process.stderr.readline() == "kbn: connection lost, trying again\n"
    with served(tmp_path, "--store", "none", "--listen", broker.url) as broker:
        said = listening.process.stderr.readline()
        assert said == ("kbn: connected again; what came meanwhile was not told; see --durable\n")
        with kbn.connect_sync(broker.url) as client:
            while not client.subscriptions():
                assert listening.process.poll() is None
            client.publish(a=1)
        assert listening.result() == (0, "a=1\n", "")


def test_a_term_the_broker_does_not_know_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "a.ttl").write_text(
        "@prefix x: <http://x/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"
        "x:A rdfs:subClassOf x:B ."
    )
    loaded = command("ontology", "load", "a.ttl", cwd=tmp_path)
    assert loaded.returncode == 0, loaded.stderr
    with served(tmp_path) as broker:
        wrong = Subscribed(broker, "--count", "1", "w is_a x:Bb or n = 1")
        right = Subscribed(broker, "--count", "1", "w is_a x:B or n = 1")
        run(broker, "pub", "n=1")
        code, _, err = wrong.result()
        assert (code, err.startswith("kbn: warning: ")) == (0, True), err
        assert "does not know x:Bb: " in err
        assert right.result() == (0, "n=1\n", "")


def test_sub_as_json_prints_one_event_a_line_and_nothing_else(broker: Served) -> None:
    listening = Subscribed(broker, "--json", "--count", "1", "a any")
    told = json.loads(run(broker, "pub", "--json", 'a=1 b=1.0 c=["x" true] d=null'))
    assert list(told) == ["id"]
    code, out, err = listening.result()
    assert (code, err) == (0, "")
    assert out == '{"a": 1, "b": 1.0, "c": ["x", true], "d": null}\n'


def test_pub_takes_a_file_or_standard_input_in_json_or_text(
    broker: Served, tmp_path: Path
) -> None:
    listening = Subscribed(broker, "--json", "--count", "4", "line any")
    path = tmp_path / "events.jsonl"
    path.write_text('{"line": 1}\n\n{"line": 2}\n')
    assert run(broker, "pub", "--file", str(path)) == "2 published\n"
    done = subprocess.run(
        [sys.executable, "-m", "kbn", "pub", "--json"],
        input='line=3\n{"line": 4}\n',
        env=environment(KBN_BROKER=broker.url),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert json.loads(done.stdout) == {"published": 2}
    lines = listening.result()[1].splitlines()
    assert [json.loads(line)["line"] for line in lines] == [1, 2, 3, 4]


def test_a_bad_line_of_a_file_is_named_by_its_number(broker: Served, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"line": 1}\n{"line": \n')
    done = command("pub", "--file", str(path), KBN_BROKER=broker.url)
    assert done.returncode == 2
    assert done.stderr.startswith("kbn: syntax: line 2: ")


def test_a_history_is_not_published_and_it_is_said_why(broker: Served, tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text('{"id": "a", "start": 1, "end": null, "event": {"x": 1}}\n')
    done = command("pub", "--file", str(path), KBN_BROKER=broker.url)
    assert done.returncode == 2
    assert "line 1: this is not an event" in done.stderr
    assert "`kbn store export` and `import`" in done.stderr


def test_who_subs_drops_and_explain_ask_the_running_broker(broker: Served) -> None:
    wide = Subscribed(broker, "--count", "1", "price < 100 and t any")
    narrow = Subscribed(broker, "--count", "1", "price < 80 and t any")
    assert json.loads(run(broker, "who", "--json"))["id"] == "b1"
    assert "publications.received" in run(broker, "who")
    rows = [json.loads(line) for line in run(broker, "subs", "--json").splitlines()]
    assert {row["subscription"] for row in rows} == {
        "price < 100 and t any",
        "price < 80 and t any",
    }
    tree = run(broker, "subs", "--tree").splitlines()
    assert tree[0].startswith("price < 100")
    assert tree[1].startswith("  price < 80")
    assert run(broker, "drops") == "nothing was dropped\n"
    held = run(broker, "explain", "--sub", narrow.id, "--event", "price=79 t=1")
    assert held.startswith("price=79 t=1: match")
    missed = command("explain", "--sub", narrow.id, "--event", "price=81 t=1",
                     "--json", KBN_BROKER=broker.url)  # fmt: skip
    assert missed.returncode == 1
    assert json.loads(missed.stdout)["match"] is False
    unknown = command("explain", "--sub", "nobody", "--event", "a=1", KBN_BROKER=broker.url)
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "kbn subs" in unknown.stderr
    run(broker, "pub", "price=1 t=1")
    assert wide.result()[0] == narrow.result()[0] == 0


def test_bench_prints_its_figures_and_loses_nothing(broker: Served) -> None:
    told = json.loads(run(broker, "bench", "--count", "300", "--subs", "7", "--json"))
    assert told["publications"] == told["deliveries"] == 300
    assert told["latency_ms_p50"] <= told["latency_ms_p99"]
    far = command("bench", "--broker", "ka://192.0.2.1:1969")
    assert far.returncode == 2
    assert far.stderr.startswith("kbn: forbidden: ")


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as once:
        return int(once.getsockname()[1])


@pytest.mark.parametrize(
    "words",
    [("pub", "a=1"), ("sub", "a any"), ("who",), ("subs",), ("drops",), ("bench",),
     ("explain", "--sub", "x", "--event", "a=1")],
    ids=lambda words: words[0],
)  # fmt: skip
def test_without_a_broker_one_line_says_so_and_the_exit_code_is_two(
    words: tuple[str, ...],
) -> None:
    done = command(*words, KBN_BROKER=f"ka://127.0.0.1:{closed_port()}")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("kbn: unreachable: cannot reach the broker at ka://127.0.0.1:")
    assert "is `kbn serve` running?" in line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("pub", "a="), "kbn: syntax:"),
        (("pub", "a=1", "--file", "x"), "either EVENT or --file"),
        (("pub", "--file", "/nowhere"), "cannot read /nowhere"),
        (("sub", "price <"), "kbn: syntax:"),
        (("sub", "--count", "0", "a any"), "--count"),
        (("who", "--broker", "http://x"), "kbn: unsupported:"),
        (("who", "--broker", "senp://127.0.0.1:1"), "ka://"),
        (("who", "--broker", "nonsense"), "kbn: syntax:"),
        (("who", "--ca", "/nowhere.pem"), "/nowhere.pem"),
        (("explain", "--event", "a=1"), "either FILTER or --sub"),
        (("explain", "a any", "--sub", "x", "--event", "a=1"), "either FILTER or --sub"),
        (("nonsense",), "No such command"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_was_asked_wrongly_goes_to_standard_error_with_exit_two(
    broker: Served, words: tuple[str, ...], said: str
) -> None:
    done = command(*words, KBN_BROKER=broker.url)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def options() -> Iterator[tuple[str, str, object]]:
    root = typer.main.get_command(app)
    pending = [("kbn", root)]
    while pending:
        name, verb = pending.pop()
        for child, found in getattr(verb, "commands", {}).items():
            pending.append((f"{name} {child}", found))
        yield name, "help", verb.help
        for parameter in verb.params:
            yield name, parameter.name or "", getattr(parameter, "help", None)


@pytest.mark.parametrize(("verb", "option", "text"), list(options()), ids=str)
def test_every_verb_and_every_option_is_explained(verb: str, option: str, text: object) -> None:
    assert isinstance(text, str)
    assert text.strip(), f"{verb} {option} has no help"
