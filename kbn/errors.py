"""Everything that can go wrong on purpose, as one tree.

    KbnError                        code
    ├── MalformedError              syntax               bad input, with a position
    │   ├── TextError               syntax               the text form: line, column, caret
    │   ├── JsonFormError           syntax               the JSON form: path
    │   ├── OntologyError           syntax               an ontology file: its name
    │   └── senp.errors.WireError   syntax, limit, ...   the wire: byte offset
    ├── ValueRangeError             syntax               a value the model cannot hold
    ├── LimitError                  limit                a configured bound was passed
    ├── UnsupportedError            unsupported          understood, but not offered
    ├── NoOntologyError             no_ontology          a semantic operator, nothing loaded
    ├── TemporalReferenceError      temporal_reference   a temporal operator on no time
    ├── RefusedError                as given             a request the broker will not carry out
    ├── UnreachableError            unreachable          nobody answers at the broker's address
    ├── ClosedError                 closed               the client was closed, or its stream
    └── StoreError                  store_unavailable    the history cannot be opened or written
        └── StoreBusyError          store_unavailable    a broker has it open

Every class carries fields, not only a sentence; ``code`` is stable, travels in
``ERR`` packets and has an anchor in ``docs/errors.md``.
"""

from __future__ import annotations


class KbnError(Exception):
    """The root: ``code`` is stable and documented, ``str()`` says what to do."""

    code: str = "internal"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class MalformedError(KbnError):
    """Input that cannot be read; subclasses say where."""

    code = "syntax"


class TextError(MalformedError):
    """The text form of a filter, subscription or event is wrong at a place.

    ``line`` and ``column`` count from 1; ``expected`` lists what would have
    been accepted there, as people write it.
    """

    def __init__(
        self,
        problem: str,
        *,
        text: str,
        line: int,
        column: int,
        expected: tuple[str, ...] = (),
    ) -> None:
        self.problem = problem
        self.text = text
        self.line = line
        self.column = column
        self.expected = expected
        super().__init__(self._render())

    def _render(self) -> str:
        lines = self.text.split("\n")
        shown = lines[self.line - 1] if 0 < self.line <= len(lines) else ""
        # A tab keeps its width in the terminal, so the caret line repeats it.
        margin = "".join("\t" if c == "\t" else " " for c in shown[: self.column - 1])
        message = f"line {self.line}, column {self.column}: {self.problem}"
        if self.expected:
            message += "\nexpected " + _either(self.expected)
        return f"{message}\n  {shown}\n  {margin}^"


class JsonFormError(MalformedError):
    """The JSON form is wrong at ``path`` (such as ``$.any[0].all[2]``)."""

    def __init__(self, problem: str, *, path: str) -> None:
        self.problem = problem
        self.path = path
        super().__init__(f"{problem} at {path}")


class OntologyError(MalformedError):
    """An ontology cannot be read; ``source`` is the file."""

    def __init__(self, problem: str, *, source: str) -> None:
        self.problem = problem
        self.source = source
        super().__init__(f"{source}: {problem}")


class ValueRangeError(KbnError):
    """A value that no form can carry: 64-bit overflow, a lone surrogate, a bag in a bag."""

    code = "syntax"


class LimitError(KbnError):
    """A bound was passed; ``limit`` names it and ``allowed`` is its value."""

    code = "limit"

    def __init__(self, message: str, *, limit: str, allowed: int) -> None:
        self.limit = limit
        self.allowed = allowed
        super().__init__(message)


class UnsupportedError(KbnError):
    """The request is well formed and means something this program does not offer."""

    code = "unsupported"


class NoOntologyError(KbnError):
    """A semantic operator was asked, and no ontology is loaded."""

    code = "no_ontology"

    def __init__(self, operator: str) -> None:
        self.operator = operator
        super().__init__(
            f"'{operator}' needs an ontology, and none is loaded; load one: `kbn ontology load"
            " FILE --broker URL` (ours: wine, nebraska, units, events)"
        )


class TemporalReferenceError(KbnError):
    """A temporal operator stands on an attribute that is no time."""

    code = "temporal_reference"

    def __init__(self, name: str, operator: str, allowed: tuple[str, ...]) -> None:
        self.name = name
        self.operator = operator
        self.allowed = allowed
        super().__init__(f"'{operator}' cannot refer to '{name}': it needs {_either(allowed)}")


class RefusedError(KbnError):
    """A broker's no to one request; ``code`` is one of ``REFUSALS``."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


class UnreachableError(KbnError):
    """There is no broker at ``url``, or the connection to it was lost for good."""

    code = "unreachable"

    def __init__(self, url: str, why: str = "") -> None:
        self.url = url
        self.why = why
        message = f"cannot reach the broker at {url}: is `kbn serve` running?"
        super().__init__(f"{message} ({why})" if why else message)


class ClosedError(KbnError):
    """The client, or one subscription of it, was closed: nothing more comes or goes."""

    code = "closed"


class StoreError(KbnError):
    """The history store cannot be opened, read or written now; nothing was half done.

    ``store`` is its URL, without a password.
    """

    code = "store_unavailable"

    def __init__(self, message: str, *, store: str = "") -> None:
        self.store = store
        super().__init__(f"{store}: {message}" if store else message)


class StoreBusyError(StoreError):
    """Another broker writes this store; it may still be read."""


#: The codes that only a broker gives, beside those of the classes above.
REFUSALS = frozenset(
    [
        "unknown_method",
        "auth",
        "forbidden",
        "temporal_conflict",
        "temporal_missing",
        "time_range",
        "store_unavailable",
        "overloaded",
        "name_in_use",
        "loop",
        "too_large",
        "syntax",
        "limit",
        "unsupported",
    ]
)


def _either(words: tuple[str, ...]) -> str:
    """``("a", "b", "c")`` as ``a, b or c``."""
    if len(words) == 1:
        return words[0]
    return ", ".join(words[:-1]) + " or " + words[-1]
