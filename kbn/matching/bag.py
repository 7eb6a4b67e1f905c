"""Bag operators: an injective pairing between two bags.

Law, with attribute bag V, operand bag T and ``pair(v, t)`` the sub-operator:

- SUBBAG:   every v in V has its own t in T with ``pair(v, t)``;
- SUPERBAG: every t in T has its own v in V with ``pair(v, t)``;
- BAGEQ:    both at once, so the bags are of one size.

That is a bipartite matching which uses up one side. Cost: equality by counting,
O(|V| + |T|); orderings greedily after sorting each type class, O(n log n); the
rest by Hopcroft and Karp (1973), O(|V| |T| sqrt(n)).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any

from kbn.matching.content import content_holds, equality_key, is_nan, type_class
from kbn.model.operators import ORDERINGS, BagKind, Content
from kbn.model.values import Scalar

Pair = Callable[[Scalar, Scalar], bool]


def bags_pair(
    kind: BagKind, pair: Pair, values: Sequence[Scalar], targets: Sequence[Scalar]
) -> bool:
    """The law itself, for any sub-operator given as a predicate."""
    if kind is BagKind.BAGEQ and len(values) != len(targets):
        return False
    if kind is BagKind.SUPERBAG:
        return saturates(targets, values, lambda t, v: pair(v, t))
    return saturates(values, targets, pair)


def bag_holds(
    kind: BagKind, sub: Content | None, values: Sequence[Scalar], targets: Sequence[Scalar]
) -> bool:
    """The law for a content sub-operator (None: equality), by the cheapest exact way."""
    if kind is BagKind.BAGEQ and len(values) != len(targets):
        return False
    if kind is BagKind.SUPERBAG:
        small, large = targets, values
    else:
        small, large = values, targets
    if len(small) > len(large):
        return False
    if sub is None or sub is Content.EQ:
        return not any(map(is_nan, small)) and not (
            Counter(map(equality_key, small)) - Counter(map(equality_key, large))
        )
    if sub is Content.ANY:
        return True
    if sub in ORDERINGS:
        upward = sub in (Content.LT, Content.LE)
        if kind is BagKind.SUPERBAG:
            upward = not upward
        strict = sub in (Content.LT, Content.GT)
        return _ordered_injection(small, large, upward=upward, strict=strict)
    return bags_pair(kind, lambda v, t: content_holds(sub, v, t), values, targets)


def _ordered_injection(
    small: Sequence[Scalar], large: Sequence[Scalar], *, upward: bool, strict: bool
) -> bool:
    """Whether each of ``small`` gets its own of ``large`` above (or below) it.

    Within a class, serve the most demanding member first with the most extreme
    partner: if that fails, no assignment works (exchange argument).
    """
    grouped: dict[str, list[Any]] = {}
    for member in small:
        if member is None or is_nan(member):
            return False
        grouped.setdefault(type_class(member), []).append(member)
    available: dict[str, list[Any]] = {}
    for member in large:
        if member is not None and not is_nan(member):
            available.setdefault(type_class(member), []).append(member)
    for kind, demands in grouped.items():
        offers = available.get(kind, [])
        if len(offers) < len(demands):
            return False
        demands.sort(reverse=upward)
        offers.sort(reverse=upward)
        for demand, offer in zip(demands, offers, strict=False):
            low, high = (demand, offer) if upward else (offer, demand)
            if low > high or (strict and low == high):
                return False
    return True


def saturates(left: Sequence[Scalar], right: Sequence[Scalar], pair: Pair) -> bool:
    """Whether a matching exists that uses every member of ``left``."""
    return len(left) <= len(right) and None not in pairing(left, right, pair)


def pairing(left: Sequence[Scalar], right: Sequence[Scalar], pair: Pair) -> list[int | None]:
    """For each of ``left`` the index of its partner in a largest matching (Hopcroft-Karp)."""
    edges = [[j for j, r in enumerate(right) if pair(item, r)] for item in left]
    partner_of_left: list[int | None] = [None] * len(left)
    partner_of_right: list[int | None] = [None] * len(right)
    while True:
        level = _layers(edges, partner_of_left, partner_of_right)
        grown = 0
        for i in range(len(left)):
            if partner_of_left[i] is None and _augment(
                i, edges, level, partner_of_left, partner_of_right
            ):
                grown += 1
        if not grown:
            return partner_of_left


def _layers(
    edges: list[list[int]],
    partner_of_left: list[int | None],
    partner_of_right: list[int | None],
) -> list[int]:
    """Breadth-first distance of each left node from the free ones; -1 if unreached."""
    level = [0 if partner is None else -1 for partner in partner_of_left]
    queue = deque(i for i, at in enumerate(level) if at == 0)
    while queue:
        i = queue.popleft()
        for j in edges[i]:
            k = partner_of_right[j]
            if k is not None and level[k] < 0:
                level[k] = level[i] + 1
                queue.append(k)
    return level


def _augment(
    root: int,
    edges: list[list[int]],
    level: list[int],
    partner_of_left: list[int | None],
    partner_of_right: list[int | None],
) -> bool:
    """Flip one shortest alternating path from ``root``, if there is one.

    Iterative, since a path may be longer than Python's stack.
    """
    path: list[int] = [root]
    untried = [iter(edges[root])]
    chosen: list[int] = []
    while path:
        i = path[-1]
        for j in untried[-1]:
            k = partner_of_right[j]
            if k is None:
                chosen.append(j)
                for node, edge in zip(path, chosen, strict=True):
                    partner_of_left[node] = edge
                    partner_of_right[edge] = node
                return True
            if level[k] == level[i] + 1:
                chosen.append(j)
                path.append(k)
                untried.append(iter(edges[k]))
                break
        else:
            level[i] = -1  # no free partner beyond this node in this round
            path.pop()
            untried.pop()
            if chosen:
                chosen.pop()
    return False
