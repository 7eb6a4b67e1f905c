"""``kbn ontology``: load, list, check, show, diff and remove what the broker knows."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kbn.cli.comparing import diff
from kbn.cli.connecting import AsJson, There, may_talk
from kbn.cli.knowing import (
    DATA_DIR,
    DataDir,
    Format,
    OntologyFiles,
    catalogue_of,
    known_from,
    source_of,
)
from kbn.cli.portraying import in_words, print_portrait, summary, tell_row, warn

if TYPE_CHECKING:
    from kbn.client.aio import Client
    from kbn.model import Notification

app = typer.Typer(
    help="Ontologies: what semantic operators know.", no_args_is_help=True, rich_markup_mode=None
)

Catalogue = Annotated[
    Path | None,
    typer.Option(help="A JSON object from import IRI to local file, for owl:imports."),
]
Skos = Annotated[bool, typer.Option("--skos", help="Read broader and exactMatch as classes.")]


class Reasoner(StrEnum):
    """Which one reasons; the answers are the same."""

    REASONABLE = "reasonable"
    OWLRL = "owlrl"


def _place(how: str, data_dir: Path, as_json: bool) -> None:
    """Which ontologies these are: a running broker is asked only if it is named."""
    if not as_json:
        typer.echo(
            f"{how} {data_dir}: a broker reads it when it starts;"
            " --broker URL teaches a running one",
            err=True,
        )


@app.command()
@may_talk
def load(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file, or one of ours by name.")],
    *,
    data_dir: DataDir = DATA_DIR,
    name: Annotated[str | None, typer.Option(help="Its name here; default: the file's.")] = None,
    format: Annotated[Format | None, typer.Option(help="Default: by the file's name.")] = None,
    catalogue: Catalogue = None,
    skos: Skos = False,
    there: There,
    as_json: AsJson = False,
) -> None:
    """Load a file into a broker or a data directory, or replace the one of that name."""
    from kbn.knowledge.library import Library

    source = source_of(file, format, skos=skos)
    if there.url is not None:
        if catalogue is not None:
            raise typer.BadParameter("a catalogue names files here: use --data-dir")

        async def send(client: Client) -> list[Notification]:
            return [
                await client.load_ontology(
                    name or Path(source.name).stem,
                    source.data,
                    source=source.name,
                    format=source.format,
                    skos=skos,
                )
            ]

        (row,) = there.ask(send)
        tell_row(row, f"loaded {source.name}", as_json)
        return
    library = Library(data_dir)
    change = library.prepare_load(source, name=name, catalogue=catalogue_of(catalogue))
    change.commit()
    assert change.built is not None
    warn(change.built)
    held = [entry.name for entry in library.entries]
    _place("into", data_dir, as_json)
    if as_json:
        typer.echo(json.dumps({"loaded": held, **summary(change.built)}))
    else:
        typer.echo(f"loaded {source.name}; {in_words(change.built)}")


@app.command("list")
@may_talk
def list_(
    data_dir: DataDir = DATA_DIR,
    *,
    there: There,
    as_json: AsJson = False,
) -> None:
    """List what is loaded, in order, with the prefixes that can be written."""
    from kbn.knowledge.library import Library

    if there.url is not None:

        async def ask(client: Client) -> list[Notification]:
            return await client.ontologies()

        row, *files = there.ask(ask)
        if as_json:
            typer.echo(json.dumps({**row, "ontologies": files}, ensure_ascii=False))
            return
        for one in files:
            typer.echo(f"{one['name']:<16} {one['source']} ({one['format']})")
        tell_row(row, f"{len(files)} loaded" if files else "nothing is loaded", as_json)
        return
    library = Library(data_dir)
    built = library.current()
    _place("of", data_dir, as_json)
    entries = library.entries
    if as_json:
        listed = [
            {"name": e.name, "source": e.source, "format": e.format, "skos": e.skos}
            for e in entries
        ]
        more = summary(built) if built else {"hash": None}
        typer.echo(json.dumps({"ontologies": listed, **more}))
        return
    if built is None:
        typer.echo(f"no ontology is loaded in {data_dir}")
        return
    for entry in entries:
        typer.echo(f"{entry.name:<16} {entry.source} ({entry.format})")
    typer.echo(in_words(built))
    for prefix, space in sorted(built.hierarchy.prefixes.table.items()):
        typer.echo(f"  {prefix + ':':<10} {space}")


@app.command()
@may_talk
def remove(
    name: Annotated[str, typer.Argument(help="As `kbn ontology list` shows it.")],
    data_dir: DataDir = DATA_DIR,
    *,
    there: There,
    as_json: AsJson = False,
) -> None:
    """Take an ontology out of a data directory."""
    from kbn.knowledge.library import Library

    if there.url is not None:

        async def send(client: Client) -> list[Notification]:
            return [await client.remove_ontology(name)]

        (row,) = there.ask(send)
        tell_row(row, f"removed {name}", as_json)
        return
    change = Library(data_dir).prepare_remove(name)
    change.commit()
    _place("out of", data_dir, as_json)
    if as_json:
        left = summary(change.built) if change.built else {"hash": None}
        typer.echo(json.dumps({"removed": name, **left}))
    else:
        typer.echo(
            f"removed {name}; " + (in_words(change.built) if change.built else "none is left")
        )


@app.command()
def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Reasoned over together.")],
    *,
    reasoner: Annotated[Reasoner | None, typer.Option(help="Default: the fastest.")] = None,
    format: Annotated[Format | None, typer.Option(help="Default: by the file's name.")] = None,
    catalogue: Catalogue = None,
    skos: Skos = False,
    as_json: AsJson = False,
) -> None:
    """Read files as loading would: exit 0 fine, 1 with warnings, 2 refused."""
    from kbn.knowledge.build import obtain
    from kbn.knowledge.cache import default_cache
    from kbn.knowledge.request import Request

    imports = tuple((iri, str(path)) for iri, path in catalogue_of(catalogue).items())
    sources = tuple(source_of(file, format, skos=skos) for file in files)
    request = Request(sources, catalogue=imports, reasoner=reasoner.value if reasoner else None)
    built = obtain(request, default_cache())
    if as_json:
        typer.echo(json.dumps({**summary(built), "reasoner": request.chosen_reasoner()}))
    else:
        warn(built)
        typer.echo(in_words(built))
    raise typer.Exit(1 if built.warnings else 0)


@app.command()
def show(
    term: Annotated[str, typer.Argument(help="A prefix name or an IRI.")],
    ontology: OntologyFiles = None,
    data_dir: DataDir = DATA_DIR,
    svg: Annotated[Path | None, typer.Option(help="Draw its neighbourhood here.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say what is above, below and beside a term, and why: exit 1 if it is unknown."""
    from kbn.errors import NoOntologyError
    from kbn.knowledge.portrait import portray

    known = known_from(ontology, data_dir)
    if known is None:
        raise NoOntologyError("show")
    portrait = portray(known, term)
    if portrait is None:
        said = {"term": term, "known": False}
        typer.echo(json.dumps(said) if as_json else f"{term} is not known to the ontology")
        raise typer.Exit(1)
    if svg is not None:
        from kbn.knowledge.picture import picture

        svg.write_text(picture(portrait), encoding="utf-8")
    if as_json:
        typer.echo(json.dumps({"known": True, **portrait.to_json()}, ensure_ascii=False))
        return
    print_portrait(portrait)
    if svg is not None:
        typer.echo(f"drawn in {svg}")


app.command()(diff)
