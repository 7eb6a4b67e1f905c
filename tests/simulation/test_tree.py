"""The two laws of the tree, under seeded faults.

Law 1: each broker's deliveries equal those of a single broker fed with that
broker's own arrival order. Law 2: all that anyone asked for arrives, once, in
the order of its publisher, although links between brokers are cut, doubled,
delayed and not read from, again and again. Invariants of every broker are
checked after every stimulus.
"""

from __future__ import annotations

import os
from collections import Counter
from random import Random

import pytest

from kbn.matching.naive import matches
from kbn.model import Constraint, Filter, Notification, Subscription
from kbn.model.operators import Content
from tests.simulation.network import Client, Network

SEVEN = {"r": None, "a": "r", "b": "r", "aa": "a", "ab": "a", "ba": "b", "bb": "b"}
DEEP = os.environ.get("KBN_PROFILE") == "deep"
SCHEDULES = 500 if DEEP else 15


def random_subscription(random: Random) -> Subscription:
    def constraint() -> Constraint:
        name = random.choice(["x", "y"])
        op = random.choice([Content.EQ, Content.LT, Content.GE, Content.NE, Content.ANY])
        return Constraint(name, op, None if op is Content.ANY else random.randint(0, 4))

    def one() -> Filter:
        return Filter(constraint() for _ in range(random.randint(0, 2)))

    return Subscription(one() for _ in range(random.randint(1, 2)))


def random_event(random: Random, serial: int, publisher: str) -> Notification:
    event: dict[str, int | str] = {"serial": serial, "publisher": publisher}
    for name in ("x", "y"):
        if random.random() < 0.8:
            event[name] = random.randint(0, 4)
    return Notification(event)


def replayed(network: Network, name: str, clients: list[Client]) -> Counter[tuple[str, str]]:
    """What one broker alone would tell its clients, fed with this broker's arrivals."""
    links = {client.link for client in clients if client.broker == name}
    table: dict[str, Subscription] = {}
    told: Counter[tuple[str, str]] = Counter()
    seen: set[str] = set()
    for link, packet in network.nodes[name].arrived:
        if packet.method == "SUB" and link in links:
            assert isinstance(packet.payload, Subscription)
            table[packet.id] = packet.payload
        elif packet.method == "UNS" and link in links:
            table.pop(packet.id, None)
        elif packet.method == "PUB" and packet.uid not in seen:
            if packet.uid is not None:
                seen.add(packet.uid)
            for subscriber, asked in table.items():
                if matches(asked, packet.payload):
                    told[subscriber, str(packet.payload["serial"])] += 1
    return told


def run(seed: int) -> tuple[Network, list[Client], dict[str, Subscription], list[Notification]]:
    random = Random(seed)
    network = Network(seed, SEVEN, slowness=random.choice([5, 20, 100]))
    network.settle(5_000)
    clients = [Client(network, f"c{i}", random.choice(list(SEVEN))) for i in range(8)]
    asked: dict[str, Subscription] = {}
    for client in clients:
        for number in range(random.randint(0, 3)):
            asked[f"{client.name}/{number}"] = random_subscription(random)
            client.subscribe(number, asked[f"{client.name}/{number}"])
    network.settle(5_000)
    published: list[Notification] = []
    publishers = random.sample(clients, 4)
    for serial in range(60):
        client = random.choice(publishers)
        event = random_event(random, serial, client.name)
        published.append(event)
        client.publish(event)
        network.clock.run(network.clock.now + random.randint(0, 60))
        if random.random() < 0.15:
            network.fault()
    network.settle(90_000)
    return network, clients, asked, published


@pytest.mark.parametrize("seed", range(SCHEDULES))
def test_a_tree_of_seven_brokers_loses_and_doubles_nothing_whatever_befalls_links(
    seed: int,
) -> None:
    network, clients, asked, published = run(seed)
    for client in clients:
        heard = Counter((to, str(event["serial"])) for to, event in client.heard)
        expected = Counter(
            (name, str(event["serial"]))
            for name, wanted in asked.items()
            if name.startswith(f"{client.name}/")
            for event in published
            if matches(wanted, event)
        )
        assert heard == expected, f"{client.name} at {client.broker}"
        for publisher in {event["publisher"] for event in published}:
            for subscriber in asked:
                serials = [
                    event["serial"]
                    for to, event in client.heard
                    if to == subscriber and event["publisher"] == publisher
                ]
                assert serials == sorted(serials), "the order of a publisher is kept"
    for name in SEVEN:
        mine = [client for client in clients if client.broker == name]
        heard_here = Counter(
            (to, str(event["serial"])) for client in mine for to, event in client.heard
        )
        assert heard_here == replayed(network, name, mine)


def held_by_masters(network: Network) -> dict[str, int]:
    return {
        name: sum(len(t.subscribers) for t in node.state.core.brokers.values())
        for name, node in network.nodes.items()
    }


@pytest.mark.parametrize("seed", range(SCHEDULES // 4))
def test_what_is_unsubscribed_under_faults_leaves_no_trace_above(seed: int) -> None:
    random = Random(seed)
    network = Network(seed, SEVEN)
    network.settle(5_000)
    clients = [Client(network, f"c{i}", random.choice(list(SEVEN))) for i in range(5)]
    live: list[tuple[Client, int]] = []
    for number in range(40):
        if live and random.random() < 0.4:
            client, old = live.pop(random.randrange(len(live)))
            client.unsubscribe(old)
        else:
            client = random.choice(clients)
            client.subscribe(number, random_subscription(random))
            live.append((client, number))
        network.clock.run(network.clock.now + random.randint(0, 50))
        if random.random() < 0.3:
            network.fault()
    network.settle(90_000)
    for client, number in live:
        client.unsubscribe(number)
    network.settle()
    assert held_by_masters(network) == dict.fromkeys(SEVEN, 0)
    assert all(len(node.state.core.table) == 0 for node in network.nodes.values())


def test_a_loop_in_the_tree_is_noticed_and_refused() -> None:
    network = Network(1, {"p": "q", "q": "p"})
    network.settle(10_000)
    refused = [node.state.uplink.refusal for node in network.nodes.values()]
    assert any(reason is not None and reason.startswith("loop: ") for reason in refused)
    assert any(log.event == "loop" for node in network.nodes.values() for log in node.logs)


def test_a_stuck_reader_loses_only_its_own_and_every_loss_has_a_reason() -> None:
    network = Network(3, {"r": None}, high_water=4_000)
    slow, fast = Client(network, "slow", "r"), Client(network, "fast", "r")
    everything = Subscription([Filter()])
    slow.subscribe(0, everything)
    fast.subscribe(0, everything)
    network.settle(100)
    node = network.nodes["r"]
    node.stuck.add(slow.link)
    for serial in range(200):
        fast.publish(Notification({"serial": serial}))
    network.settle(1_000)
    assert len(fast.heard) == 200
    assert slow.heard == []
    node.stuck.clear()
    node.flush(slow.link)
    network.settle(1_000)
    accounts = node.state.core.accounts
    assert 0 < len(slow.heard) < 200
    assert accounts.dropped_by["slow/0"]["queue_full"] == 200 - len(slow.heard)
    assert [event["serial"] for _, event in slow.heard][-1] == 199
