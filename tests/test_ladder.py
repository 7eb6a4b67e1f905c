"""The ladder: five steps, each leading to the next; ``test_pages`` runs their blocks."""

from __future__ import annotations

import itertools

from tests.pages import blocks
from tests.server.processes import ROOT

PAGES = sorted((ROOT / "docs" / "ladder").glob("[0-9]-*.md"))


def test_there_are_five_steps_and_each_leads_to_the_next() -> None:
    assert [path.stem[0] for path in PAGES] == ["1", "2", "3", "4", "5"]
    for path, following in itertools.pairwise(PAGES):
        assert f"]({following.name})" in path.read_text(encoding="utf-8")


def test_every_step_has_something_to_type_and_shows_what_comes_of_it() -> None:
    for path in PAGES:
        languages = [block.language for block in blocks(path)]
        assert {"sh", "text"} <= set(languages), path.name
