"""The JSON form: what is accepted, what is refused, and at which path."""

from __future__ import annotations

import pytest

from kbn.errors import JsonFormError, KbnError, LimitError, TemporalReferenceError
from kbn.language import (
    dumps_event,
    event_from_json,
    loads_event,
    loads_subscription,
    parse_subscription,
    print_subscription,
    subscription_from_json,
    subscription_to_json,
)
from kbn.model.values import identity


def one(*constraint):
    """A subscription of one filter of one constraint, as JSON."""
    return {"any": [{"all": [list(constraint)]}]}


EVERYTHING = {"any": [{"all": []}]}


def test_the_example_of_the_reference_is_read_and_written_back():
    form = {
        "any": [
            {
                "all": [
                    ["price", "<", 80],
                    ["b", {"subbag": "<"}, [1, 3]],
                    ["KBN_END_TIME", {"after": 2000}, EVERYTHING],
                    ["w", "is_a", "wine:Red"],
                    ["w", {"related": "wine:hasColor"}, "wine:Red"],
                    ["a", {"filter": ["<", 200]}, EVERYTHING],
                    ["KBN_END_TIME", {"relation": ["overlaps", 500]}, EVERYTHING],
                    ["KBN_START_TIME", "during", EVERYTHING],
                    ["a", "any"],
                ]
            }
        ]
    }
    read = subscription_from_json(form)
    assert subscription_to_json(read) == form
    assert print_subscription(read) == (
        "price < 80 and b subbag[<] [1 3] and KBN_END_TIME after(2s) { } and w is_a wine:Red"
        " and w related wine:hasColor wine:Red and a filter(<, last 200) { }"
        " and KBN_END_TIME relation(overlaps ±500ms) { } and KBN_START_TIME during { } and a any"
    )


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (one("a", {"filter": ["<"]}, EVERYTHING), "a filter(<) { }"),
        (one("a", {"filter": "<"}, EVERYTHING), "a filter(<) { }"),
        (
            one("a", {"filter": [{"subbag": "="}, 5]}, EVERYTHING),
            "a filter(subbag[=], last 5) { }",
        ),
        (
            one("KBN_END_TIME", {"relation": ["meets"]}, EVERYTHING),
            "KBN_END_TIME relation(meets) { }",
        ),
        (
            one("KBN_END_TIME", {"relation": "meets"}, EVERYTHING),
            "KBN_END_TIME relation(meets) { }",
        ),
        (one("a", "any", None), "a any"),
        (one("a", "substring", "x"), 'a contains "x"'),
        (
            one("a", {"superbag": {"related": "p:x"}}, ["q:y"]),
            "a superbag[related p:x] [q:y]",
        ),
    ],
)
def test_what_may_be_left_out_is_filled_in(form, text):
    assert subscription_from_json(form) == parse_subscription(text)


@pytest.mark.parametrize(
    ("form", "path"),
    [
        ([], "$"),
        ("a any", "$"),
        ({}, "$"),
        ({"all": []}, "$"),
        ({"any": [], "or": []}, "$"),
        ({"any": []}, "$.any"),
        ({"any": {}}, "$.any"),
        ({"any": [[]]}, "$.any[0]"),
        ({"any": [{"all": {}}]}, "$.any[0].all"),
        ({"any": [{"all": ["a any"]}]}, "$.any[0].all[0]"),
        (one("a"), "$.any[0].all[0]"),
        (one("a", "="), "$.any[0].all[0]"),
        (one("a", "=", 1, 2), "$.any[0].all[0]"),
        (one(1, "=", 1), "$.any[0].all[0][0]"),
        (one("\ud800", "=", 1), "$.any[0].all[0][0]"),
        (one("a", "==", 1), "$.any[0].all[0][1]"),
        (one("a", "in", [1]), "$.any[0].all[0][1]"),
        (one("a", None, 1), "$.any[0].all[0][1]"),
        (one("a", {"subbag": "<", "x": 1}, 1), "$.any[0].all[0][1]"),
        (one("a", {"subbag": "subbag"}, [1]), "$.any[0].all[0][1].subbag"),
        (one("a", {"subbag": {"after": 5}}, [1]), "$.any[0].all[0][1].subbag"),
        (one("a", {"related": 5}, "x"), "$.any[0].all[0][1].related"),
        (one("a", "any", 1), "$.any[0].all[0][2]"),
        (one("a", "=", {"x": 1}), "$.any[0].all[0][2]"),
        (one("a", "=", [1, [2]]), "$.any[0].all[0][2][1]"),
        (one("a", "=", float("nan")), "$.any[0].all[0][2]"),
        (one("a", "=", [float("inf")]), "$.any[0].all[0][2][0]"),
        (one("a", "=", 2**63), "$.any[0].all[0][2]"),
        (one("a", "=", "\ud800"), "$.any[0].all[0][2]"),
        (one("KBN_END_TIME", {"after": 1.0}, EVERYTHING), "$.any[0].all[0][1].after"),
        (one("KBN_END_TIME", {"after": True}, EVERYTHING), "$.any[0].all[0][1].after"),
        (one("KBN_END_TIME", {"after": 2**63}, EVERYTHING), "$.any[0].all[0][1].after"),
        (one("KBN_END_TIME", "during", 5), "$.any[0].all[0][2]"),
        (one("a", {"filter": []}, EVERYTHING), "$.any[0].all[0][1].filter"),
        (one("a", {"filter": ["during"]}, EVERYTHING), "$.any[0].all[0][1].filter[0]"),
        (one("a", {"filter": ["<", "5"]}, EVERYTHING), "$.any[0].all[0][1].filter[1]"),
        (
            one("KBN_END_TIME", {"relation": ["crosses"]}, EVERYTHING),
            "$.any[0].all[0][1].relation[0]",
        ),
        (
            one("a", {"filter": ["<"]}, {"any": [{"all": [["b", "?", 1]]}]}),
            "$.any[0].all[0][2].any[0].all[0][1]",
        ),
    ],
)
def test_a_wrong_form_is_refused_with_its_path(form, path):
    with pytest.raises(JsonFormError) as caught:
        subscription_from_json(form)
    assert caught.value.path == path
    assert caught.value.code == "syntax"


def test_limits_are_refused_as_limits_and_say_where():
    with pytest.raises(LimitError, match=r"at least 1, not 0, at \$\.any\[0\]"):
        subscription_from_json(one("KBN_END_TIME", {"after": 0}, EVERYTHING))
    with pytest.raises(LimitError, match=r"at least 1, not 0, at \$\.any\[0\]"):
        subscription_from_json(one("a", {"filter": ["<", 0]}, EVERYTHING))
    with pytest.raises(LimitError, match=r"at least 0, not -1, at \$\.any\[0\]"):
        subscription_from_json(one("KBN_END_TIME", {"relation": ["meets", -1]}, EVERYTHING))
    with pytest.raises(LimitError, match="65 alternatives") as caught:
        subscription_from_json({"any": [{"all": []}] * 65})
    assert caught.value.limit == "max_alternatives"


def test_a_temporal_operator_on_no_time_is_refused_and_says_where():
    with pytest.raises(TemporalReferenceError, match=r"price.*\$\.any\[0\]\.all\[0\]"):
        subscription_from_json(one("price", "during", EVERYTHING))


def test_sixteen_filters_may_nest_in_json_and_seventeen_are_refused():
    def nested(depth):
        form = EVERYTHING
        for _ in range(depth - 1):
            form = one("a", {"filter": ["<"]}, form)
        return form

    assert subscription_from_json(nested(16)).depth == 16
    for depth in (17, 5_000):
        with pytest.raises(LimitError, match="nest too deeply"):
            subscription_from_json(nested(depth))


def test_numbers_keep_their_type_through_json():
    read = loads_event('{"a": 1, "b": 1.0, "c": true, "d": -0.0, "e": 1e3, "f": null}')
    kinds = [identity(value) for value in read.values()]
    assert kinds == [identity(value) for value in (1, 1.0, True, -0.0, 1000.0, None)]


def test_the_last_of_equal_keys_wins():
    assert dict(loads_event('{"a": 1, "b": 2, "a": 3}')) == {"a": 3, "b": 2}


def test_an_event_is_one_line_of_ascii():
    assert dumps_event(loads_event('{"a": "é\\n", "b": [1, 1.5]}')) == (
        '{"a":"\\u00e9\\n","b":[1,1.5]}'
    )


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("", "$"),
        ("[1]", "$"),
        ("5", "$"),
        ("{'a': 1}", "$"),
        ('{"a": 1} x', "$"),
        ('{"a": NaN}', "$.a"),
        ('{"a": [1, -Infinity]}', "$.a[1]"),
        ('{"a": 1e999}', "$.a"),
        ('{"a": 9223372036854775808}', "$.a"),
        ('{"a": ' + "9" * 10_000 + "}", "$.a"),
        ('{"a": "\\ud800"}', "$.a"),
        ('{"\\ud800": 1}', "$"),
        ('{"a": {"b": 1}}', "$.a"),
        ('{"a": [[1]]}', "$.a[0]"),
        (b'{"a": "\xff"}', "$"),
        ("[" * 100_000, "$"),
        ('{"a":' * 100_000, "$"),
    ],
)
def test_a_wrong_event_is_refused_with_its_path(text, path):
    with pytest.raises(JsonFormError) as caught:
        loads_event(text)
    assert caught.value.path == path


def test_deep_json_is_no_subscription_either():
    with pytest.raises(KbnError):
        loads_subscription('{"any":[' * 50_000)


def test_an_event_that_is_no_object_is_refused():
    with pytest.raises(JsonFormError):
        event_from_json([("a", 1)])
    with pytest.raises(JsonFormError):
        event_from_json({1: 1})
