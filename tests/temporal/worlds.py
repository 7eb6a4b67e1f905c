"""Small histories and subscriptions in which everything meets, and a store in memory."""

from __future__ import annotations

from hypothesis import strategies as st

from kbn.model import Bag, Constraint, Decision, Filter, LogEntry, Notification, Subscription
from kbn.model.events import MergedEvent, merge_all
from kbn.model.operators import (
    After,
    Allen,
    BagKind,
    BagOp,
    Content,
    During,
    Related,
    Relation,
    Semantic,
    Window,
)
from kbn.model.past import Box
from kbn.model.settled import Settled, fingerprint
from kbn.model.time import END_TIME, PUB_ID, PUB_TYPE, START_TIME, TIME_ATTRIBUTES
from kbn.temporal.allen import contains

START, END = Bag(["START"]), Bag(["END"])
INSTANT = Bag(["START", "END", "INSTANT"])
TYPES = {"START": START, "END": END, "INSTANT": INSTANT}


class Parity:
    """An ontology of small numbers: ``v op c`` if they are both odd or both even."""

    def holds(self, op, value, operand):
        if not isinstance(value, int) or not isinstance(operand, int):
            return False
        same = value % 2 == operand % 2
        return not same if op in (Semantic.NOT_EQUIVALENT, Semantic.IS_NOT_A) else same


def publication(part, event=None, start=None, end=None, **attributes):
    """A notification of the given part; PLAIN has no temporal attribute."""
    if part == "PLAIN":
        return Notification(attributes)
    said = {PUB_ID: event, PUB_TYPE: TYPES[part]}
    if start is not None:
        said[START_TIME] = start
    if end is not None:
        said[END_TIME] = end
    return Notification({**said, **attributes})


ids = st.sampled_from(["p", "q", "r", "s", "t"])
times = st.integers(0, 12)
contents = st.dictionaries(
    st.sampled_from(["a", "b"]),
    st.one_of(st.integers(0, 2), st.sampled_from([1.0, "x", "xy", Bag([1, 2]), True])),
    max_size=2,
)


@st.composite
def publications(draw):
    """A publication that often is acceptable; late, bare, repeated and undoing ones too."""
    part = draw(st.sampled_from(["START", "END", "END", "INSTANT", "PLAIN"]))
    event, content = draw(ids), draw(contents)
    start = draw(times)
    if part == "PLAIN":
        return publication(part, **content), start
    if part == "START":
        return publication(part, event, start, **content), start
    if part == "INSTANT":
        return publication(part, event, start, start, **content), start
    end = draw(times)
    stated = draw(st.one_of(st.none(), st.integers(0, end)))
    return publication(part, event, stated, end, **content), end


logs = st.lists(publications(), max_size=25)

_compared = st.one_of(
    st.sampled_from(list(Content)),
    st.sampled_from(list(Semantic)),
    st.builds(Related, st.just("x:y")),
    st.builds(
        BagOp, st.sampled_from(list(BagKind)), st.sampled_from([None, Content.LT, Semantic.IS_A])
    ),
)
_flat = st.one_of(
    st.builds(
        Constraint,
        st.sampled_from(["a", "b"]),
        st.sampled_from([Content.EQ, Content.NE, Content.LT, Content.GE]),
        st.integers(0, 2),
    ),
    st.builds(Constraint, st.sampled_from(["a", "b"]), st.just(Content.ANY)),
    st.builds(Constraint, st.just("a"), st.just(Semantic.IS_A), st.integers(0, 2)),
    st.builds(
        Constraint,
        st.just(PUB_TYPE),
        st.just(BagOp(BagKind.SUPERBAG)),
        st.sampled_from([START, END]),
    ),
    st.builds(
        Constraint, st.sampled_from(TIME_ATTRIBUTES), st.just(Content.LT), st.integers(3, 10)
    ),
)


def _temporal(inner):
    moments = st.sampled_from(TIME_ATTRIBUTES)
    return st.one_of(
        st.builds(Constraint, moments, st.just(During()), inner),
        st.builds(Constraint, moments, st.builds(After, st.integers(1, 6)), inner),
        st.builds(
            Constraint,
            st.sampled_from(["a", "b", PUB_TYPE, *TIME_ATTRIBUTES]),
            st.builds(Window, _compared, st.integers(1, 4)),
            inner,
        ),
        st.builds(
            Constraint,
            st.just(END_TIME),
            st.builds(Relation, st.sampled_from(list(Allen)), st.integers(0, 3)),
            inner,
        ),
    )


def _of(constraints, least=0):
    filters = st.builds(Filter, st.lists(constraints, min_size=least, max_size=2))
    return st.builds(Subscription, st.lists(filters, min_size=1, max_size=2))


_level0 = _of(_flat)
_level1 = _of(st.one_of(_flat, _temporal(_level0)))
_level2 = _of(st.one_of(_flat, _temporal(_level1)))
#: Temporal subscriptions of one to three levels with alternatives at each.
subscriptions = st.one_of(
    *(_of(_temporal(inner), least=1) for inner in (_level0, _level1, _level2)),
    _of(st.one_of(_flat, _temporal(_level1)), least=1),
)


class Store:
    """What a broker would have on disk: the log and the decisions."""

    def __init__(self) -> None:
        self.entries: list[LogEntry] = []
        self.decisions: dict[tuple[str, str], Decision] = {}
        self.asked = 0

    def append(self, entry, decisions) -> None:
        if entry is not None:
            self.entries.append(entry)
        for decision in decisions:
            key = (decision.inner, decision.event)
            old = self.decisions.get(key)
            if old is None or old.seq <= decision.seq:
                self.decisions[key] = decision

    def get(self, event_id: str) -> MergedEvent | None:
        return merge_all(entry for entry in self.entries if entry.uid == event_id)

    def settled(self, event_id: str) -> Settled | None:
        told = [entry for entry in self.entries if entry.uid == event_id]
        event = merge_all(told)
        if event is None or not event.final:
            return None
        return Settled(event_id, {e.part: fingerprint(e.notification) for e in told})

    def any_within(self, inner: str, box: Box, exclude: str | None) -> bool:
        self.asked += 1
        assert None not in box, "only final events are asked for: every side is bounded"
        return any(
            decision.holds
            and decision.inner == inner
            and decision.event != exclude
            and contains(box, decision.start, decision.end)
            for decision in self.decisions.values()
        )
