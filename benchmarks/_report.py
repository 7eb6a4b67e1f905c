"""How every benchmark speaks: one JSON object per line, or a table for people.

A benchmark is a module with a ``main`` that does

    options = arguments("codec", ("pub4", "sub4"))
    report = Report("codec", options.json)
    report.add("pub4", "decode_per_s", 312_000, "1/s", 7)
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import NamedTuple


class Options(NamedTuple):
    """What the command line asked for; unpacks as ``json, cases, quick``."""

    json: bool
    cases: list[str]
    quick: bool


def arguments(bench: str, cases: Sequence[str], argv: Sequence[str] | None = None) -> Options:
    """Read ``--json [--case CASE]... [--quick]``; without ``--case`` all cases run."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{bench}")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    parser.add_argument("--case", action="append", choices=cases, help="repeatable; default: all")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    given = parser.parse_args(argv)
    return Options(given.json, given.case or list(cases), given.quick)


class Report:
    """Prints figures as they come in; the table's header before the first one."""

    def __init__(self, bench: str, json: bool) -> None:
        self.bench = bench
        self.json = json
        self._headed = False

    def add(
        self, case: str, metric: str, value: float, unit: str, n: int, **extra: object
    ) -> None:
        """One figure: ``n`` is how many rounds it is the median of.

        ``extra`` goes into the line as it is, such as ``void=True, reason="..."``.
        """
        rounded = _rounded(value)
        line = {
            "bench": self.bench,
            "case": case,
            "metric": metric,
            "value": rounded,
            "unit": unit,
            "n": n,
            **extra,
        }
        if self.json:
            print(json.dumps(line), flush=True)
            return
        if not self._headed:
            self._headed = True
            print(f"{'case':<20} {'metric':<24} {'value':>14} {'unit':<6} {'n':>4}")
        more = "  ".join(f"{key}={value}" for key, value in extra.items())
        shown = f"{rounded:,}"
        print(f"{case:<20} {metric:<24} {shown:>14} {unit:<6} {n:>4}  {more}".rstrip(), flush=True)


def _rounded(value: float) -> float:
    """Enough digits to compare, no more: whole numbers from 1000 up, else four digits."""
    if isinstance(value, int):
        return value
    return round(value) if abs(value) >= 1000 else float(f"{value:.4g}")
