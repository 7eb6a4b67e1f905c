"""The forms people write: text, JSON and Python, all three building one syntax tree.

    text    parse_subscription, parse_event  ⇄  print_subscription, print_event
    JSON    subscription_from_json, …        ⇄  subscription_to_json, …
    Python  attr("price") < 80, start.during(…), combined with & and |

``grammar.lark`` is the grammar, ``spelling`` the words, ``literals`` and
``durations`` the constants, ``shorthand`` what ``start`` and ``end`` stand for,
``expansion`` how ``or`` becomes alternatives. Importing this package costs
nothing: every name below is loaded when it is first asked for, and the parser
generator only when the first text is parsed.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kbn.language.builder import (
        Attribute,
        Expression,
        as_subscription,
        attr,
        end,
        everything,
        relation,
        start,
    )
    from kbn.language.jsonform import (
        dumps_event,
        dumps_subscription,
        event_from_json,
        event_to_json,
        loads_event,
        loads_subscription,
        subscription_from_json,
        subscription_to_json,
    )
    from kbn.language.parse import parse_event, parse_subscription
    from kbn.language.printer import (
        print_constraint,
        print_event,
        print_filter,
        print_operator,
        print_subscription,
        print_value,
        show_value,
        warnings,
    )

__all__ = [
    "Attribute",
    "Expression",
    "as_subscription",
    "attr",
    "dumps_event",
    "dumps_subscription",
    "end",
    "event_from_json",
    "event_to_json",
    "everything",
    "loads_event",
    "loads_subscription",
    "parse_event",
    "parse_subscription",
    "print_constraint",
    "print_event",
    "print_filter",
    "print_operator",
    "print_subscription",
    "print_value",
    "relation",
    "show_value",
    "start",
    "subscription_from_json",
    "subscription_to_json",
    "warnings",
]

_HOMES = {
    "builder": ("Attribute Expression as_subscription attr end everything relation start"),
    "jsonform": (
        "dumps_event dumps_subscription event_from_json event_to_json loads_event"
        " loads_subscription subscription_from_json subscription_to_json"
    ),
    "parse": "parse_event parse_subscription",
    "printer": (
        "print_constraint print_event print_filter print_operator print_subscription"
        " print_value show_value warnings"
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
