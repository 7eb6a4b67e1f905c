"""Terms in a tree of brokers: who knows what decides where, never what is told.

Law: a client hears what matches under the ontology of its own broker, once and in
order, whether the brokers above know the same (constraints travel), something else,
or nothing (constraints are widened). While an ontology is replaced, anywhere and
under faults, what matches before and after is told, what matches neither is not.
"""

from __future__ import annotations

import os
from collections import Counter
from random import Random
from typing import ClassVar

import pytest

from kbn.broker.instructions import ChangeOntology, CommitOntology
from kbn.broker.knowing import NOTHING_LOADED, Ontology
from kbn.broker.stimuli import OntologyBuilt, OntologyKept
from kbn.knowledge.builder import build
from kbn.knowledge.closure import Closure
from kbn.knowledge.hierarchy import NO_TERMS, Hierarchy
from kbn.knowledge.hierarchy.names import STANDARD, Prefixes
from kbn.language import parse_subscription
from kbn.matching.naive import matches
from kbn.matching.world import World
from kbn.model import Notification, Subscription
from senp import Packet
from tests.knowledge.worlds import X, random_triples
from tests.simulation.network import Client, Network, Node

TREE = {"r": None, "a": "r", "b": "r", "aa": "a", "ba": "b"}
SCHEDULES = 150 if os.environ.get("KBN_PROFILE") == "deep" else 12
#: Other prefixes for the same knowledge: the strings of events mean something else.
SPELLINGS = (Prefixes({**STANDARD, "x": X}), Prefixes({**STANDARD, "y": X}))


def make(seed: int, spelling: int = 0) -> Ontology:
    closed = Closure(random_triples(Random(seed)), most=100_000, max_list=100)
    closed.run()
    return Ontology(build(closed, SPELLINGS[spelling], {}))


class LearningNode(Node):
    """A broker whose worker and disk take their time."""

    begins: ClassVar[dict[str, Ontology]] = {}
    library: ClassVar[dict[str, Ontology]] = {}

    def __init__(self, network: Network, name: str, **settings: object) -> None:
        self.node_name = name
        super().__init__(network, name, **settings)

    def known(self) -> Ontology:
        return self.begins.get(self.node_name, NOTHING_LOADED)

    def perform(self, instruction: object) -> None:
        clock = self.network.clock
        if isinstance(instruction, ChangeOntology):
            said = OntologyBuilt(instruction.number, self.library[instruction.name])
        else:
            assert isinstance(instruction, CommitOntology)
            said = OntologyKept(instruction.number)  # type: ignore[assignment]
        clock.after(clock.random.randint(1, 60), lambda: self.feed(said))

    @property
    def hierarchy(self) -> Hierarchy:
        return self.state.core.ontology or NO_TERMS


class LearningNetwork(Network):
    node = LearningNode


def network_of(seed: int, begins: dict[str, Ontology]) -> LearningNetwork:
    class Here(LearningNode):
        pass

    Here.begins = begins
    Here.library = {f"{n}{s}": make(n, s) for n in range(3) for s in (0, 1)}
    Here.library["none"] = NOTHING_LOADED

    class There(LearningNetwork):
        node = Here

    return There(seed, TREE)


def some_subscription(random: Random) -> Subscription:
    prefix = random.choice("xxy")
    term = f"{prefix}:c{random.randrange(8)}"
    text = random.choice(
        (
            f"v is_a {term}",
            f"v is_a {term}",
            f"v more_specific {term}",
            f"v is_not_a {term} and n >= 0",
            f"v superbag[is_a] [{term}]",
            f"v related {prefix}:p{random.randrange(4)} {prefix}:i{random.randrange(8)}",
            f"v is_a {term} or v equivalent {prefix}:i1",
            "v any",
        )
    )
    return parse_subscription(text)


def some_event(random: Random, n: int) -> Notification:
    value = random.choice("ci") + str(random.randrange(8))
    return Notification({"n": n, "v": random.choice((f"x:{value}", f"y:{value}", X + value))})


def subscribed(network: LearningNetwork, random: Random) -> tuple[list[Client], dict]:
    clients = [Client(network, f"c{i}", random.choice(list(TREE))) for i in range(6)]
    asked = {}
    for client in clients:
        for number in range(3):
            asked[client.name, number] = some_subscription(random)
            client.subscribe(number, asked[client.name, number])
    network.settle(5_000)
    refused = {
        (c.name, int(p.seq) - 1)  # type: ignore[arg-type]
        for c in clients
        for p in c.answers
        if p.method == "ERR"
    }
    return clients, {key: one for key, one in asked.items() if key not in refused}


def test_terms_travel_to_a_master_that_knows_the_same_and_only_there() -> None:
    for above, travels in ((make(1), True), (make(1, 1), False), (make(2), False)):
        network = network_of(1, {"r": above, "a": make(1)})
        network.settle(3_000)
        client = Client(network, "c", "a")
        client.subscribe(0, parse_subscription("v is_a x:c1"))
        network.settle(3_000)
        (unit,) = network.nodes["r"].state.core.table.units.values()
        said = parse_subscription(f'v is_a "{X}c1"' if travels else "v any")
        assert unit.asked == said


@pytest.mark.parametrize("seed", range(SCHEDULES))
def test_what_is_told_does_not_depend_on_what_the_brokers_above_know(seed: int) -> None:
    random = Random(seed)
    choices = [make(1), make(1), make(1, 1), make(2), NOTHING_LOADED]
    network = network_of(seed, {name: random.choice(choices) for name in TREE})
    network.settle(5_000)
    clients, asked = subscribed(network, random)
    published = [some_event(random, n) for n in range(60)]
    for event in published:
        random.choice(clients).publish(event)
        network.settle(40)
    network.settle(10_000)
    for client in clients:
        world = World(network.nodes[client.broker].hierarchy)  # type: ignore[attr-defined]
        expected = Counter(
            (f"{client.name}/{number}", event["n"])
            for (name, number), one in asked.items()
            if name == client.name
            for event in published
            if matches(one, event, world)
        )
        assert Counter((to, event["n"]) for to, event in client.heard) == expected


@pytest.mark.parametrize("seed", range(SCHEDULES))
def test_replacing_ontologies_anywhere_loses_and_doubles_nothing(seed: int) -> None:
    random = Random(seed)
    begins = {name: random.choice([make(1), make(1), make(2)]) for name in TREE}
    network = network_of(seed, begins)
    network.settle(5_000)
    clients, asked = subscribed(network, random)
    for client in clients:
        client.heard.clear()
    published: list[Notification] = []
    publishers = random.sample(clients, 3)
    origin: dict[int, str] = {}

    def publish() -> None:
        event = some_event(random, len(published))
        publisher = random.choice(publishers)
        origin[len(published)] = publisher.name
        published.append(event)
        publisher.publish(event)

    #: First and last publication, and every hierarchy a broker may have had meanwhile.
    spans: list[tuple[int, int, dict[str, list[Hierarchy]]]] = []
    for _ in range(4):
        first = len(published)
        name = random.choice(list(TREE))
        before = {n: node.hierarchy for n, node in network.nodes.items()}  # type: ignore[attr-defined]
        admin = Client(network, f"admin{network.clock.now}", name)
        said = {"what": "load", "name": f"{random.randrange(3)}{random.choice('001')}"}
        admin.request(method="ONT", payload=Notification({**said, "data": "eA=="}))
        for _ in range(12):
            publish()
            network.clock.run(network.clock.now + random.randint(0, 40))
            if random.random() < 0.1:
                network.fault()
        network.settle(40_000)
        for client in clients:
            client.send(Packet(method="NOP"))  # or it would be taken for gone
        assert any(p.method == "ACK" for p in admin.answers)
        after = {n: node.hierarchy for n, node in network.nodes.items()}  # type: ignore[attr-defined]
        spans.append((first, len(published), {n: [before[n], after[n]] for n in TREE}))
        for _ in range(6):
            publish()
        network.settle(5_000)
        spans.append((spans[-1][1], len(published), {n: [after[n]] for n in TREE}))
    for client in clients:
        heard = Counter((to, event["n"]) for to, event in client.heard)
        assert not heard or max(heard.values()) == 1
        for (name, number), one in asked.items():
            if name == client.name:
                told = {n for to, n in heard if to == f"{name}/{number}"}
                for first, end, known in spans:
                    check_span(told, one, published[first:end], known[client.broker])
        for publisher in publishers:
            for number in range(3):
                serials = [
                    event["n"]
                    for to, event in client.heard
                    if to == f"{client.name}/{number}" and origin[event["n"]] == publisher.name
                ]
                assert serials == sorted(serials)


def check_span(
    told: set, asked: Subscription, published: list[Notification], known: list[Hierarchy]
) -> None:
    for event in published:
        holds = {matches(asked, event, World(hierarchy)) for hierarchy in known}
        if len(holds) == 1:
            assert (event["n"] in told) in holds, (asked, event)
