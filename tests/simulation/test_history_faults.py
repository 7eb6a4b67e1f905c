"""A broker with a history under seeded faults: refused writes, restarts, slow readers.

Whatever happens, the broker's own log is the truth: every acknowledged publication
is in it once; a durable session hears everything that matches, as the definition
reads the log, at least once and in order; ``since`` tells the past and then the
present with no gap and no double.
"""

from __future__ import annotations

import os
from collections import Counter
from random import Random

import pytest

import kbn.server.history as history_module
import kbn.temporal.node as node_module
from kbn.language import parse_subscription
from kbn.model import Constraint, Decision, Filter, Subscription
from kbn.model.operators import During
from kbn.model.time import START_TIME
from kbn.temporal.memory import Limits
from kbn.temporal.replay import Replay
from tests.simulation.faithful import Durable, Listener, Publisher
from tests.simulation.historical import HistoricalNetwork, HistoricalNode
from tests.simulation.test_history_tree import (
    ASKED,
    naive_deliveries,
    some_publications,
)

DEEP = os.environ.get("KBN_PROFILE") == "deep"
SCHEDULES = 400 if DEEP else 12
TREES = 200 if DEEP else 6


class Small(HistoricalNetwork):
    """Little is remembered, so that much is asked of the store."""

    memory_limits = Limits(events_per_filter=4, recent_events=8)


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_module, "SLACK", 1)
    monkeypatch.setattr(history_module, "HEADS", 5)


def expected(node: HistoricalNode, asked: Subscription) -> list[tuple[int, int]]:
    """(pos, serial) of everything the log has for a subscription, by the definition."""
    entries = list(node.store.log())
    seqs = {entry.notification["serial"]: entry.seq for entry in entries}
    aloud = [(entry, entry.seq not in node.silent) for entry in entries]
    told = naive_deliveries(aloud, {"": asked})
    return [(seqs[serial], serial) for _, serial in told]


def once(publishers: list[Publisher], node: HistoricalNode) -> None:
    """Everything acknowledged is in the log, and nothing is in it twice."""
    counts = Counter(entry.notification["serial"] for entry in node.store.log())
    acknowledged = {serial for one in publishers for serial in one.acknowledged}
    assert [serial for serial, count in counts.items() if count > 1] == [], "stored twice"
    assert acknowledged - counts.keys() == set(), "acknowledged and lost"
    for one in publishers:
        assert not one.waiting, "never answered"
        assert not counts.keys() & one.refused.keys(), "refused and stored"


def decided(node: HistoricalNode) -> None:
    """The store knows every inner filter in use, and decides it as the whole log does."""
    memory = node.state.memory
    assert memory is not None
    nodes = memory.engine.memory.nodes
    assert nodes.keys() == node.store.inners().keys(), "inner filters differ"
    for name, one in nodes.items():
        asks = Subscription([Filter([Constraint(START_TIME, During(), one.inner)])])
        replay = Replay({0: asks})
        standing: dict[str, Decision] = {}
        for entry in node.store.log():
            for decision in replay.learn(entry)[0]:
                if decision.inner == name:
                    standing[decision.event] = decision
        right = {event for event, decision in standing.items() if decision.holds}
        kept = {decision.event for decision in node.store.decisions(name)}
        assert kept == right, f"decisions of {name}"


class Run:
    """One schedule on one broker."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.network = Small(
            seed,
            {"r": None},
            high_water=random.choice([600, 2_000, 1 << 20]),
            unreachable=random.choice([500, 60_000]),
        )
        self.node = self.network.nodes["r"]
        self.publishers = [Publisher(self.network, f"p{i}", "r", Random(i)) for i in range(2)]
        self.durables = [Durable(self.network, f"d{i}", "r", Random(10 + i)) for i in range(2)]
        #: One that asks for the past, too: it hears it at least once.
        self.greedy = Durable(self.network, "g", "r", Random(15))
        self.sinces: list[Listener] = []
        self.passing = Listener(self.network, "t", "r", Random(20))
        self.serial = 0
        self.known: dict[str, int] = {}

    def go(self) -> None:
        random, network = self.random, self.network
        network.settle(200)
        first = random.choice([0, 15])
        self.publish(first)
        for durable in self.durables:
            for number in range(random.randint(1, 2)):
                durable.subscribe(number, parse_subscription(random.choice(ASKED)))
        self.durables[0].subscribe(9, parse_subscription("serial any"))
        # From here on the durable ones are owed everything.
        network.settle(3_000)
        self.begin = self.node.store.last_seq()
        network.disk_failures = random.choice([0.0, 0.05, 0.2, 0.4])
        for step in range(12):
            self.publish(random.randint(1, 6))
            self.befall()
            if step in (1, 3, 6, 8):
                asked = parse_subscription(random.choice(ASKED))
                self.greedy.subscribe(step, asked, since=random.choice([0, None]))
        network.disk_failures = 0.0
        self.publish(3)
        network.settle(120_000)

    def publish(self, count: int) -> None:
        random, network = self.random, self.network
        for _ in range(count):
            event = some_publications(random, self.serial, self.known)
            # One tells both parts of an event: two could overtake each other.
            self.publishers[0 if "PUB_ID" in event else self.serial % 2].publish(event)
            self.serial += 1
            network.clock.run(network.clock.now + random.randint(0, 40))

    def befall(self) -> None:
        random, network, node = self.random, self.network, self.node
        kind = random.choice(["restart", "leave", "since", "slow", "pass", "twice", "nothing"])
        if kind == "restart":
            node.restart()
        elif kind == "leave":
            random.choice([*self.durables, self.greedy, *self.publishers]).leave()
        elif kind == "since":
            listener = Listener(network, f"s{len(self.sinces)}", "r", Random(30))
            listener.subscribe(0, parse_subscription(random.choice(ASKED)), since=0)
            self.sinces.append(listener)
        elif kind == "slow":
            number = random.choice([*self.durables, self.greedy, *self.sinces]).link
            node.stuck.add(number)

            def go_on() -> None:
                if number in node.stuck:
                    node.stuck.discard(number)
                    node.flush(number)
                    node.feed()

            network.clock.after(random.randint(50, 1_500), go_on)
            self.publish(random.randint(0, 12))
        elif kind == "pass":
            self.passing.unsubscribe(0)
            self.passing.subscribe(0, parse_subscription(random.choice(ASKED)))
        elif kind == "twice":
            # A second connection under the name, while the first still stands.
            durable = random.choice([*self.durables, self.greedy])
            old, durable.end = durable.end, None
            durable.connect()
            if old is not None:
                old.closed = lambda reason: None


@pytest.mark.parametrize("seed", range(SCHEDULES))
def test_what_is_acknowledged_is_kept_and_told(seed: int) -> None:
    run = Run(seed)
    run.go()
    once(run.publishers, run.node)
    decided(run.node)
    for durable in run.durables:
        for name, (asked, _) in durable.asked.items():
            owed = [one for one in expected(run.node, asked) if one[0] > run.begin]
            heard = [(pos, serial) for to, pos, serial in durable.heard if to == name]
            missed = [one for one in owed if one not in set(heard)]
            assert not missed, f"{name} missed {missed}"
            strange = set(heard) - set(expected(run.node, asked))
            assert not strange, f"{name} was told {strange}"
        for first, last in zip(
            durable.connections, [*durable.connections[1:], len(durable.heard)], strict=True
        ):
            told = [pos for _, pos, _ in durable.heard[first:last]]
            assert told == sorted(told), f"positions fall within a connection of {durable.name}"
    for name, (asked, since) in run.greedy.asked.items():
        told = {(pos, serial) for to, pos, serial in run.greedy.heard if to == name}
        owed = set(expected(run.node, asked))
        assert told <= owed, f"{name} was told {told - owed}"
        assert since is None or told == owed, f"{name} missed {owed - told}"
    for listener in run.sinces:
        for name, (asked, _) in listener.asked.items():
            if run.node.state.core.accounts.dropped["queue_full"]:
                continue  # a slow reader that is not durable loses, and that is counted
            told = [(pos, serial) for _, pos, serial in listener.heard[listener.connections[-1] :]]
            assert told == expected(run.node, asked), name


TREE = {"r": None, "a": "r", "b": "r", "aa": "a"}


def run_tree(seed: int) -> tuple[Small, list[Publisher], list[Durable]]:
    """Publications everywhere while links are cut, disks refuse and brokers restart."""
    random = Random(seed)
    network = Small(
        seed, TREE, slowness=random.choice([5, 40]), spool=random.choice([400, 1 << 20])
    )
    publishers = [Publisher(network, f"p-{name}", name, Random(name)) for name in TREE]
    durables = [Durable(network, f"d-{name}", name, Random(name)) for name in ("r", "a", "aa")]
    network.settle(3_000)
    for durable in durables:
        durable.subscribe(0, parse_subscription("serial any"))
        durable.subscribe(1, parse_subscription(random.choice(ASKED)))
    network.settle(3_000)
    network.disk_failures = random.choice([0.0, 0.05, 0.15])
    known: dict[str, int] = {}
    for serial in range(50):
        event = some_publications(random, serial, known)
        at = 0 if "PUB_ID" in event else random.randrange(len(publishers))
        publishers[at].publish(event)
        network.clock.run(network.clock.now + random.randint(0, 80))
        befalls = random.random()
        if befalls < 0.1:
            network.cut_one()
        elif befalls < 0.16:
            random.choice(list(network.nodes.values())).restart()
        elif befalls < 0.2:
            random.choice(durables).leave()
    network.disk_failures = 0.0
    network.settle(300_000)
    return network, publishers, durables


@pytest.mark.parametrize("seed", range(TREES))
def test_a_tree_loses_nothing_that_one_of_its_brokers_acknowledged(seed: int) -> None:
    network, publishers, durables = run_tree(seed)
    for publisher in publishers:
        once([publisher], network.nodes[publisher.broker])
    once(publishers, network.nodes["r"])
    for node in network.nodes.values():
        once([], node)
    for durable in durables:
        node = network.nodes[durable.broker]
        for name, (asked, _) in durable.asked.items():
            told = {(pos, serial) for to, pos, serial in durable.heard if to == name}
            owed = set(expected(node, asked))
            assert told == owed, f"{name}: told {told - owed}, missed {owed - told}"
    everything = {entry.notification["serial"] for entry in network.nodes["r"].store.log()}
    for durable in durables:
        told = {serial for to, _, serial in durable.heard if to.endswith("/0")}
        assert told == everything, f"{durable.name} missed {everything - told}"
