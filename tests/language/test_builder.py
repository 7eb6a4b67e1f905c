"""The Python form builds the tree that the text form builds."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kbn.errors import (
    KbnError,
    LimitError,
    TemporalReferenceError,
    UnsupportedError,
    ValueRangeError,
)
from kbn.language import (
    as_subscription,
    attr,
    end,
    everything,
    parse_subscription,
    relation,
    start,
)
from kbn.model import Bag, Filter, Subscription
from kbn.model.operators import Allen, BagKind, BagOp, Content, Related

x = attr("x")


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (x == 1, "x = 1"),
        (x != 1.0, "x != 1.0"),
        (x < 80, "x < 80"),
        (x <= "b", 'x <= "b"'),
        (x > True, "x > true"),
        (x >= None, "x >= null"),
        (80 > x, "x < 80"),  # noqa: SIM300 - the reflected comparison is the case
        (x == [1, 1, 2], "x = [1 1 2]"),
        (x == (), "x = []"),
        (x == Bag(["a"]), 'x = ["a"]'),
        (x.prefix("a"), 'x prefix "a"'),
        (x.suffix("a"), 'x suffix "a"'),
        (x.contains("a"), 'x contains "a"'),
        (x.any(), "x any"),
        (x.subbag([1]), "x in [1]"),
        (x.subbag(1), "x subbag 1"),
        (x.subbag([1, 3], op="<"), "x subbag[<] [1 3]"),
        (x.superbag(["a"]), 'x superbag ["a"]'),
        (x.superbag(["g:H"], op="related geo:isWestOf"), "x superbag[related geo:isWestOf] [g:H]"),
        (x.superbag(["g:H"], op=Related("http://x")), 'x superbag[related "http://x"] [g:H]'),
        (x.bageq([1], op=Content.ANY), "x bageq[any] [1]"),
        (x.in_([1, 2]), "x in [1 2]"),
        (x.equivalent("w:R"), "x equivalent w:R"),
        (x.not_equivalent("w:R"), "x not_equivalent w:R"),
        (x.more_specific("w:R"), "x more_specific w:R"),
        (x.less_specific("w:R"), "x less_specific w:R"),
        (x.is_a("w:R"), "x is_a w:R"),
        (x.is_not_a("w:R"), "x is_not_a w:R"),
        (x.related("w:p", "w:R"), "x related w:p w:R"),
        (start.during(x == 1), "start during { x = 1 }"),
        (start.during("x = 1 or y = 2"), "start during { x = 1 or y = 2 }"),
        (end.after("2s", x.any()), "end after(2s) { x any }"),
        (end.after(timedelta(minutes=5), x.any()), "end after(5min) { x any }"),
        (end.after(1500, everything), "end after(1500ms) { }"),
        (start > 5, "start > 5"),
        (x.filter("<", attr("s") == "IBM", last=200), 'x filter(<, last 200) { s = "IBM" }'),
        (x.filter("subbag[=]", everything), "x filter(subbag[=]) { }"),
        (x.filter(BagOp(BagKind.BAGEQ), everything), "x filter(bageq) { }"),
        (relation("overlaps", x.any()), "relation(overlaps) { x any }"),
        (relation(Allen.MEETS, x.any(), tolerance="500ms"), "relation(meets ±500ms) { x any }"),
        (
            attr("KBN_END_TIME").relation("meets", x.any()),
            "KBN_END_TIME relation(meets) { x any }",
        ),
        (attr("start") == 1, '"start" = 1'),
        ((x > 1) & (x < 5), "x > 1 and x < 5"),
        ((x > 1) | (x < 5) & x.any(), "x > 1 or x < 5 and x any"),
        (((x > 1) | (x < 5)) & x.any(), "(x > 1 or x < 5) and x any"),
        ((x.any() | (start > 1)) & (start < 5), "(x any or start > 1) and start < 5"),
        (everything, ""),
        (everything | x.any(), "() or x any"),
        (everything & x.any(), "x any"),
    ],
)
def test_python_and_text_build_the_same_tree(built, text):
    assert built.subscription() == parse_subscription(text)
    assert as_subscription(built) == as_subscription(text)


def test_everything_that_is_a_subscription_is_taken_as_one():
    held = parse_subscription("x = 1")
    assert as_subscription(held) is held
    assert as_subscription(held.alternatives[0]) == held
    assert as_subscription(held.alternatives[0].constraints[0]) == held
    assert as_subscription("") == Subscription((Filter(),))
    with pytest.raises(TypeError, match="is no subscription"):
        as_subscription(5)


def test_an_expression_shows_its_text():
    assert str((x > 1) & start.during(x.any())) == "x > 1 and start during { x any }"
    assert repr(x == 1) == "<expression x = 1>"
    assert repr(start) == "<attribute start>"
    assert repr(attr("two words")) == '<attribute "two words">'


def test_the_words_of_python_are_refused_with_advice():
    with pytest.raises(TypeError, match="combine with & and"):
        _ = (x > 1) and (x < 5)
    with pytest.raises(TypeError, match="combine with & and"):
        _ = (x > 1) or (x < 5)
    with pytest.raises(TypeError, match="combine with & and"):
        _ = not (x > 1)
    with pytest.raises(TypeError, match="in parentheses"):
        _ = 1 < x < 5
    with pytest.raises(TypeError, match=r"use \.in_"):
        _ = x in [1, 2]
    with pytest.raises(TypeError, match="has no truth value"):
        bool(x)
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)


def test_forgotten_parentheses_do_not_pass_silently():
    with pytest.raises(TypeError):
        _ = x > 1 & x < 5


@pytest.mark.parametrize(
    ("build", "error"),
    [
        (lambda: x == 2**63, ValueRangeError),
        (lambda: x == attr("y"), ValueRangeError),
        (lambda: x == {1}, ValueRangeError),
        (lambda: x == [[1]], ValueRangeError),
        (lambda: x.in_(5), UnsupportedError),
        (lambda: x.in_("abc"), UnsupportedError),
        (lambda: x.subbag([1], op="=="), UnsupportedError),
        (lambda: x.subbag([1], op="subbag"), UnsupportedError),
        (lambda: x.filter("during", everything), UnsupportedError),
        (lambda: x.filter("<", everything, last=0), LimitError),
        (lambda: x.during(everything), TemporalReferenceError),
        (lambda: start.relation("meets", everything), TemporalReferenceError),
        (lambda: end.after("2", everything), ValueRangeError),
        (lambda: end.after(timedelta(microseconds=1), everything), ValueRangeError),
        (lambda: end.after(timedelta(seconds=-1), everything), LimitError),
        (lambda: end.after(0.5, everything), UnsupportedError),
        (lambda: relation("crosses", everything), UnsupportedError),
        (lambda: attr(5) == 1, KbnError),
    ],
)
def test_what_the_model_refuses_is_refused_at_once(build, error):
    with pytest.raises(error):
        build()


def test_alternatives_are_bounded_here_too():
    choice = x.any() | attr("y").any()
    six = choice & choice & choice & choice & choice & choice
    assert len(six.subscription()) == 64
    with pytest.raises(LimitError, match="64 alternatives"):
        _ = six & choice
