"""Every dialogue of the data files, over real sockets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.dialogue.player import fits, play
from tests.sockets import over_sockets

FOLDER = Path(__file__).parent


def dialogues() -> list[Any]:
    return [
        pytest.param(dialogue, id=f"{path.stem}-{dialogue['id']}")
        for path in sorted(FOLDER.glob("*.yaml"))
        for dialogue in yaml.safe_load(path.read_text(encoding="utf-8"))
    ]


@pytest.mark.parametrize("dialogue", dialogues())
@over_sockets
async def test_the_broker_keeps_to_the_dialogue(dialogue: dict[str, Any]) -> None:
    await play(dialogue)


def test_a_pattern_fits_only_what_it_spells() -> None:
    assert fits('uid="<uid>" at=<int>}', 'uid="0190c2a0-1234-7abc-8def-0123456789ab" at=5}')
    assert not fits('uid="<uid>"', 'uid="0190c2a0-1234-4abc-8def-0123456789ab"')
    assert not fits("at=<int>}", "at=}")
    assert not fits("senp{a}", "senp{a} ")
