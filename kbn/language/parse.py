"""Text to syntax tree.

Nothing but ``KbnError`` leaves these functions, whatever the text: no exception
of the parser generator, and no ``RecursionError``, since parsing is a loop over
a table and what nests is bounded.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from kbn.errors import TextError
from kbn.model import Notification, Subscription

if TYPE_CHECKING:
    from kbn.language.reading import Reader


def parse_subscription(text: str) -> Subscription:
    """The subscription a text stands for; the empty text is the empty filter.

    Raises ``TextError`` with line, column and what was expected there,
    ``LimitError`` for too many alternatives or too deep nesting, and
    ``TemporalReferenceError`` for ``price during {…}``.
    """
    _check_unicode(text)
    return _reader().subscription(text)


def parse_event(text: str) -> Notification:
    """The notification written ``price=79.5 symbol="IBM" tags=["a" "b"]``.

    Raises ``TextError``, also for a name that is given twice.
    """
    _check_unicode(text)
    return _reader().event(text)


@cache
def _reader() -> Reader:
    # The parser generator costs more to import than all the rest of the
    # language; a program that only prints, or speaks JSON, never pays for it.
    from kbn.language.reading import Reader  # noqa: PLC0415

    return Reader()


def _check_unicode(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        before = text[: error.start]
        raise TextError(
            "a lone surrogate, which is no character",
            text=text.encode("utf-8", "replace").decode("utf-8"),
            line=before.count("\n") + 1,
            column=error.start - before.rfind("\n"),
        ) from None
