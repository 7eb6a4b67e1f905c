"""The tree of errors and the page that explains it say the same."""

from __future__ import annotations

import re
from pathlib import Path

import senp.errors
from kbn.errors import REFUSALS, KbnError

PAGE = Path(__file__).parent.parent / "docs" / "errors.md"


def all_below(kind: type[KbnError]) -> set[type[KbnError]]:
    return {kind}.union(*(all_below(below) for below in kind.__subclasses__()))


def test_every_code_has_an_anchor_of_its_own_on_the_page():
    anchors = re.findall(r'<a id="([a-z_]+)">', PAGE.read_text("utf-8"))
    assert len(anchors) == len(set(anchors))
    assert senp.errors.WireError in all_below(KbnError)
    assert {kind.code for kind in all_below(KbnError)} | REFUSALS <= set(anchors)
