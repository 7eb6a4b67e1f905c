"""The cases in ``tests/vectors/senp`` as packets: text, meaning, canonical text, error.

The meaning is read by code of its own, from the JSON form, so that no part of
the codec judges itself.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kbn.model import Bag, Constraint, Filter, Notification, Subscription, Value
from kbn.model.operators import (
    After,
    Allen,
    BagKind,
    BagOp,
    Content,
    During,
    Operator,
    Related,
    Relation,
    Semantic,
    Window,
)
from senp import Packet, Pattern

VECTORS = Path(__file__).parent.parent / "vectors" / "senp"
_SIMPLE = {op.text: op for family in (Content, Semantic) for op in family}
_BAGS = {kind.text: kind for kind in BagKind}
_WRAPPED = {
    "values": ('senp{version=1 method="PUB" ttl=30} event{ v=', "}"),
    "filters": ('senp{version=1 method="SUB" ttl=30} ', ""),
    "packets": ("", ""),
}


@dataclass(frozen=True)
class Case:
    """One line of a vector file, wrapped so that it is a whole packet."""

    id: str
    data: bytes
    packet: Packet | None = None
    written: bytes = b""
    error: str = ""
    position: int = -1
    seq: int | None = None


def load() -> list[Case]:
    return [
        _case(kind, row)
        for kind in _WRAPPED
        for row in yaml.safe_load((VECTORS / f"{kind}.yaml").read_text("utf-8"))
    ]


def _case(kind: str, row: dict[str, Any]) -> Case:
    before, after = _WRAPPED[kind]
    name = f"{kind}-{row['id']}"
    data = (before + row["text"] + after).encode("latin-1")
    if "error" in row:
        at = len(before) + row["at"]
        return Case(name, data, error=row["error"], position=at, seq=row.get("seq"))
    written = (before + row.get("writes", row["text"]) + after).encode("latin-1")
    return Case(name, data, _packet(kind, json.loads(row["means"])), written)


def _packet(kind: str, means: Any) -> Packet:
    if kind == "values":
        return Packet(method="PUB", payload=Notification({"v": value(means)}))
    if kind == "filters":
        return Packet(method="SUB", payload=subscription(means))
    fields = dict(means)
    payload: Any = None
    if "event" in fields:
        payload = event(fields.pop("event"))
    elif "events" in fields:
        payload = tuple(event(one) for one in fields.pop("events"))
    elif "filter" in fields:
        payload = subscription(fields.pop("filter"))
    elif "pattern" in fields:
        payload = Pattern(
            tuple(subscription([one]).alternatives[0] for one in fields.pop("pattern"))
        )
    if isinstance(fields.get("to"), list):
        fields["to"] = tuple(fields["to"])
    return Packet(**fields, payload=payload)


def value(form: Any) -> Value:
    return Bag(form) if isinstance(form, list) else form


def event(form: dict[str, Any]) -> Notification:
    return Notification({name: value(held) for name, held in form.items()})


def subscription(form: list[list[list[Any]]]) -> Subscription:
    return Subscription(Filter(constraint(*one) for one in alternative) for alternative in form)


def constraint(name: str, op: Any, operand: Any = None) -> Constraint:
    read = operator(op)
    if isinstance(read, During | After | Window | Relation):
        return Constraint(name, read, subscription(operand))
    return Constraint(name, read, value(operand))


def operator(form: Any) -> Operator:
    if isinstance(form, str):
        if form in _BAGS:
            return BagOp(_BAGS[form])
        return During() if form == "during" else _SIMPLE[form]
    [(kind, inner)] = form.items()
    if kind in _BAGS:
        return BagOp(_BAGS[kind], operator(inner))  # type: ignore[arg-type]
    if kind == "related":
        return Related(inner)
    if kind == "after":
        return After(inner)
    if kind == "filter":
        return Window(operator(inner[0]), inner[1])  # type: ignore[arg-type]
    return Relation(Allen(inner[0]), inner[1])
