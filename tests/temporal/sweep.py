"""Long random histories against the definition: ``python -m tests.temporal.sweep [N] [SEED]``.

Hypothesis finds short stories; these are long ones, dense enough that windows
overflow, memory evicts, events are late, come back and undo each other. Everything
follows from the seed. Prints one JSON object with the counters.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from unittest import mock

from kbn.model import Bag, Constraint, Filter, Subscription
from kbn.model.operators import (
    After,
    Allen,
    BagKind,
    BagOp,
    Content,
    During,
    Relation,
    Semantic,
    Window,
)
from kbn.model.time import END_TIME, PUB_TYPE, TIME_ATTRIBUTES
from kbn.temporal import Limits
from tests.temporal.rig import Rig
from tests.temporal.worlds import END, START, publication

_COMPARED = (*Content, Semantic.IS_A, BagOp(BagKind.SUBBAG, Content.LE), BagOp(BagKind.BAGEQ))


def _publication(draw, now):
    part = draw.choice(["START", "START", "END", "END", "END", "INSTANT", "PLAIN"])
    number = draw.randrange(max(0, now // 6 - 4), now // 6 + 5)
    event = f"e{number}"
    content = {
        name: draw.choice([0, 1, 2, 1.0, "x", "xy", Bag([1, 2])])
        for name in ("a", "b")
        if draw.random() < 0.7
    }
    late = draw.choice([0, 0, 0, 1, 5, 30])
    end = max(0, now - late)
    start = max(0, end - draw.choice([0, 0, 1, 2, 5, 17, 40]))
    usual = number * 5  # so that START and an END that states it often agree
    if draw.random() < 0.5:
        start = usual
    if part == "PLAIN":
        return publication(part, **content), end
    if part == "START":
        return publication(part, event, start, **content), end
    if part == "INSTANT":
        return publication(part, event, end, end, **content), end
    stated = usual if usual <= end and draw.random() < 0.4 else None
    return publication(part, event, stated, end, **content), end


def _flat(draw):
    match draw.randrange(5):
        case 0:
            return Constraint(PUB_TYPE, BagOp(BagKind.SUPERBAG), draw.choice([START, END]))
        case 1:
            return Constraint(draw.choice("ab"), Content.ANY)
        case _:
            op = draw.choice([Content.EQ, Content.NE, Content.LE, Content.GE])
            return Constraint(draw.choice("ab"), op, draw.randrange(3))


def _temporal(draw, depth):
    inner = _subscription(draw, depth - 1)
    moment = draw.choice(TIME_ATTRIBUTES)
    match draw.randrange(4):
        case 0:
            return Constraint(moment, During(), inner)
        case 1:
            return Constraint(moment, After(draw.choice([1, 3, 10, 60])), inner)
        case 2:
            name = draw.choice(["a", "a", "b", PUB_TYPE, *TIME_ATTRIBUTES])
            return Constraint(name, Window(draw.choice(_COMPARED), draw.choice([1, 3, 9])), inner)
        case _:
            op = Relation(draw.choice(tuple(Allen)), draw.choice([0, 0, 1, 4]))
            return Constraint(END_TIME, op, inner)


def _subscription(draw, depth, certain=False):
    def one():
        held = [_flat(draw) for _ in range(draw.choice([0, 1, 1]))]
        if depth and (certain or draw.random() < 0.6):
            held.append(_temporal(draw, depth))
        return Filter(held)

    return Subscription(one() for _ in range(draw.choice([1, 1, 2])))


def run(seed: int, length: int = 120) -> Counter[str]:
    """One story; raises ``AssertionError`` where memory and definition differ."""
    draw = random.Random(seed)
    limits = Limits(draw.choice([0, 2, 5, 1000]), draw.choice([0, 3]), draw.choice([None, 4, 20]))
    counted: Counter[str] = Counter()
    with mock.patch("kbn.temporal.node.SLACK", 0):
        rig = Rig(limits)
        for _ in range(3):
            rig.subscribe(_subscription(draw, draw.choice([1, 2, 3]), certain=True))
        for now in range(length):
            match draw.randrange(24):
                case 0:
                    rig.subscribe(_subscription(draw, draw.choice([1, 2]), certain=True))
                case 1 | 2:
                    rig.fill()
                case 3:
                    rig.unsubscribe()
                case 4:
                    rig.fail()
                case 5:
                    if draw.random() < 0.3:
                        rig.restart()
                case 6 | 7 | 8 | 9:
                    rig.commit(draw.randint(1, 8))
                case _:
                    rig.publish(*_publication(draw, now), 1)
            nodes = rig.engine.memory.nodes.values()
            counted["evicting_nodes"] += sum(node.gone is not None for node in nodes)
    counted["publications"] = len(rig.naive.entries)
    counted["matches"] = sum(len(found) for _, found in rig.told)
    counted["past_questions"] = rig.store.asked
    return counted


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    total: Counter[str] = Counter()
    for seed in range(first, first + count):
        try:
            total += run(seed)
        except BaseException:
            print(json.dumps({"seed": seed, "differences": 1}))  # noqa: T201
            raise
    print(json.dumps({"stories": count, "differences": 0, **total}))  # noqa: T201


if __name__ == "__main__":
    main()
