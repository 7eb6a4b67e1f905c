"""Reading the JSON form: every refusal names the path of what is wrong.

Depth is bounded by ``MAX_DEPTH`` before descending, so nothing recurses further
than filters may nest, whatever the input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from kbn.errors import (
    JsonFormError,
    LimitError,
    TemporalReferenceError,
    UnsupportedError,
    ValueRangeError,
)
from kbn.language.spelling import BAG_KINDS, RELATIONS, SIMPLE
from kbn.model import Bag, Constraint, Filter, Notification, Scalar, Subscription, Value
from kbn.model.filters import MAX_ALTERNATIVES, MAX_DEPTH
from kbn.model.notifications import check_name
from kbn.model.operators import (
    DEFAULT_WINDOW,
    After,
    BagOp,
    Content,
    During,
    Operator,
    Related,
    Relation,
    Simple,
    Temporal,
    Window,
    is_temporal,
)
from kbn.model.values import check_scalar, is_finite

_T = TypeVar("_T")


def read_subscription(form: object, path: str, depth: int = 1) -> Subscription:
    """``{"any": [filter, …]}``."""
    if depth > MAX_DEPTH:
        raise LimitError(
            f"filters nest too deeply, at most {MAX_DEPTH} inside each other are allowed,"
            f" at {path}",
            limit="max_depth",
            allowed=MAX_DEPTH,
        )
    path, held = _only(form, "any", path, "a subscription")
    alternatives = _array(held, path, "the alternatives")
    if not alternatives:
        raise JsonFormError("a subscription has at least one filter", path=path)
    if len(alternatives) > MAX_ALTERNATIVES:
        raise LimitError(
            f"{len(alternatives)} alternatives, at most {MAX_ALTERNATIVES} are allowed, at {path}",
            limit="max_alternatives",
            allowed=MAX_ALTERNATIVES,
        )
    return Subscription(
        _filter(alternative, f"{path}[{place}]", depth)
        for place, alternative in enumerate(alternatives)
    )


def read_event(form: Mapping[object, object]) -> Notification:
    """``{"name": value, …}``."""
    held: dict[str, Value] = {}
    for name, value in form.items():
        held[_name(name, "$")] = _value(value, f"$.{name}")
    return Notification(held)


def _filter(form: object, path: str, depth: int) -> Filter:
    path, held = _only(form, "all", path, "a filter")
    return Filter(
        _constraint(constraint, f"{path}[{place}]", depth)
        for place, constraint in enumerate(_array(held, path, "the constraints"))
    )


def _constraint(form: object, path: str, depth: int) -> Constraint:
    parts = _array(form, path, "a constraint")
    if len(parts) not in (2, 3):
        raise JsonFormError("a constraint is [name, operator, operand]", path=path)
    name = _name(parts[0], f"{path}[0]")
    op = _operator(parts[1], f"{path}[1]")
    if op is Content.ANY:
        if parts[2:] not in ([], [None]):
            raise JsonFormError("'any' takes no operand", path=f"{path}[2]")
        return Constraint(name, op)
    if len(parts) == 2:
        raise JsonFormError("the operand is missing", path=path)
    where = f"{path}[2]"
    if not is_temporal(op):
        return Constraint(name, op, _value(parts[2], where))
    inner = read_subscription(parts[2], where, depth + 1)
    try:
        return Constraint(name, op, inner)
    except TemporalReferenceError as error:
        error.message += f", at {path}"
        error.args = (error.message,)
        raise


def _operator(form: object, path: str) -> Operator:
    if form == "during":
        return During()
    if isinstance(form, Mapping) and len(form) == 1:
        (key, held), *_ = form.items()
        if key in ("after", "filter", "relation"):
            return _temporal(str(key), held, f"{path}.{key}")
    return _flat(form, path)


def _temporal(key: str, held: object, path: str) -> Temporal:
    if key == "after":
        return _made(lambda: After(_whole(held, path)), path)
    parts = _array(held, path, f"the operand of {key}") if not isinstance(held, str) else [held]
    if len(parts) not in (1, 2):
        raise JsonFormError(f"{key} takes one or two parameters", path=path)
    if key == "filter":
        op = _flat(parts[0], f"{path}[0]")
        limit = _whole(parts[1], f"{path}[1]") if parts[1:] else DEFAULT_WINDOW
        return _made(lambda: Window(op, limit), f"{path}[1]")
    kind = RELATIONS.get(parts[0]) if isinstance(parts[0], str) else None
    if kind is None:
        raise JsonFormError(f"a relation is one of {', '.join(RELATIONS)}", path=f"{path}[0]")
    tolerance = _whole(parts[1], f"{path}[1]") if parts[1:] else 0
    return _made(lambda: Relation(kind, tolerance), f"{path}[1]")


def _flat(form: object, path: str) -> Simple | BagOp:
    if isinstance(form, str) and form in BAG_KINDS:
        return BagOp(BAG_KINDS[form])
    if isinstance(form, Mapping) and len(form) == 1:
        (key, held), *_ = form.items()
        if key in BAG_KINDS:
            return BagOp(BAG_KINDS[key], _simple(held, f"{path}.{key}"))
    return _simple(form, path)


def _simple(form: object, path: str) -> Simple:
    if isinstance(form, str) and form in SIMPLE:
        return SIMPLE[form]
    if isinstance(form, Mapping) and form.keys() == {"related"}:
        return Related(_name(form["related"], f"{path}.related"))
    shown = repr(form) if isinstance(form, str) else "this"
    raise JsonFormError(f"{shown} is no operator here", path=path)


def _value(form: object, path: str) -> Value:
    if isinstance(form, list | tuple):
        return Bag(_scalar(member, f"{path}[{place}]") for place, member in enumerate(form))
    return _scalar(form, path)


def _scalar(form: object, path: str) -> Scalar:
    if form is not None and not isinstance(form, bool | int | float | str):
        problem = "a bag cannot hold a bag" if isinstance(form, list | tuple) else "no value"
        raise JsonFormError(problem, path=path)
    if not is_finite(form):
        raise JsonFormError("NaN, the infinities and larger numbers are refused", path=path)
    _made(lambda: check_scalar(form), path)
    return form


def _name(form: object, path: str) -> str:
    _made(lambda: check_name(form), path)
    return str(form)


def _whole(form: object, path: str) -> int:
    if isinstance(form, bool) or not isinstance(form, int):
        raise JsonFormError("a whole number is needed", path=path)
    _made(lambda: check_scalar(form), path)
    return form


def _array(form: object, path: str, what: str) -> list[object]:
    if isinstance(form, list | tuple):
        return list(form)
    raise JsonFormError(f"{what}: an array is needed", path=path)


def _only(form: object, key: str, path: str, what: str) -> tuple[str, object]:
    if isinstance(form, Mapping) and form.keys() == {key}:
        return f"{path}.{key}", form[key]
    raise JsonFormError(f'{what} is an object with "{key}" and nothing else', path=path)


def _made(make: Callable[[], _T], path: str) -> _T:
    """What ``make`` gives; what the model refuses gets the path it stood at."""
    try:
        return make()
    except (ValueRangeError, UnsupportedError) as error:
        raise JsonFormError(error.message, path=path) from None
    except LimitError as error:
        message = f"{error.message}, at {path}"
        raise LimitError(message, limit=error.limit, allowed=error.allowed) from None
