"""One term as people see it: what is above, below and beside it, and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from kbn.knowledge.hierarchy import Hierarchy
from kbn.knowledge.hierarchy.pairs import Pairs
from kbn.knowledge.hierarchy.parts import CLASS, INDIVIDUAL, PROPERTY
from kbn.knowledge.hierarchy.why import Paths


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another term, how near it is, and the path to it."""

    term: str
    kind: str
    direct: bool
    why: str


@dataclass(frozen=True, slots=True)
class Relation:
    """``subject property object``, with its reason."""

    subject: str
    property: str
    object: str
    why: str


@dataclass(frozen=True, slots=True)
class Portrait:
    """Everything known about one term. Lists are complete and in order of names."""

    term: str
    kind: str
    iris: tuple[str, ...]
    label: str | None
    equivalents: tuple[str, ...]
    above: tuple[Neighbour, ...]
    below: tuple[Neighbour, ...]
    types: tuple[Neighbour, ...]
    instances: tuple[Neighbour, ...]
    relations: tuple[Relation, ...]
    inbound: tuple[Relation, ...]

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def portray(known: Hierarchy, term: str) -> Portrait | None:
    """The portrait of a term, or None if it is unknown."""
    thing = known.thing(term)
    return None if thing is None else _Painter(known, thing).paint()


def kind_of(known: Hierarchy, thing: int) -> str:
    """``class``, ``property``, ``individual``, several of them, ``literal`` or ``term``."""
    if thing >= len(known.kinds):
        return "literal"
    words = {CLASS: "class", PROPERTY: "property", INDIVIDUAL: "individual"}
    read = [word for flag, word in words.items() if known.kinds[thing] & flag]
    return ", ".join(read) or "term"


class _Painter:
    def __init__(self, known: Hierarchy, thing: int) -> None:
        self.known = known
        self.thing = thing
        self.paths = Paths(known)

    def paint(self) -> Portrait:
        known, thing = self.known, self.thing
        orders = (known.class_up, known.property_up)
        same = {u for up in orders for u in up.rights(thing) if up.has(u, thing)} - {thing}
        iris = known.names_of[thing]
        return Portrait(
            term=self.name(thing),
            kind=kind_of(known, thing),
            iris=iris,
            label=known.reasons.labels.get(thing),
            equivalents=tuple(sorted({*map(known.prefixes.shorten, iris[1:]), *self.all(same)})),
            above=self._sorted(n for up in orders for n in self._above(up)),
            below=self._sorted(n for up in orders for n in self._below(up)),
            types=self._types(),
            instances=self._instances(),
            relations=self._sorted_relations(self._outbound()),
            inbound=self._sorted_relations(self._inbound()),
        )

    def name(self, thing: int) -> str:
        known = self.known
        if thing >= len(known.kinds):
            return self.paths.name(thing)
        return known.prefixes.shorten(known.names_of[thing][0])

    def all(self, things: Iterable[int]) -> list[str]:
        return [self.known.prefixes.shorten(iri) for t in things for iri in self.known.names_of[t]]

    def _neighbour(self, thing: int, *, direct: bool, why: str) -> Neighbour:
        return Neighbour(self.name(thing), kind_of(self.known, thing), direct, why)

    def _above(self, up: Pairs) -> Iterable[Neighbour]:
        proper = [u for u in up.rights(self.thing) if not up.has(u, self.thing)]
        for u in proper:
            nearer = any(up.has(v, u) and not up.has(u, v) for v in proper)
            why = self.paths.order(self.thing, u)
            yield self._neighbour(u, direct=not nearer, why=why)

    def _below(self, up: Pairs) -> Iterable[Neighbour]:
        proper = {d for d in up.lefts(self.thing) if not up.has(self.thing, d)}
        for d in proper:
            between = any(v in proper and not up.has(v, d) for v in up.rights(d))
            why = self.paths.order(d, self.thing)
            yield self._neighbour(d, direct=not between, why=why)

    def _types(self) -> tuple[Neighbour, ...]:
        nearest = set(self.paths.nearest_types(self.thing))
        return self._sorted(
            self._neighbour(t, direct=t in nearest, why=self.paths.type_path(self.thing, t))
            for t in self.known.types.rights(self.thing)
        )

    def _instances(self) -> tuple[Neighbour, ...]:
        known = self.known
        if not known.is_read_as(self.thing, CLASS):
            return ()
        return self._sorted(
            self._neighbour(
                i,
                direct=self.thing in self.paths.nearest_types(i),
                why=self.paths.type_path(i, self.thing),
            )
            for i in known.types.lefts(self.thing)
        )

    def _outbound(self) -> Iterable[Relation]:
        for p, pairs in self.known.relations.items():
            for o in pairs.rights(self.thing):
                why = self.paths.relation_path(p, self.thing, o)
                yield Relation(self.name(self.thing), self.name(p), self.name(o), why)

    def _inbound(self) -> Iterable[Relation]:
        for p, pairs in self.known.relations.items():
            for s in pairs.lefts(self.thing):
                why = self.paths.relation_path(p, s, self.thing)
                yield Relation(self.name(s), self.name(p), self.name(self.thing), why)

    @staticmethod
    def _sorted(found: Iterable[Neighbour]) -> tuple[Neighbour, ...]:
        return tuple(sorted(found, key=lambda n: (not n.direct, n.term)))

    @staticmethod
    def _sorted_relations(found: Iterable[Relation]) -> tuple[Relation, ...]:
        return tuple(sorted(found, key=lambda r: (r.property, r.subject, r.object)))
