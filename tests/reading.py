"""A page from its first block to its last, and what it shows compared with what came."""

from __future__ import annotations

import os
from pathlib import Path

from tests.pages import Block, blocks, matches
from tests.reader import Reader, Said


def read_through(path: Path, reader: Reader) -> int:
    """Type a whole page and compare what it shows; returns how many blocks were run."""
    held = blocks(path)
    done = 0
    last = Said(0, "")
    where = os.getcwd()
    os.chdir(reader.folder)
    try:
        for block, after in zip(held, [*held[1:], Block("", None, "")], strict=True):
            last = _typed(block, after, reader, last)
            done += block.runs
        reader.leave()
    finally:
        os.chdir(where)
        reader.give_up()
    return done


def _typed(block: Block, after: Block, reader: Reader, last: Said) -> Said:
    match block.kind:
        case "sh", "broker":
            for line in block.text.splitlines():
                reader.serve(line)
        case "sh", "listener":
            for line in block.text.splitlines():
                reader.listen(line)
        case "sh", (None | "no broker") as title:
            told = after.kind == ("text", None)
            last = reader.run(block.text, alone=title is not None, shown=told)
            assert "Traceback" not in last.error, f"{block.place}: {last.error}"
            # What fails says why, what says no shows it; a page that shows neither has neither.
            shown = {("text", "error"): 2, ("text", None): min(last.code, 1)}
            assert last.code == shown.get(after.kind, 0), f"{block.place}: {last}"
        case "python", (None | "connected"):
            last = reader.execute(block)
        case "text", None:
            assert matches(last.out, block.text), f"{block.place}: {last.out}"
        case "text", "error":
            assert matches(last.error, block.text), f"{block.place}: {last.error}"
        case "text", "broker":
            assert matches(reader.standing(), block.text), reader.standing()
        case "text", "listener":
            said = reader.heard(block.text)
            assert matches(said, block.text), f"{block.place}: {said}"
        case _:
            pass  # Read, not run: tests/test_pages.py holds every kind to be one it knows.
    return last
