"""The tables of words, the grammar and the package agree with each other."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import kbn.language
from kbn.errors import UnsupportedError, ValueRangeError
from kbn.language.durations import print_duration, read_duration
from kbn.language.spelling import RESERVED, is_bare_name, is_term, read_operator
from kbn.model.operators import BagKind, BagOp, Content, Related, Semantic

GRAMMAR = Path(kbn.language.__file__).with_name("grammar.lark").read_text("utf-8")


def test_the_reserved_words_are_the_words_of_the_grammar():
    assert set(re.findall(r'^[A-Z_]+: "([a-z_]+)"$', GRAMMAR, re.MULTILINE)) == RESERVED


def test_every_exported_name_exists():
    for name in kbn.language.__all__:
        assert getattr(kbn.language, name) is not None
        assert name in dir(kbn.language)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = kbn.language.nonsense


def test_the_parser_generator_is_loaded_only_to_parse():
    program = (
        "import sys, kbn.language as k;"
        "k.print_subscription((k.attr('a') > 1).subscription()); k.loads_event('{}');"
        "print('lark' in sys.modules); k.parse_event(''); print('lark' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True"]


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("a", True),
        ("pos.x", True),
        ("_$./9", True),
        ("", False),
        ("9a", False),
        ("a b", False),
        ("a\n", False),
        ("a-b", False),
        ("é", False),
        ("and", False),
        ("AND", True),
    ],
)
def test_a_name_stands_bare_only_if_it_reads_back(name, bare):
    assert is_bare_name(name) is bare


@pytest.mark.parametrize("text", ["a:b", "a.b-c:d", "a:1", "a:b:c", "a:b.c-"])
def test_terms_stand_bare(text):
    assert is_term(text)


@pytest.mark.parametrize("text", ["a", ":b", "a:", "a:b.", "a:b\n", "http://x", "1:b", "a: b"])
def test_other_strings_are_no_terms(text):
    assert not is_term(text)


@pytest.mark.parametrize(
    ("text", "op"),
    [
        ("<", Content.LT),
        (" substring ", Content.CONTAINS),
        ("is_a", Semantic.IS_A),
        ("related p:x", Related("p:x")),
        ('related "http://x"', Related("http://x")),
        ("subbag", BagOp(BagKind.SUBBAG)),
        ("bageq[ >= ]", BagOp(BagKind.BAGEQ, Content.GE)),
        ("superbag[related p:x]", BagOp(BagKind.SUPERBAG, Related("p:x"))),
    ],
)
def test_operators_are_read_from_their_spelling(text, op):
    assert read_operator(text) == op


@pytest.mark.parametrize("text", ["", "==", "in", "subbag[", "subbag[subbag]", "related", "<[<]"])
def test_other_spellings_are_refused(text):
    with pytest.raises(UnsupportedError, match="no operator is spelled"):
        read_operator(text)


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0ms"),
        (1, "1ms"),
        (1500, "1500ms"),
        (2000, "2s"),
        (90_000, "90s"),
        (300_000, "5min"),
        (3_600_000, "1h"),
        (86_400_000, "1d"),
        (90_000_000, "25h"),
    ],
)
def test_durations_print_in_the_largest_unit_that_divides(milliseconds, text):
    assert print_duration(milliseconds) == text
    assert read_duration(text) == milliseconds


@pytest.mark.parametrize("text", ["", "2", "s", "2m", "-2s", "1.5s", "2 s", "9" * 50 + "ms", "٣s"])
def test_other_durations_are_refused(text):
    with pytest.raises(ValueRangeError):
        read_duration(text)
