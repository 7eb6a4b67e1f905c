"""What is known, for people to read: summaries, warnings, the portrait of a term."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbn.knowledge.build import Built
    from kbn.knowledge.portrait import Neighbour, Portrait

#: How many of a long list are printed; JSON has them all.
SHOWN = 12


def tell_row(row: dict[str, Any], done: str, as_json: bool) -> None:
    """What a broker said it knows now."""
    if as_json:
        typer.echo(json.dumps(row, ensure_ascii=False))
        return
    for warning in row["warnings"]:
        typer.echo(f"kbn: warning: {warning}", err=True)
    if row.get("broken"):
        typer.echo(f"kbn: error: {row['broken']}", err=True)
    known = f"{row['terms']} terms, hash {row['hash'][:12]}" if row["hash"] else "none is left"
    typer.echo(f"{done}; {known}")


def warn(built: Built) -> None:
    for warning in built.warnings:
        typer.echo(f"kbn: warning: {warning}", err=True)


def summary(built: Built) -> dict[str, object]:
    known = built.hierarchy
    return {
        "hash": known.hash,
        "terms": len(known.iris),
        "triples": built.triples,
        "prefixes": dict(known.prefixes.table),
        "warnings": list(built.warnings),
        "cached": built.cached,
    }


def in_words(built: Built) -> str:
    known = built.hierarchy
    kinds = [sum(bool(kind & flag) for kind in known.kinds) for flag in (1, 2, 4)]
    classes, properties, individuals = kinds
    return (
        f"{len(known.iris)} terms ({classes} classes, {properties} properties,"
        f" {individuals} individuals), hash {known.hash[:12]}"
    )


def print_portrait(portrait: Portrait) -> None:
    label = f" “{portrait.label}”" if portrait.label else ""
    typer.echo(f"{portrait.term}{label}: {portrait.kind}")
    for iri in portrait.iris:
        typer.echo(f"  <{iri}>")
    if portrait.equivalents:
        typer.echo(f"the same as   {few(portrait.equivalents)}")
    for heading, neighbours in (
        ("above", portrait.above),
        ("below", portrait.below),
        ("types", portrait.types),
        ("instances", portrait.instances),
    ):
        _print_neighbours(heading, neighbours)
    for heading, relations in (("relations", portrait.relations), ("inbound", portrait.inbound)):
        if relations:
            typer.echo(heading)
        for one in relations[:SHOWN]:
            plain = f"{one.subject} {one.property} {one.object}"
            typer.echo(f"  {plain:<56} {one.why}")
        if len(relations) > SHOWN:
            typer.echo(f"  and {len(relations) - SHOWN} more")


def _print_neighbours(heading: str, neighbours: Sequence[Neighbour]) -> None:
    if neighbours:
        typer.echo(heading)
    for one in neighbours[:SHOWN]:
        typer.echo(f"  {one.term:<32} {one.why}")
    if len(neighbours) > SHOWN:
        typer.echo(f"  and {len(neighbours) - SHOWN} more")


def few(terms: Sequence[str]) -> str:
    more = f" and {len(terms) - SHOWN} more" if len(terms) > SHOWN else ""
    return ", ".join(terms[:SHOWN]) + more
