"""The text form against the cases of ``tests/vectors/text``."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from kbn.errors import KbnError, LimitError, TextError
from kbn.language import (
    event_from_json,
    parse_event,
    parse_subscription,
    print_event,
    print_subscription,
    subscription_from_json,
    subscription_to_json,
    warnings,
)
from kbn.language.spelling import RESERVED
from kbn.model import Subscription
from kbn.model.values import identity

VECTORS = Path(__file__).parents[1] / "vectors" / "text"


def cases(name):
    held = yaml.safe_load((VECTORS / f"{name}.yaml").read_text("utf-8"))
    assert len({case["id"] for case in held}) == len(held)
    return [pytest.param(case, id=case["id"]) for case in held]


def json_of(case):
    rows = case["any"] if "any" in case else [case["all"]]
    return {"any": [{"all": row} for row in rows]}


@pytest.mark.parametrize("case", cases("subscriptions"))
def test_a_text_is_read_as_its_tree_and_printed_in_canonical_form(case):
    read = parse_subscription(case["text"])
    assert subscription_to_json(read) == json_of(case)
    assert read == subscription_from_json(json_of(case))
    printed = case.get("prints", case["text"])
    assert print_subscription(read) == printed
    assert parse_subscription(printed) == read


@pytest.mark.parametrize("case", cases("events"))
def test_an_event_is_read_and_printed(case):
    read = parse_event(case["text"])
    assert read == event_from_json(case["json"])
    assert print_event(read) == case.get("prints", case["text"])


@pytest.mark.parametrize("case", cases("errors"))
def test_a_wrong_text_is_refused_at_its_place(case):
    parse = parse_event if case.get("event") else parse_subscription
    with pytest.raises(KbnError) as caught:
        parse(case["text"])
    error = caught.value
    line, column = case["at"]
    assert error.code == case.get("code", "syntax")
    assert error.message.startswith(f"line {line}, column {column}: ")
    assert error.message.splitlines()[-1].endswith("^")
    assert case.get("says", "") in error.message.splitlines()[0]
    if error.code == "syntax":
        assert isinstance(error, TextError)
        assert (error.line, error.column) == (line, column)
        if "expected" in case:
            assert list(error.expected) == case["expected"]


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_a_reserved_word_is_a_name_only_in_quotes(word):
    assert parse_event(f'"{word}"=1')[word] == 1
    assert print_event(parse_event(f'"{word}"=1')) == f'"{word}"=1'
    with pytest.raises(TextError):
        parse_event(f"{word}=1")


def test_alternatives_are_counted_after_expansion_and_before_equal_ones_fall_together():
    sixty_four = " or ".join(["a any"] * 64)
    assert len(parse_subscription(sixty_four)) == 1
    with pytest.raises(LimitError, match=r"column 574: more than 64 alternatives") as caught:
        parse_subscription(sixty_four + " or a any")
    assert (caught.value.limit, caught.value.allowed) == ("max_alternatives", 64)


def test_six_choices_of_two_are_allowed_and_seven_are_not():
    six = " and ".join(f"(a{i} any or b{i} any)" for i in range(6))
    assert len(parse_subscription(six)) == 64
    with pytest.raises(LimitError, match="64 alternatives"):
        parse_subscription(six + " and (a any or b any)")


def test_forty_choices_of_two_are_refused_at_once():
    with pytest.raises(LimitError, match="64 alternatives"):
        parse_subscription(" and ".join(["(a any or b any)"] * 40))


def test_each_pair_of_braces_is_counted_on_its_own():
    inner = " or ".join(f"a{i} any" for i in range(64))
    text = f"a filter(<) {{ {inner} }} and (b any or c filter(<) {{ {inner} }})"
    assert len(parse_subscription(text)) == 2
    with pytest.raises(LimitError, match="64 alternatives"):
        parse_subscription(f"a filter(<) {{ {inner} or b any }}")


def test_sixteen_filters_may_nest_and_the_seventeenth_is_refused_at_its_brace():
    def nested(depth):
        return "a filter(<) {" * (depth - 1) + "b any" + "}" * (depth - 1)

    assert parse_subscription(nested(16)).alternatives[0].depth == 16
    with pytest.raises(LimitError, match=rf"column {13 * 16}: filters nest") as caught:
        parse_subscription(nested(17))
    assert (caught.value.limit, caught.value.allowed) == ("max_depth", 16)


def test_a_hundred_parentheses_may_nest_and_more_are_refused():
    assert parse_subscription("(" * 100 + "a any" + ")" * 100) == parse_subscription("a any")
    with pytest.raises(LimitError, match="column 101: parentheses nest"):
        parse_subscription("(" * 100_000 + "a any" + ")" * 100_000)


@pytest.mark.parametrize("opening", ["{", "[", ")", "}", "a during {", "a = [", "not ", "(()"])
def test_a_hundred_thousand_openings_are_an_error_of_ours(opening):
    with pytest.raises(KbnError):
        parse_subscription(opening * 100_000)


@pytest.mark.parametrize("digits", ["9" * 10_000, "0" * 10_000 + ".", "1e" + "9" * 10_000])
def test_numbers_of_ten_thousand_digits_are_refused_at_their_place(digits):
    with pytest.raises(TextError, match="column 5"):
        parse_subscription(f"a = {digits}")


def test_a_long_conjunction_is_read():
    text = " and ".join(f"a{i} = {i}" for i in range(5_000))
    assert len(parse_subscription(text).alternatives[0]) == 5_000


def test_a_lone_surrogate_is_refused_where_it_stands():
    with pytest.raises(TextError, match="surrogate") as caught:
        parse_subscription('a any\nand b = "\ud800"')
    assert (caught.value.line, caught.value.column) == (2, 10)
    assert caught.value.text.isprintable() or "\ud800" not in caught.value.text


def test_numbers_keep_their_type():
    read = parse_event("a=1 b=1.0 c=true d=-0.0")
    assert [identity(value) for value in read.values()] == [
        identity(1),
        identity(1.0),
        identity(True),
        identity(-0.0),
    ]


def test_the_caret_stands_under_the_mistake_even_after_tabs():
    with pytest.raises(TextError) as caught:
        parse_subscription("a = 1 and\n\tb == 2")
    assert str(caught.value).splitlines() == [
        "line 2, column 5: unexpected '=': equality is written '='",
        "expected a value",
        "  \tb == 2",
        "  \t   ^",
    ]


def test_a_start_and_an_end_in_one_filter_are_warned_about_at_any_depth():
    text = "a filter(<) { start > 1 and end < 5 } or start > 1 and relation(meets) { }"
    found = warnings(parse_subscription(text))
    assert found == [
        "start … and end … in one filter holds for instants only: start > 1 and end < 5",
        "start … and end … in one filter holds for instants only:"
        " start > 1 and relation(meets) { }",
    ]
    assert warnings(parse_subscription("start > 1 or end < 5")) == []
    assert warnings(Subscription.of()) == []
