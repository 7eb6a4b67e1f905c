"""The JSON form: for programs in other languages, and for lines of events.

    {"any": [{"all": [["price", "<", 80], ["b", {"subbag": "<"}, [1, 3]],
                      ["a", "any"], ["w", {"related": "wine:hasColor"}, "wine:Red"],
                      ["KBN_END_TIME", {"after": 2000}, {"any": [...]}]]}]}

An event is an object. ``1`` is a long and ``1.0`` a double, an array is a bag, a
key given twice counts with its last value. NaN and the infinities are refused.
Law: ``subscription_from_json(subscription_to_json(s)) == s``, also through text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from kbn.errors import JsonFormError, UnsupportedError
from kbn.language.fromjson import read_event, read_subscription
from kbn.model import Bag, Constraint, Notification, Subscription, Value
from kbn.model.operators import (
    After,
    BagOp,
    Content,
    During,
    Operator,
    Related,
    Relation,
    Window,
)
from kbn.model.values import LONG_MAX, is_finite

#: Longer runs of digits are refused before Python is asked to read them.
_MAX_DIGITS = 400


def subscription_to_json(subscription: Subscription) -> dict[str, object]:
    """The subscription as dicts and lists; raises ``UnsupportedError`` for NaN or infinity."""
    return {
        "any": [
            {"all": [_constraint_to_json(constraint) for constraint in alternative]}
            for alternative in subscription
        ]
    }


def subscription_from_json(form: object) -> Subscription:
    """The subscription of such dicts and lists.

    Raises ``JsonFormError`` with the path of what is wrong, ``LimitError`` and
    ``TemporalReferenceError`` as the text form does.
    """
    return read_subscription(form, "$")


def event_to_json(event: Notification) -> dict[str, object]:
    """The event as a dict; raises ``UnsupportedError`` for NaN or infinity."""
    return {name: _value_to_json(value) for name, value in event.items()}


def event_from_json(form: object) -> Notification:
    """The event of such a dict; raises ``JsonFormError`` with the path of what is wrong."""
    if isinstance(form, Mapping):
        return read_event(form)
    raise JsonFormError("an event is an object", path="$")


def loads_subscription(text: str | bytes) -> Subscription:
    """``subscription_from_json`` of a JSON text; raises ``JsonFormError`` if it is none."""
    return subscription_from_json(_loads(text))


def loads_event(text: str | bytes) -> Notification:
    """``event_from_json`` of a JSON text; raises ``JsonFormError`` if it is none."""
    return event_from_json(_loads(text))


def dumps_subscription(subscription: Subscription) -> str:
    """One line of JSON, in ASCII."""
    return json.dumps(subscription_to_json(subscription), separators=(",", ":"))


def dumps_event(event: Notification) -> str:
    """One line of JSON, in ASCII."""
    return json.dumps(event_to_json(event), separators=(",", ":"))


def _constraint_to_json(constraint: Constraint) -> list[object]:
    spelled = [constraint.name, _operator_to_json(constraint.op)]
    if constraint.op is Content.ANY:
        return spelled
    if constraint.inner is not None:
        return [*spelled, subscription_to_json(constraint.inner)]
    return [*spelled, _value_to_json(constraint.value)]


def _operator_to_json(op: Operator) -> object:
    match op:
        case Related():
            return {"related": op.property}
        case BagOp():
            return op.kind.text if op.sub is None else {op.kind.text: _operator_to_json(op.sub)}
        case During():
            return "during"
        case After():
            return {"after": op.limit}
        case Window():
            return {"filter": [_operator_to_json(op.op), op.limit]}
        case Relation():
            return {"relation": [op.kind.value, op.tolerance]}
        case _:
            return op.text


def _value_to_json(value: Value) -> object:
    if not is_finite(value):
        raise UnsupportedError("NaN and the infinities cannot be written in JSON")
    return list(value) if isinstance(value, Bag) else value


def _loads(text: str | bytes) -> object:
    try:
        return json.loads(text, parse_int=_parse_int)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise JsonFormError(f"this is not JSON: {error.msg} ({where})", path="$") from None
    except UnicodeDecodeError:
        raise JsonFormError("this is not JSON: it is not UTF-8", path="$") from None
    except RecursionError:
        raise JsonFormError("this JSON nests too deeply", path="$") from None


def _parse_int(digits: str) -> int:
    # Refused with its path by the reader, like any other number out of range.
    return int(digits) if len(digits) <= _MAX_DIGITS else LONG_MAX + 1
