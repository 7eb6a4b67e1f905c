"""The two laws of the tree with temporal subscriptions, under seeded faults.

Law 1: each broker's deliveries equal those of a single broker fed with that
broker's own arrival order: its own log, read by the definition. Law 2: when the
network is quiet between publications, the tree equals one flat broker.
"""

from __future__ import annotations

import os
from collections import Counter
from random import Random

import pytest

from kbn.language import parse_subscription
from kbn.matching.naive import matches
from kbn.matching.temporal import NaiveHistory
from kbn.matching.world import World
from kbn.model import Bag, LogEntry, Notification, Subscription
from kbn.model.time import END_TIME, PUB_ID, PUB_TYPE, START_TIME
from tests.simulation.historical import HistoricalNetwork, HistoricalNode
from tests.simulation.network import Client

SEVEN = {"r": None, "a": "r", "b": "r", "aa": "a", "ab": "a", "ba": "b", "bb": "b"}
DEEP = os.environ.get("KBN_PROFILE") == "deep"
SCHEDULES = 300 if DEEP else 12

ASKED = [
    "x any",
    "x = 1 or x = 2",
    "x = 1 and start during { x = 2 }",
    "end after(40ms) { x = 1 }",
    "x >= 1 and end after(60ms) { x = 1 and end after(60ms) { x <= 2 } }",
    "start during { x = 3 and start during { x any } }",
    "x filter(<, last 3) { y any }",
    "x filter(=, last 2) { x >= 1 and start during { y = 1 } }",
    "relation(overlaps) { x any }",
    "relation(during) { x = 2 or y = 1 }",
    "end after(100ms) { z = 1 }",
    'start during { KBN_PUB_TYPE superbag ["END"] }',
]


def some_publications(random: Random, serial: int, known: dict[str, int]) -> Notification:
    """A plain event, a START, an END (of a known start, sometimes bare), or an INSTANT."""
    content = {n: random.randint(0, 3) for n in ("x", "y", "z") if random.random() < 0.6}
    kind = random.choice(["plain", "start", "end", "end", "instant"])
    if kind == "plain":
        return Notification({"serial": serial, **content})
    now = serial * 10 + random.randint(-25, 25)
    if kind == "end" and known:
        event, started = known.popitem()
        said = {} if random.random() < 0.4 else content
        end = max(started, now)
        return Notification(
            {PUB_ID: event, PUB_TYPE: Bag(["END"]), END_TIME: end, "serial": serial, **said}
        )
    event = f"e{serial}"
    if kind == "instant":
        kinds = Bag(["START", "END", "INSTANT"])
        return Notification(
            {
                PUB_ID: event,
                PUB_TYPE: kinds,
                START_TIME: now,
                END_TIME: now,
                "serial": serial,
                **content,
            }
        )
    known[event] = now
    return Notification(
        {PUB_ID: event, PUB_TYPE: Bag(["START"]), START_TIME: now, "serial": serial, **content}
    )


def naive_deliveries(
    entries: list[tuple[LogEntry, bool]], asked: dict[str, Subscription]
) -> list[tuple[str, int]]:
    """What one broker tells, by the definition; entries marked False are only remembered."""
    history = NaiveHistory()
    told: list[tuple[str, int]] = []
    for entry, aloud in entries:
        world = World(history=history.about(entry))
        if aloud:
            told += [
                (name, entry.notification["serial"])
                for name, subscription in asked.items()
                if matches(subscription, entry.notification, world)
            ]
        history.append(entry)
    return told


def flat(root: HistoricalNode, asked: dict[str, Subscription]) -> list[tuple[str, int]]:
    """One flat broker: every publication goes up, so the root's log has all of them, in order."""
    return naive_deliveries([(entry, True) for entry in root.store.log()], asked)


def run(seed: int, *, quiet: bool) -> tuple[HistoricalNetwork, list[Client], dict, list]:
    random = Random(seed)
    network = HistoricalNetwork(seed, SEVEN, slowness=random.choice([5, 20, 60]))
    network.disk_failures = 0.0
    network.settle(5_000)
    clients = [Client(network, f"c{i}", random.choice(list(SEVEN))) for i in range(6)]
    asked: dict[str, Subscription] = {}
    for client in clients[:4]:
        for number in range(random.randint(1, 2)):
            name = f"{client.name}/{number}"
            asked[name] = parse_subscription(random.choice(ASKED))
            client.subscribe(number, asked[name])
            if quiet:
                network.settle(1_000)
    network.settle(3_000)
    published: list[Notification] = []
    known: dict[str, int] = {}
    for serial in range(40):
        event = some_publications(random, serial, known)
        published.append(event)
        random.choice(clients).publish(event)
        if quiet:
            network.settle(1_500)
        else:
            network.clock.run(network.clock.now + random.randint(0, 60))
            if random.random() < 0.15:
                network.cut_one()
    network.settle(120_000)
    return network, clients, asked, published


def own_log(node: HistoricalNode) -> list[tuple[LogEntry, bool]]:
    silent = {
        (packet.payload["serial"])
        for _, packet in node.arrived
        if packet.method == "PUB" and packet.history
    }
    aloud = {
        packet.payload["serial"]
        for _, packet in node.arrived
        if packet.method == "PUB" and not packet.history
    }
    # Whatever came first decided: a later copy is a duplicate.
    first: dict[int, bool] = {}
    for _, packet in node.arrived:
        if packet.method == "PUB":
            first.setdefault(packet.payload["serial"], not packet.history)
    assert silent | aloud == set(first)
    return [(entry, first[entry.notification["serial"]]) for entry in node.store.log()]


@pytest.mark.parametrize("seed", range(SCHEDULES))
def test_each_broker_tells_what_one_broker_with_its_own_log_would(seed: int) -> None:
    network, clients, asked, _ = run(seed, quiet=False)
    for name, node in network.nodes.items():
        mine = {
            subscriber: subscription
            for client in clients
            if client.broker == name
            for subscriber, subscription in asked.items()
            if subscriber.startswith(f"{client.name}/")
        }
        expected = Counter(naive_deliveries(own_log(node), mine))
        heard = Counter(
            (to, event["serial"]) for c in clients if c.broker == name for to, event in c.heard
        )
        assert heard == expected, f"broker {name}"


@pytest.mark.parametrize("seed", range(SCHEDULES))
def test_a_quiet_tree_equals_one_flat_broker(seed: int) -> None:
    network, clients, asked, published = run(1000 + seed, quiet=True)
    root = network.nodes["r"]
    assert [entry.notification for entry in root.store.log()] == published
    heard = Counter((to, event["serial"]) for client in clients for to, event in client.heard)
    assert heard == Counter(flat(root, asked))
