"""What a broker asks of its master covers its table at any time, and no more than needed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kbn.covering import covers, filter_covers
from kbn.language import parse_subscription
from kbn.model import Filter, Subscription
from kbn.routing.table import Options, Subscriber, SubscriptionTable
from kbn.routing.upward import (
    Root,
    UpwardFilters,
    UpwardPosets,
    history_filters,
    plain_filters,
    upward_filters,
)
from tests.strategies import any_subscriptions

steps = st.lists(
    st.tuples(st.sampled_from("abc"), any_subscriptions(), st.booleans(), st.booleans()),
    max_size=12,
)


WANTED = {False: plain_filters, True: history_filters}


@given(steps, st.booleans())
def test_what_was_forwarded_covers_all_units_and_nothing_in_it_is_superfluous(steps, remembered):
    table: SubscriptionTable[None] = SubscriptionTable()
    upward = UpwardFilters(history=remembered)
    sent: set[Filter] = set()
    for name, asked, history, leaves in steps:
        if leaves:
            change = table.unsubscribe(name)
        else:
            subscriber = table.subscribers.get(name) or Subscriber(name, None)
            change = table.subscribe(subscriber, asked, Options(history=history))
        forward, withdraw = upward.apply(change)
        assert sent.isdisjoint(forward)
        sent |= set(forward)
        assert sent >= set(withdraw)
        sent -= set(withdraw)
        assert sent == set(upward.roots())
        assert not any(f is not g and filter_covers(f, g) for f in sent for g in sent)
        for unit in table.units.values():
            for wanted in WANTED[remembered](unit):
                assert any(filter_covers(f, wanted) for f in sent)


def test_one_that_travels_further_is_not_hidden_by_a_wider_one_that_does_not():
    table: SubscriptionTable[None] = SubscriptionTable()
    upward = UpwardPosets()

    def ask(name, text, hops):
        unit = Options(hops=hops)
        return upward.apply(
            table.subscribe(Subscriber(name, None), parse_subscription(text), unit)
        )

    wide, narrow = (parse_subscription(text).alternatives[0] for text in ("a any", "a = 1"))
    assert ask("s", "a any", 1).forward == (Root(wide, 1),)
    assert ask("t", "a = 1", 4).forward == (Root(narrow, 4),)
    assert ask("u", "a any", 0) == ((), ())
    assert ask("v", "a any", 4) == ((Root(wide, 4),), (Root(narrow, 4),))
    assert set(upward.roots()) == {Root(wide, 1), Root(wide, 4)}
    assert upward.apply(table.unsubscribe("v")) == ((Root(narrow, 4),), (Root(wide, 4),))
    assert upward.apply(table.unsubscribe("u")) == ((), ())


def test_what_only_this_broker_can_decide_travels_as_the_name_alone():
    asked = parse_subscription("price < 5 and w is_a p:Red and end after(2s) { a = 1 }")
    (widened,) = upward_filters(asked)
    assert Subscription((widened,)) == parse_subscription(
        'KBN_END_TIME any and KBN_PUB_TYPE superbag ["END"] and price < 5 and w any'
    )
    assert covers(Subscription((widened,)), asked)


def test_an_alternative_that_nothing_matches_is_not_asked_for():
    assert upward_filters(parse_subscription("x < 1 and x > 2")) == ()
    (left,) = upward_filters(parse_subscription("x < 1 and x > 2 or y = 1"))
    assert Subscription((left,)) == parse_subscription("y = 1")


def test_inner_filters_of_every_level_are_remembered_and_for_relations_every_start():
    asked = parse_subscription("a = 1 and start during { b = 2 and end after(1s) { c = 3 } }")
    table: SubscriptionTable[None] = SubscriptionTable()
    (unit,) = table.subscribe(Subscriber("s", None), asked).added
    names = [{constraint.name for constraint in f} for f in history_filters(unit)]
    assert names == [{"b", "KBN_PUB_TYPE", "KBN_END_TIME"}, {"c"}]
    (other,) = table.subscribe(
        Subscriber("t", None), parse_subscription("relation(overlaps) { d = 4 }")
    ).added
    assert Subscription(history_filters(other)) == parse_subscription(
        'd = 4 or KBN_PUB_TYPE superbag ["START"]'
    )
