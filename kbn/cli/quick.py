"""Parameters of the command line without pydantic.

Typer 0.29 has pydantic convert every parameter, and importing it takes as long
as half of ``kbn match``. Texts, plain paths and choices need no such help; what
else a verb takes is left to Typer. The names used here are Typer's own: should a
later one lack them, it converts everything as before, and only time is lost.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Any

import typer
from typer import core
from typer._coercion import RuntimeParam, TypeDescriptor, build_runtime_param

#: What Typer checks of a path, or does to it, where a verb asks for it.
_PATH_CHECKS = ("exists", "writable", "resolve_path", "path_type")


class _Plain(RuntimeParam):
    """A text as it is, a path of it, or the member of an enum that it names."""

    def _coerce_value(self, value: Any, param: Any, ctx: Any) -> Any:
        wanted = self.annotation
        try:
            return wanted(value)
        except ValueError:
            known = ", ".join(repr(member.value) for member in wanted)
            raise typer.BadParameter(
                f"{value!r} is not one of {known}.", ctx=ctx, param=param
            ) from None


class _Texts(RuntimeParam):
    """Texts as they are, of an option that may be repeated."""

    def _coerce_value(self, value: Any, param: Any, ctx: Any) -> Any:
        return None if value is None else list(value)


class _Flag(RuntimeParam):
    """A flag that was given or not; what stands in an environment variable is Typer's."""

    def _coerce_value(self, value: Any, param: Any, ctx: Any) -> Any:
        if isinstance(value, bool):
            return value
        typers = build_runtime_param(TypeDescriptor(self.annotation, self.parameter_info, None))
        return typers.coerce(value, param=param, ctx=ctx)


def _build(descriptor: TypeDescriptor) -> RuntimeParam:
    info, wanted = descriptor.parameter_info, descriptor.annotation
    if info.parser is None and wanted == list[str]:
        return _Texts(info, wanted)
    if info.parser is None and isinstance(wanted, type):
        if wanted is bool:
            return _Flag(info, wanted)
        path = wanted is Path and not any(getattr(info, check, None) for check in _PATH_CHECKS)
        if wanted is str or path or (issubclass(wanted, Enum) and info.case_sensitive):
            return _Plain(info, wanted)
    return build_runtime_param(descriptor)


def hasten() -> None:
    """From now on, simple parameters are converted here."""
    core.build_runtime_param = _build  # type: ignore[attr-defined]
