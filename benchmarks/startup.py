"""How long a person waits for the first answer of a command.

``match``, ``help``, ``covers`` and ``parse`` are whole runs of the program, from a fresh
interpreter to its exit, and so is ``python``, an interpreter that does nothing:
what no program can undercut on this machine. Every case runs once before the
clock does, so that compiled files are there; rounds of all cases are interleaved.
A run that does not answer as it should makes its case void.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from statistics import median

from benchmarks._report import Report, arguments

_KBN = (sys.executable, "-m", "kbn")
#: The command of each case, what it prints first, and its exit code.
RUNS: dict[str, tuple[Sequence[str], str, int]] = {
    "python": ((sys.executable, "-c", "print('here')"), "here", 0),
    "match": ((*_KBN, "match", "price < 80", "--event", "price=79.5"), "match", 0),
    "help": ((*_KBN, "--help"), "Usage: ", 0),
    "covers": ((*_KBN, "covers", "x <= 4", "x < 5.0"), "no", 1),
    "parse": ((*_KBN, "parse", "price < 80", "--to", "senp"), "filter{ price <80}", 0),
}


def run(case: str) -> tuple[float, bool]:
    """Seconds of one run, and whether it answered as it should."""
    command, begins, code = RUNS[case]
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    taken = time.perf_counter() - began
    return taken, done.returncode == code and done.stdout.lstrip().startswith(begins)


def main() -> None:
    options = arguments("startup", tuple(RUNS))
    report = Report("startup", options.json)
    rounds = 3 if options.quick else 11
    taken: dict[str, list[float]] = {case: [] for case in options.cases}
    wrong = {case for case in options.cases if not run(case)[1]}
    for _ in range(rounds):
        for case in options.cases:
            seconds, right = run(case)
            taken[case].append(seconds)
            wrong |= set() if right else {case}
    for case, times in taken.items():
        void = {"void": True, "reason": "it did not answer as it should"} if case in wrong else {}
        report.add(case, "ready_s", median(times), "s", rounds, **void)


if __name__ == "__main__":
    main()
