"""What every study takes on its command line."""

from __future__ import annotations

import argparse
from pathlib import Path

OUT = Path("case-study-out")


def parser(name: str, story: str) -> argparse.ArgumentParser:
    """A parser with the common options; a study adds its own."""
    made = argparse.ArgumentParser(prog=f"python -m case_studies.{name}", description=story)
    made.add_argument("--seed", type=int, default=7, help="another story of the same kind")
    made.add_argument(
        "--speed", type=_speed, default=1.0, help="how fast told time runs; 0 does not wait at all"
    )
    made.add_argument(
        "--no-spark", action="store_true", help="read the history again without Spark"
    )
    made.add_argument(
        "--out", type=Path, default=OUT, metavar="DIR", help=f"where pictures go ({OUT})"
    )
    made.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="keep the broker's history here afterwards"
    )
    return made


def _speed(text: str) -> float:
    speed = float(text)
    if not 0 <= speed <= 1000:
        raise argparse.ArgumentTypeError("speed is between 0 and 1000")
    return speed
