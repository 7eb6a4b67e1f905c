"""``kbn ontology``: load, list, check, show, diff and remove what the broker knows."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbn.cli.talk import Ca, Token, User, ask_broker, told

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kbn.client.aio import Client
    from kbn.client.options import Told
    from kbn.knowledge.build import Built
    from kbn.knowledge.hierarchy import Hierarchy
    from kbn.knowledge.portrait import Neighbour, Portrait
    from kbn.knowledge.request import Source
    from kbn.model import Notification, Subscription

app = typer.Typer(
    help="Ontologies: what semantic operators know.", no_args_is_help=True, rich_markup_mode=None
)

OntologyFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--ontology", help="A file, or wine, nebraska, units, events; repeatable.", metavar="FILE"
    ),
]
DataDir = Annotated[
    Path,
    typer.Option("--data-dir", envvar="KBN_DATA_DIR", help="Whose ontologies, if none is given."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Catalogue = Annotated[
    Path | None,
    typer.Option(help="A JSON object from import IRI to local file, for owl:imports."),
]
Skos = Annotated[bool, typer.Option("--skos", help="Read broader and exactMatch as classes.")]
AtBroker = Annotated[
    str | None,
    typer.Option("--broker", metavar="URL", help="Ask this running broker instead."),
]
DATA_DIR = Path("kbn-data")
#: How many of a long list are printed; JSON has them all.
SHOWN = 12


class Reasoner(StrEnum):
    """Which one reasons; the answers are the same."""

    REASONABLE = "reasonable"
    OWLRL = "owlrl"


class Format(StrEnum):
    """What a file is written in, where its name does not say."""

    TURTLE = "turtle"
    XML = "xml"
    NT = "nt"
    JSON_LD = "json-ld"


@app.command()
def load(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file, or one of ours by name.")],
    *,
    data_dir: DataDir = DATA_DIR,
    name: Annotated[str | None, typer.Option(help="Its name here; default: the file's.")] = None,
    format: Annotated[Format | None, typer.Option(help="Default: by the file's name.")] = None,
    catalogue: Catalogue = None,
    skos: Skos = False,
    broker: AtBroker = None,
    token: Token = None,
    user: User = None,
    ca: Ca = None,
    as_json: AsJson = False,
) -> None:
    """Load a file into a broker or a data directory, or replace the one of that name."""
    from kbn.knowledge.library import Library

    source = _source(file, format, skos=skos)
    if broker is not None:
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

        (row,) = ask_broker(broker, told(token, user, ca), send)
        _tell_row(row, f"loaded {source.name}", as_json)
        return
    library = Library(data_dir)
    change = library.prepare_load(source, name=name, catalogue=_catalogue(catalogue))
    change.commit()
    assert change.built is not None
    _warn(change.built)
    held = [entry.name for entry in library.entries]
    if as_json:
        typer.echo(json.dumps({"loaded": held, **_summary(change.built)}))
    else:
        typer.echo(f"loaded {source.name}; {_said(change.built)}")


@app.command("list")
def list_(
    data_dir: DataDir = DATA_DIR,
    broker: AtBroker = None,
    token: Token = None,
    user: User = None,
    ca: Ca = None,
    as_json: AsJson = False,
) -> None:
    """List what is loaded, in order, with the prefixes that can be written."""
    from kbn.knowledge.library import Library

    if broker is not None:

        async def ask(client: Client) -> list[Notification]:
            return await client.ontologies()

        row, *files = ask_broker(broker, told(token, user, ca), ask)
        if as_json:
            typer.echo(json.dumps({**row, "ontologies": files}, ensure_ascii=False))
            return
        for one in files:
            typer.echo(f"{one['name']:<16} {one['source']} ({one['format']})")
        _tell_row(row, f"{len(files)} loaded" if files else "nothing is loaded", as_json)
        return
    library = Library(data_dir)
    built = library.current()
    entries = library.entries
    if as_json:
        listed = [
            {"name": e.name, "source": e.source, "format": e.format, "skos": e.skos}
            for e in entries
        ]
        more = _summary(built) if built else {"hash": None}
        typer.echo(json.dumps({"ontologies": listed, **more}))
        return
    if built is None:
        typer.echo(f"no ontology is loaded in {data_dir}")
        return
    for entry in entries:
        typer.echo(f"{entry.name:<16} {entry.source} ({entry.format})")
    typer.echo(_said(built))
    for prefix, space in sorted(built.hierarchy.prefixes.table.items()):
        typer.echo(f"  {prefix + ':':<10} {space}")


@app.command()
def remove(
    name: Annotated[str, typer.Argument(help="As `kbn ontology list` shows it.")],
    data_dir: DataDir = DATA_DIR,
    broker: AtBroker = None,
    token: Token = None,
    user: User = None,
    ca: Ca = None,
    as_json: AsJson = False,
) -> None:
    """Take an ontology out of a data directory."""
    from kbn.knowledge.library import Library

    if broker is not None:

        async def send(client: Client) -> list[Notification]:
            return [await client.remove_ontology(name)]

        (row,) = ask_broker(broker, told(token, user, ca), send)
        _tell_row(row, f"removed {name}", as_json)
        return
    change = Library(data_dir).prepare_remove(name)
    change.commit()
    if as_json:
        left = _summary(change.built) if change.built else {"hash": None}
        typer.echo(json.dumps({"removed": name, **left}))
    else:
        typer.echo(f"removed {name}; " + (_said(change.built) if change.built else "none is left"))


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

    imports = tuple((iri, str(path)) for iri, path in _catalogue(catalogue).items())
    sources = tuple(_source(file, format, skos=skos) for file in files)
    request = Request(sources, catalogue=imports, reasoner=reasoner.value if reasoner else None)
    built = obtain(request, default_cache())
    if as_json:
        typer.echo(json.dumps({**_summary(built), "reasoner": request.chosen_reasoner()}))
    else:
        _warn(built)
        typer.echo(_said(built))
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
    _print_portrait(portrait)
    if svg is not None:
        typer.echo(f"drawn in {svg}")


@app.command()
def diff(
    old: Annotated[str, typer.Argument(metavar="OLD", help="A file, or a data directory.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="A file, or a data directory.")],
    subscriptions: Annotated[
        Path | None,
        typer.Option(help="Filters, one a line, as text or JSON: which match differently?"),
    ] = None,
    broker: AtBroker = None,
    token: Token = None,
    user: User = None,
    ca: Ca = None,
    as_json: AsJson = False,
) -> None:
    """Compare two ontologies by what follows from them: exit 0 the same, 1 different."""
    from kbn.knowledge.difference import affected, differences

    before, after = _side(old), _side(new)
    found = differences(before, after)
    asked = list(_read_subscriptions(subscriptions))
    if broker is not None:
        asked += _live_subscriptions(broker, told(token, user, ca))
    touched = affected(asked, before, after)
    same = all(each.empty for each in found.values()) and not touched
    if as_json:
        said = {
            "same": same,
            **{
                about: {"added": each.added, "removed": each.removed}
                for about, each in found.items()
            },
            "subscriptions": [
                {
                    "subscription": one.subscription,
                    "constraints": [part._asdict() for part in one.parts],
                    "unknown": one.unknown,
                }
                for one in touched
            ],
        }
        typer.echo(json.dumps(said, ensure_ascii=False))
        raise typer.Exit(0 if same else 1)
    for about, each in found.items():
        for mark, statements in (("+", each.added), ("-", each.removed)):
            for statement in statements[:SHOWN]:
                typer.echo(f"{mark} {statement}")
            if len(statements) > SHOWN:
                typer.echo(f"{mark} and {len(statements) - SHOWN} more {about}")
    for one in touched:
        typer.echo(f"would match differently: {one.subscription}")
        for part in one.parts:
            for mark, terms in (("+", part.gained), ("-", part.lost)):
                if terms:
                    typer.echo(f"  {part.constraint}  {mark} {_few(terms)}")
        for unknown in one.unknown:
            typer.echo(f"  {unknown} is no longer known")
    if same:
        typer.echo("the same")
    raise typer.Exit(0 if same else 1)


def known_from(files: Sequence[str] | None, data_dir: Path) -> Hierarchy | None:
    """The hierarchy of the files given, else of the data directory; None if neither has any.

    From the cache where it can be; then rdflib is not imported.
    """
    if files:
        from kbn.knowledge.build import obtain
        from kbn.knowledge.cache import default_cache
        from kbn.knowledge.request import Request

        built = obtain(Request(tuple(_source(file) for file in files)), default_cache())
        _warn(built)
        return built.hierarchy
    if not (data_dir / "ontologies" / "library.json").exists():
        return None
    from kbn.knowledge.library import Library

    current = Library(data_dir).current()
    return None if current is None else current.hierarchy


def _source(file: str, format: Format | None = None, *, skos: bool = False) -> Source:
    import ontologies
    from kbn.knowledge.request import Source

    path = Path(file)
    if file in ontologies.NAMES and not path.exists():
        path = ontologies.path(file)
    return Source.read(path, format=format.value if format else None, skos=skos)


def _side(given: str) -> Hierarchy:
    from kbn.errors import NoOntologyError

    is_data = Path(given).is_dir()
    known = known_from(None, Path(given)) if is_data else known_from([given], DATA_DIR)
    if known is None:
        raise NoOntologyError("diff")
    return known


def _catalogue(path: Path | None) -> dict[str, Path]:
    from kbn.errors import OntologyError

    if path is None:
        return {}
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        return {str(iri): path.parent / str(file) for iri, file in held.items()}
    except (OSError, ValueError, AttributeError) as error:
        raise OntologyError(f"is no catalogue: {error}", source=str(path)) from None


def _read_subscriptions(path: Path | None) -> Iterator[Subscription]:
    from kbn.errors import OntologyError
    from kbn.language import loads_subscription, parse_subscription

    if path is None:
        return
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise OntologyError(f"cannot be read: {error.strerror}", source=str(path)) from None
    for line in lines:
        if line.strip():
            read = loads_subscription if line.lstrip().startswith("{") else parse_subscription
            yield read(line)


def _live_subscriptions(broker: str, options: Told) -> Iterator[Subscription]:
    """What is subscribed to at a running broker, each once."""
    from kbn.language import parse_subscription

    async def ask(client: Client) -> list[Notification]:
        return await client.subscriptions()

    rows = ask_broker(broker, options, ask)
    for text in dict.fromkeys(str(row["subscription"]) for row in rows):
        yield parse_subscription(text)


def _tell_row(row: dict[str, Any], done: str, as_json: bool) -> None:
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


def _warn(built: Built) -> None:
    for warning in built.warnings:
        typer.echo(f"kbn: warning: {warning}", err=True)


def _summary(built: Built) -> dict[str, object]:
    known = built.hierarchy
    return {
        "hash": known.hash,
        "terms": len(known.iris),
        "triples": built.triples,
        "prefixes": dict(known.prefixes.table),
        "warnings": list(built.warnings),
        "cached": built.cached,
    }


def _said(built: Built) -> str:
    known = built.hierarchy
    kinds = [sum(bool(kind & flag) for kind in known.kinds) for flag in (1, 2, 4)]
    classes, properties, individuals = kinds
    return (
        f"{len(known.iris)} terms ({classes} classes, {properties} properties,"
        f" {individuals} individuals), hash {known.hash[:12]}"
    )


def _print_portrait(portrait: Portrait) -> None:
    label = f" “{portrait.label}”" if portrait.label else ""
    typer.echo(f"{portrait.term}{label}: {portrait.kind}")
    for iri in portrait.iris:
        typer.echo(f"  <{iri}>")
    if portrait.equivalents:
        typer.echo(f"the same as   {_few(portrait.equivalents)}")
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


def _few(terms: Sequence[str]) -> str:
    more = f" and {len(terms) - SHOWN} more" if len(terms) > SHOWN else ""
    return ", ".join(terms[:SHOWN]) + more
