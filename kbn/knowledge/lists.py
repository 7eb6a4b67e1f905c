"""RDF lists, read once and with suspicion.

A list that loops, forks, breaks off or is too long is refused: rules that walk
lists, ours and the reasoners', can then trust them.
"""

from __future__ import annotations

from kbn.errors import LimitError, MalformedError
from kbn.knowledge import vocabulary as w
from kbn.knowledge.facts import Facts, Table


def read_lists(facts: Facts, table: Table, max_list: int) -> dict[int, list[int]]:
    """Every list by its head, the empty one included.

    Raises ``MalformedError`` for a list that is none, ``LimitError`` for one too long.
    """
    rest, first = facts.of(w.REST), facts.of(w.FIRST)
    found: dict[int, list[int]] = {w.NIL: []}
    for node, after in rest.items():
        if len(after) > 1:
            raise MalformedError(f"the list at {table.terms[node]} has {len(after)} rests")
    tails = facts.turned(w.REST)
    heads = [node for node in first if node not in tails]
    walked: set[int] = set()
    for head in heads:
        found[head] = _walk(head, facts, table, max_list, walked)
    # Cells that no head leads to go round in circles.
    for node in rest:
        if node not in walked:
            raise MalformedError(f"the list at {table.terms[node]} is cyclic")
    for p in w.LISTS:
        for s, head in facts.pairs(p):
            if head not in found:
                # A list that is pointed at in its middle is a list as well.
                if head not in first:
                    what = table.terms[s]
                    raise MalformedError(f"{table.terms[p]} of {what} is no list")
                found[head] = _walk(head, facts, table, max_list, walked)
    return found


def _walk(head: int, facts: Facts, table: Table, max_list: int, walked: set[int]) -> list[int]:
    members: list[int] = []
    seen: set[int] = set()
    node = head
    while node != w.NIL:
        if node in seen:
            raise MalformedError(f"the list at {table.terms[head]} is cyclic")
        seen.add(node)
        values, after = facts.objects(node, w.FIRST), facts.objects(node, w.REST)
        if len(values) != 1 or len(after) != 1:
            raise MalformedError(f"the list at {table.terms[head]} breaks off or forks")
        if len(members) >= max_list:
            raise LimitError(
                f"a list has more than {max_list:,} members", limit="max_list", allowed=max_list
            )
        members.extend(values)
        (node,) = after
    walked |= seen
    return members
