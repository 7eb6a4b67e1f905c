"""Allen's relations: one holds of any pair, they compose, and boxes say the same."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbn.matching.temporal import allen_holds
from kbn.model.operators import Allen
from kbn.temporal.allen import after_box, contains, during_box, relation_box

INVERSE = {
    Allen.BEFORE: Allen.AFTER,
    Allen.MEETS: Allen.MET_BY,
    Allen.OVERLAPS: Allen.OVERLAPPED_BY,
    Allen.DURING: Allen.CONTAINS,
    Allen.STARTS: Allen.STARTED_BY,
    Allen.FINISHES: Allen.FINISHED_BY,
    Allen.EQUALS: Allen.EQUALS,
}
INVERSE |= {inverse: kind for kind, inverse in INVERSE.items()}
PROPER = [(a, b) for a in range(6) for b in range(a + 1, 6)]
ANY = [(a, b) for a in range(6) for b in range(a, 6)]

pairs = st.tuples(st.integers(-20, 20), st.integers(-20, 20)).map(lambda p: (min(p), max(p)))


def relations(x, y):
    return [kind for kind in Allen if allen_holds(kind, 0, x, y)]


@pytest.mark.parametrize("x", ANY, ids=str)
def test_exactly_one_relation_holds_of_any_two_events_points_included(x):
    for y in [*ANY, *((a, float("inf")) for a in range(6))]:
        assert len(relations(x, y)) == 1, y


def test_a_relation_holds_one_way_as_its_inverse_does_the_other():
    for x, y in product(ANY, ANY):
        assert [INVERSE[kind] for kind in relations(x, y)] == relations(y, x)


#: Allen's table: row R1, column R2, the relations that ``x R1 y, y R2 z`` leave between x and
#: z. By their letters: < > m M o O d D s S f F =, the capital being the inverse.
LETTERS = dict(
    zip(
        "<>dDoOmMsSfF=",
        (
            Allen.BEFORE,
            Allen.AFTER,
            Allen.DURING,
            Allen.CONTAINS,
            Allen.OVERLAPS,
            Allen.OVERLAPPED_BY,
            Allen.MEETS,
            Allen.MET_BY,
            Allen.STARTS,
            Allen.STARTED_BY,
            Allen.FINISHES,
            Allen.FINISHED_BY,
            Allen.EQUALS,
        ),
        strict=True,
    )
)
ALL = "<>dDoOmMsSfF="
#: What is left between x and z when all three share some moment.
CONCUR = "dDoOsSfF="
TABLE = """
<   <      *      <omds  <      <      <omds  <    <omds  <     <     <omds  <     <
>   *      >      >OMdf  >      >OMdf  >      >OMdf >     >OMdf >     >      >     >
d   <      >      d      *      <omds  >OMdf  <    >      d     >OMdf d      <omds d
D   <omDF  >ODMS  %      D      oDF    ODS    oDF  ODS    oDF   D     ODS    D     D
o   <      >ODMS  ods    <omDF  <om    %      <    ODS    o     oDF   ods    <om   o
O   <omDF  >      Odf    >ODMS  %      >OM    oDF  >      Odf   >OM   O      ODS   O
m   <      >ODMS  ods    <      <      ods    <    fF=    m     m     ods    <     m
M   <omDF  >      Odf    >      Odf    >      sS=  >      Odf   >     M      M     M
s   <      >      d      <omDF  <om    Odf    <    M      s     sS=   d      <om   s
S   <omDF  >      Odf    D      oDF    O      oDF  M      sS=   S     O      D     S
f   <      >      d      >ODMS  ods    >OM    m    >      d     >OM   f      fF=   f
F   <      >ODMS  ods    D      o      ODS    m    ODS    o     D     fF=    F     F
=   <      >      d      D      o      O      m    M      s     S     f      F     =
"""


def test_relations_of_proper_intervals_compose_as_in_allens_table():
    composed = {(r, s): set() for r in Allen for s in Allen}
    points = range(8)
    proper = [(a, b) for a in points for b in points if a < b]
    known = {(x, y): relations(x, y)[0] for x, y in product(proper, proper)}
    for x, y, z in product(proper, proper, proper):
        composed[known[x, y], known[y, z]].add(known[x, z])
    for line in TABLE.strip().splitlines():
        row, *cells = line.split()
        for column, cell in zip(ALL, cells, strict=True):
            spelled = cell.replace("*", ALL).replace("%", CONCUR)
            expected = {LETTERS[letter] for letter in spelled}
            assert composed[LETTERS[row], LETTERS[column]] == expected, (row, column)


@given(
    st.sampled_from(list(Allen)),
    st.sampled_from([0, 0, 1, 2, 7]),
    pairs,
    pairs,
    st.booleans(),
)
def test_a_box_contains_exactly_the_events_in_the_relation(kind, tolerance, x, y, is_open):
    box = relation_box(kind, tolerance, *x)
    start, end = y
    held = allen_holds(kind, tolerance, x, (start, float("inf") if is_open else end))
    assert (box is not None and contains(box, start, None if is_open else end)) == held


@given(st.sampled_from(list(Allen)), st.integers(0, 7), pairs, st.integers(-30, 30))
def test_no_box_of_a_relation_admits_an_event_without_a_start(kind, tolerance, x, end):
    box = relation_box(kind, tolerance, *x)
    assert box is None or not contains(box, None, end)


def test_points_neither_meet_nor_are_met_unless_tolerance_relaxes_it():
    assert relations((3, 3), (3, 5)) == [Allen.STARTS]
    assert relations((3, 3), (1, 3)) == [Allen.FINISHES]
    assert relations((1, 3), (3, 3)) == [Allen.FINISHED_BY]
    assert relations((3, 3), (3, 3)) == [Allen.EQUALS]
    assert allen_holds(Allen.MEETS, 1, (3, 3), (3, 5))


def test_tolerance_relaxes_each_comparison_alone():
    assert not allen_holds(Allen.MEETS, 4, (0, 10), (15, 20))
    assert allen_holds(Allen.MEETS, 5, (0, 10), (15, 20))
    assert allen_holds(Allen.BEFORE, 1, (0, 10), (10, 20))
    assert not allen_holds(Allen.BEFORE, 1, (0, 10), (9, 20))
    assert allen_holds(Allen.EQUALS, 2, (0, 10), (2, 8))
    assert not allen_holds(Allen.EQUALS, 2, (0, 10), (3, 10))


# --- the source's figure 4.2 ----------------------------------------------------------------


def after(p, x):
    return contains(after_box(p, 10_000), *x)


def during(p, x):
    return contains(during_box(p), *x)


#: What the figure writes for X R Y, with the operators of this language on one stored event.
FIGURE = {
    Allen.BEFORE: lambda x, y: after(y[0], x),
    Allen.EQUALS: lambda x, y: x[0] == y[0] and x[1] == y[1],
    Allen.MEETS: lambda x, y: during(y[0], x),
    Allen.OVERLAPS: lambda x, y: during(y[0], x) and after(y[1], x),
    Allen.DURING: lambda x, y: during(x[0], y) and during(x[1], y),
    Allen.STARTS: lambda x, y: x[0] == y[0] and after(y[1], x),
    Allen.FINISHES: lambda x, y: during(x[0], y) and x[1] == y[1],
}


@pytest.mark.parametrize("kind", FIGURE)
def test_a_relation_implies_what_the_figure_writes_for_it(kind):
    for x, y in product(ANY, ANY):
        if allen_holds(kind, 0, x, y):
            assert FIGURE[kind](x, y), (x, y)


@pytest.mark.parametrize(
    ("kind", "x", "y", "instead"),
    [
        (Allen.MEETS, (0, 4), (2, 6), Allen.OVERLAPS),
        (Allen.OVERLAPS, (0, 4), (4, 6), Allen.MEETS),
        (Allen.DURING, (2, 4), (2, 6), Allen.STARTS),
        (Allen.FINISHES, (2, 6), (2, 6), Allen.EQUALS),
    ],
)
def test_the_figure_admits_more_than_the_relation(kind, x, y, instead):
    assert FIGURE[kind](x, y)
    assert relations(x, y) == [instead]


@pytest.mark.parametrize("kind", [Allen.BEFORE, Allen.EQUALS, Allen.STARTS])
def test_three_rows_of_the_figure_say_exactly_the_relation(kind):
    for x, y in product(ANY, ANY):
        assert FIGURE[kind](x, y) == allen_holds(kind, 0, x, y)
