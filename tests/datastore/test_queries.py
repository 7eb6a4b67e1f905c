"""Filters in SQL give the rows that naive gives, on values where engines differ from it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datastore.memory import MemoryStore
from datastore.query import Order, Query, Window
from datastore.sql.store import SqlStore
from datastore.store import Batch
from datastore.testing.histories import NAMES, VALUES, entry, history
from kbn.errors import NoOntologyError, UnsupportedError
from kbn.language import parse_subscription
from kbn.model import Constraint, Subscription
from kbn.model.filters import Filter
from kbn.model.operators import BagKind, BagOp, Content, Semantic
from kbn.model.past import Box
from kbn.model.publications import Part
from kbn.model.time import TIME_ATTRIBUTES
from kbn.model.values import members_of
from tests.datastore.conftest import make_store
from tests.matching.index.worlds import StubKnowledge

SCALARS = [v for v in VALUES if len(members_of(v)) == 1 and not hasattr(v, "members")]
operands = st.sampled_from(VALUES)
names = st.sampled_from(NAMES)
content = st.sampled_from([op for op in Content if op is not Content.ANY])
bag_operators = st.builds(
    BagOp, st.sampled_from(list(BagKind)), st.sampled_from([None, *Content, Semantic.IS_A])
)
constraints = st.one_of(
    st.builds(Constraint, names, content, operands),
    st.builds(Constraint, names, st.just(Content.ANY)),
    st.builds(Constraint, names, bag_operators, operands),
    st.builds(Constraint, names, st.sampled_from([Semantic.IS_A, Semantic.EQUIVALENT]), operands),
    st.builds(
        Constraint,
        st.sampled_from(TIME_ATTRIBUTES),
        content,
        st.sampled_from([0, 500, 1000, 1500.5, 2**63 - 1, "x"]),
    ),
)
subscriptions = st.builds(
    Subscription,
    st.lists(
        st.builds(Filter, st.lists(constraints, max_size=3)), min_size=1, max_size=3
    ),
)  # fmt: skip
bounds = st.sampled_from([None, None, 200, 900, 1500, 10**20])
windows = st.builds(
    Window,
    st.sampled_from([None, 20]),
    st.sampled_from([None, 60]),
    st.builds(Box, bounds, bounds, bounds, bounds),
    st.booleans(),
)


class Words:
    """Value sets of the stub's semantics, for operands that are terms."""

    def __init__(self, knowledge: StubKnowledge) -> None:
        self.knowledge = knowledge

    def spellings(self, op, operand) -> frozenset[str] | None:
        if not isinstance(operand, str):
            return None
        words = [v for v in SCALARS if isinstance(v, str)]
        return frozenset(v for v in words if self.knowledge.holds(op, v, operand))


class OnlyTerms(StubKnowledge):
    """Nonsense, but only about strings, as an ontology would."""

    def holds(self, op, value, operand) -> bool:
        return isinstance(value, str) and super().holds(op, value, operand)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def stores(request, tmp_path_factory) -> Iterator[tuple[SqlStore, MemoryStore]]:
    """One history in both: most names indexed, one not, the last entries not projected."""
    made = make_store(request.param, request, tmp_path_factory.mktemp("q"), names=NAMES[:-1])
    reference = MemoryStore()
    with made:
        for seed in range(3):
            batch = Batch(list(history(seed, 120, first=1000 * seed + 1)))
            made.append(batch)
            reference.append(batch)
        made.work()
        yield made, reference


@settings(max_examples=settings().max_examples * 2)
@given(
    asked=subscriptions,
    window=windows,
    cut=st.tuples(st.sampled_from(list(Order)), st.sampled_from([None, None, 1, 4])),
    listed=st.booleans(),
)
def test_every_filter_gives_the_rows_of_naive(stores, asked, window, cut, listed) -> None:
    made, reference = stores
    knowledge = OnlyTerms()
    spelling = Words(knowledge) if listed else None
    query = Query(asked, window, *cut, knowledge, spelling)
    assert list(made.events(query)) == list(reference.events(query))


@pytest.mark.parametrize("op", [op for op in Content if op is not Content.ANY])
def test_every_operator_is_exact_on_every_pair_of_values(stores, op) -> None:
    made, reference = stores
    for operand in VALUES:
        query = Query(Subscription.of(Constraint("a", op, operand)))
        found = [e.uid for e in made.events(query)]
        assert found == [e.uid for e in reference.events(query)], operand


def test_a_reader_that_may_not_write_sees_what_is_not_projected_yet(tmp_path) -> None:
    from datastore.sql.store import open_sqlite

    reference = MemoryStore()
    with open_sqlite(tmp_path / "h.db", names=["a", "b"]) as writer:
        for seed in range(2):
            batch = Batch(list(history(seed, 100, first=1000 * seed + 1)))
            writer.append(batch)
            reference.append(batch)
            if not seed:
                writer.count()
        with open_sqlite(tmp_path / "h.db", read_only=True) as reader:
            assert reader.projection.watermark() < 1000, "the second half is not projected"
            for text in ("", "a any", "a = 1 or b any", 'b contains "a"'):
                for order in Order:
                    for limit in (None, 3):
                        query = Query(parse_subscription(text), order=order, limit=limit)
                        assert list(reader.events(query)) == list(reference.events(query))
            assert reader.count() == reference.count()
            assert list(reader.open_events()) == list(reference.open_events())


def test_a_name_indexed_later_is_filled_in_and_one_dropped_goes(tmp_path) -> None:
    from datastore.sql.store import open_sqlite

    query = Query(parse_subscription("a = 1"))
    with open_sqlite(tmp_path / "h.db") as store:
        store.append(Batch(list(history(1, 100))))
        before = list(store.events(query))
        assert store.explain(query).pushed == ()
        store.index(["a"])
        assert store.explain(query).pushed == ("a = 1",)
        assert list(store.events(query)) == before
        assert [f for f in store.check() if f.wrong] == []
        store.index([])
        assert store.explain(query).pushed == ()
        assert [f for f in store.check() if f.wrong] == []


def test_an_end_that_comes_later_replaces_the_projected_attributes(tmp_path) -> None:
    from datastore.sql.store import open_sqlite

    with open_sqlite(tmp_path / "h.db", names=["sev"]) as store:
        store.append(Batch([entry(1, "x", Part.START, 10, None, sev="warning")]))
        assert store.has_match(Query(parse_subscription('sev = "warning"')))
        store.append(Batch([entry(2, "x", Part.END, None, 20, sev="clear")]))
        assert not store.has_match(Query(parse_subscription('sev = "warning"')))
        assert store.has_match(Query(parse_subscription('sev = "clear"')))


def test_temporal_operators_and_missing_ontologies_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="decisions"):
        Query(parse_subscription("start during { a any }"))
    with pytest.raises(NoOntologyError):
        Query(parse_subscription("a is_a b:C"))
