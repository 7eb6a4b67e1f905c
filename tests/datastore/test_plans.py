"""Golden plans: what can be searched is searched, never scanned."""

from __future__ import annotations

import pytest

from datastore.query import Order, Query, Window
from datastore.sql.store import open_sqlite
from datastore.store import Batch
from datastore.testing.histories import history
from kbn.language import parse_subscription


@pytest.fixture
def store(tmp_path):
    with open_sqlite(tmp_path / "h.db", names=["a", "b", "KBN_PUB_TYPE"]) as made:
        made.append(Batch(list(history(1, 100))))
        yield made


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("a = 1", "attributes_l (name=? AND l=?)"),
        ("a = 1", "attributes_d (name=? AND d=?)"),
        ('a = "x"', "attributes_s (name=? AND s=?)"),
        ('a prefix "x"', "attributes_s (name=? AND s>? AND s<?)"),
        ("a > 1 and a < 3", "attributes_l (name=? AND l>? AND l<?)"),
        ('a < 3 and b = "x"', "attributes_s (name=? AND s=?)"),
        ('KBN_PUB_TYPE superbag ["END"]', "attributes_s (name=? AND s=?)"),
        ('a = "x" or b = "y"', "attributes_s (name=? AND s=?)"),
    ],
)
def test_a_constraint_on_an_indexed_name_is_a_search(store, text, index) -> None:
    plan = store.explain(Query(parse_subscription(text)))
    assert not plan.left
    assert any(step.startswith("SEARCH") and index in step for step in plan.steps), plan.steps
    assert not any("SCAN publication" in step for step in plan.steps), plan.steps


def test_open_events_are_found_by_their_class(store) -> None:
    plan = store.explain(Query(window=Window(only_open=True)))
    assert plan.steps == ("SEARCH publications USING COVERING INDEX publications_class (class=?)",)


def test_what_was_heard_of_lately_is_found_by_its_last_entry(store) -> None:
    plan = store.explain(Query(window=Window(arrived_from=60), order=Order.ARRIVAL))
    assert any("publications_last (last_seq>?)" in step for step in plan.steps), plan.steps
    assert not any("SCAN" in step for step in plan.steps), plan.steps


def test_what_cannot_be_pushed_down_is_named(store) -> None:
    plan = store.explain(Query(parse_subscription("a = 1 and other = 2")))
    assert plan.pushed == ("a = 1",)
    assert plan.left == ("other = 2",)
    assert plan.residual


def test_a_bag_pairing_is_narrowed_by_the_engine_and_decided_by_naive(store) -> None:
    plan = store.explain(Query(parse_subscription("a in [1 2]")))
    assert plan.pushed == ("a in [1 2]",)
    assert plan.residual


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        ("_exact", "decisions_class (inner_id=? AND class=? AND place_ms>? AND place_ms<?)"),
        ("_by_start", "decisions_class (inner_id=? AND class=? AND place_ms>? AND place_ms<?)"),
        ("_by_end", "decisions_end (inner_id=? AND end_ms>? AND end_ms<?)"),
        ("_next_class", "decisions_class (inner_id=? AND class>?)"),
        ("_latest", "decisions_place (inner_id=?)"),
    ],
)
def test_the_past_is_asked_by_index_searches(store, statement, index) -> None:
    prepared = getattr(store.settled, statement)
    steps = plan_of(store, prepared)
    assert len(steps) == 1
    assert steps[0].startswith("SEARCH decisions")
    assert index in steps[0]


@pytest.mark.parametrize("statement", ["_by_uid", "_by_uids", "_since", "_arrived", "_slice"])
def test_the_log_is_read_by_its_keys(store, statement) -> None:
    steps = plan_of(store, getattr(store.table, statement))
    assert all(step.startswith("SEARCH log") for step in steps), steps


def plan_of(store, prepared) -> list[str]:
    asked = "EXPLAIN QUERY PLAN " + prepared.sql
    return [row[3] for row in store.link.reader.execute(asked, prepared.values([1] * 200))]
