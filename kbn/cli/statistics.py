"""What ``kbn mine`` found, kept beside the store it was found in.

A file of its own, since a running broker has the store, and mining is done beside it. It
carries the store's id: statistics of another store are not taken for this one's.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

_NAME = "statistics.json"
#: Delta has statistics of the first 32 columns: what is left for three of each name.
MOST = 8
#: An attribute of fewer publications than this share is not worth columns of its own.
_SHARE = 0.05
_FLAT = ("long", "double", "string")


def statistics_file(url: str, data_dir: Path) -> Path:
    """Where the statistics of a store are: beside its file, in its folder, or in the data
    directory if it is a database."""
    scheme, _, rest = url.split("?", maxsplit=1)[0].partition(":///")
    path = Path(unquote(rest))
    if scheme == "sqlite":
        return path.with_name(f"{path.stem}-{_NAME}")
    return path / _NAME if scheme == "delta" else data_dir / _NAME


def keep(path: Path, said: dict[str, Any]) -> None:
    """Write the whole file or leave the old one. Raises ``OSError``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.write_text(json.dumps(said, ensure_ascii=False, indent=1) + "\n", "utf-8")
    new.replace(path)


def kept(path: Path, store_id: object) -> dict[str, Any] | None:
    """What is kept of the store with this id; None: nothing that can be read."""
    try:
        held = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return held if isinstance(held, dict) and held.get("store_id") == store_id else None


def statistics_of(url: str, data_dir: Path, info: Mapping[str, object]) -> dict[str, Any] | None:
    """For people: where the statistics of a store are, from when, and of how much."""
    path = statistics_file(url, data_dir)
    held = kept(path, info.get("store_id"))
    if held is None:
        return None
    made = datetime.fromtimestamp(held["made"] / 1000, UTC).isoformat(timespec="seconds")
    return {"made": made, "entries": held["entries"], "file": str(path)}


def worth_promoting(entries: int, found: list[dict[str, Any]]) -> list[str]:
    """Names that many publications have and that tell them apart, best first."""
    score: dict[str, float] = {}
    present: dict[str, int] = {}
    for row in found:
        name, count, values = row["name"], row["count"], row["values"]
        if row["type"] in _FLAT and values > 1:
            present[name] = present.get(name, 0) + count
            score[name] = score.get(name, 0.0) + count * (1 - 1 / values)
    often = [name for name in score if present[name] >= _SHARE * entries]
    return sorted(often, key=lambda name: (-score[name], name))[:MOST]
