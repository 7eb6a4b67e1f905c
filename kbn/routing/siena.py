"""What an original Siena 1.3 broker would misread, and what to send it instead.

Siena knows neither bags nor our operators, so such constraints travel as ``name
any`` and are decided here. Its own covering test is unsound: it may believe
that a filter sent earlier covers a new one and drop it. ``may_swallow`` says
yes whenever it might (it errs to yes); a filter in danger is widened name by
name until Siena cannot swallow it wrongly.
"""

from __future__ import annotations

from collections.abc import Iterable

from kbn.covering import filter_covers
from kbn.model.filters import Constraint, Filter
from kbn.model.operators import Content
from kbn.model.values import Bag


def readable(asked: Filter) -> Filter:
    """The filter in Siena's own words, never narrower than it was."""
    kept = [
        constraint
        if isinstance(constraint.op, Content) and not isinstance(constraint.operand, Bag)
        else Constraint(constraint.name, Content.ANY)
        for constraint in asked
    ]
    return Filter(dict.fromkeys(kept))


def may_swallow(sent: Filter, asked: Filter) -> bool:
    """Whether Siena might take ``asked`` for covered by ``sent``.

    Siena compares constraint by constraint. Between different operators, or on
    operands of different types, we assume the worst.
    """
    return all(any(_may_imply(theirs, mine) for theirs in asked) for mine in sent)


def _may_imply(narrow: Constraint, wide: Constraint) -> bool:
    if narrow.name != wide.name:
        return False
    if wide.op is Content.ANY or narrow.op is not wide.op:
        return True
    return filter_covers(Filter([wide]), Filter([narrow])) or type(narrow.operand) is not type(
        wide.operand
    )


def safe_for(asked: Filter, sent: Iterable[Filter]) -> Filter:
    """``asked``, widened where Siena would otherwise drop it although nothing covers it.

    The empty filter, the widest of all, is swallowed by nothing but itself.
    """
    wanted = readable(asked)
    rivals = list(sent)
    while any(may_swallow(rival, wanted) and not filter_covers(rival, wanted) for rival in rivals):
        names = list(dict.fromkeys(c.name for c in wanted if c.op is not Content.ANY))
        if not names:
            return Filter()
        wanted = Filter(
            dict.fromkeys(
                Constraint(c.name, Content.ANY) if c.name == names[0] else c for c in wanted
            )
        )
    return wanted
