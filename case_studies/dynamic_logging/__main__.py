"""A web service under a password-guessing attack, and the log before, during and after.

Exit code 0: the level went as it should by the history; 1: it did not; 2: a wrong question.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

import kbn
from case_studies import options
from case_studies.dynamic_logging import picture, script, verdict
from case_studies.dynamic_logging.controller import Changed, pattern
from case_studies.dynamic_logging.handler import ERROR, NAMES
from case_studies.dynamic_logging.story import Told, play
from case_studies.pace import Pace
from case_studies.review import backtest, read_log, review
from case_studies.served import BrokerDiedError, served
from kbn.model import LogEntry

COLOURS = {"ERROR": "bold red", "WARNING": "yellow", "INFO": "cyan", "DEBUG": "dim"}
#: What the history is asked again with, beside the two seconds of the story.
OTHERS = ("1s", "2s", "4s")


class Printer:
    """The operator's screen: a line a record, a rule where the level changes."""

    def __init__(self, console: Console, begun: int) -> None:
        self._console, self._begun = console, begun

    def _second(self, moment: object) -> str:
        assert isinstance(moment, int)
        return f"{(moment - self._begun) / 1000:6.2f} s"

    def opened(self) -> None:
        """The first heading."""
        self._console.rule("[b]before[/b]: only errors are shown", align="left", style="green")

    def said(self, line: kbn.Delivery) -> None:
        level = line["log_level"]
        assert isinstance(level, int)
        name = NAMES[level]
        self._console.print(
            Text(f"{self._second(line['KBN_END_TIME'])}  "),
            Text(f"{name:8}", style=COLOURS.get(name, "bold red")),
            Text(str(line["log_message"])),
            sep="",
        )

    def turned(self, change: Changed) -> None:
        when = self._second(change.at).strip()
        if change.level < ERROR:
            words = f"[b]during[/b]: three failed logins, each within two seconds ({when}): INFO"
        else:
            words = f"[b]after[/b]: calm ({when}): only errors again"
        self._console.rule(words, align="left", style="red" if change.level < ERROR else "green")


def main(arguments: Sequence[str] | None = None) -> int:
    asked = options.parser("dynamic_logging", (__doc__ or "").splitlines()[0])
    asked.add_argument(
        "--calm", type=float, default=8.0, help="seconds without the pattern until quiet (8)"
    )
    asked.add_argument("--script", type=Path, metavar="FILE", help="a recorded script, not a seed")
    given = asked.parse_args(arguments)
    try:
        steps = script.read(given.script) if given.script else script.made(given.seed)
    except (OSError, ValueError) as error:
        print(f"cannot read the script: {error}", file=sys.stderr)
        return 2
    console = Console(highlight=False)
    calm = int(given.calm * 1000)
    with tempfile.TemporaryDirectory(prefix="kbn-logging-") as folder:
        data_dir = given.data_dir or Path(folder)
        with served(data_dir) as url:
            console.print(f"a broker listens on {url}; the service logs to it")
            console.print(f"the operator asks for  log_level >= {ERROR}  and to be told of")
            console.print(f"  {pattern()}\n", soft_wrap=True)
            pace = Pace(int(time.time() * 1000), given.speed)
            printer = Printer(console, pace.start)
            printer.opened()
            told = asyncio.run(play(url, steps, pace, calm, printer))
        # A data directory that is kept may hold earlier stories.
        log = [entry for entry in read_log(data_dir) if entry.arrived >= pace.start]
        _count(console, log, told)
        _others(console, data_dir, pace.start)
        asked_twice = {f"after({limit})": pattern(limit) for limit in ("2s", "4s")}
        tested = backtest(data_dir, asked_twice, not given.no_spark)
        console.print(str(tested), soft_wrap=True)
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / "logging.svg"
    shown = told.ids
    path.write_text(picture.draw(log, shown, told.changes, pace.start), encoding="utf-8")
    console.print(f"\nthe picture: {path}")
    right = _judge(console, log, told, calm, made_here=given.script is None)
    return 0 if right and tested.agreed else 1


def _count(console: Console, log: Sequence[LogEntry], told: Told) -> None:
    """How much was written and how much of it was read, by the level in force."""
    turns = [change.at for change in told.changes]
    shown = told.ids
    table = Table("", "records written", "shown", box=None, pad_edge=False)
    names = ["before", *(("during" if c.level < ERROR else "after") for c in told.changes)]
    for number, name in enumerate(names):
        here = [
            entry
            for entry in log
            if "log_level" in entry.notification
            and sum(turn < (entry.end or entry.at) for turn in turns) == number
        ]
        table.add_row(name, str(len(here)), str(sum(entry.uid in shown for entry in here)))
    console.print()
    console.print(table)


def _others(console: Console, data_dir: Path, begun: int) -> None:
    """What other limits would have made of the same history."""
    found = review(data_dir, {limit: pattern(limit) for limit in OTHERS})
    console.print(f"\nthe same history, asked with other limits ({found.engine}):", soft_wrap=True)
    for limit, entries in found.told.items():
        first = f", first after {((entries[0].end or 0) - begun) / 1000:.2f} s" if entries else ""
        console.print(f"  after({limit}): the pattern came {len(entries)} times{first}")


def _judge(
    console: Console, log: Sequence[LogEntry], told: Told, calm: int, *, made_here: bool
) -> bool:
    """Compare with what the history says; the story made here has one attack and one calm."""
    should = [change.level for change in verdict.expected(log, calm)]
    went = [change.level for change in told.changes]
    if went != should:
        console.print(f"[red]the level went {went}, by the history it should have {should}")
        return False
    if made_here and len(went) != 2:
        console.print(f"[red]one attack should change the level twice, it went {went}")
        return False
    console.print(f"the level went as it should: {' → '.join(NAMES[n] for n in [ERROR, *went])}")
    return True


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokerDiedError as died:
        sys.exit(f"{died}")
