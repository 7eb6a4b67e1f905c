"""What must hold of a broker between any two stimuli; checked by tests and simulations."""

from __future__ import annotations

from kbn.broker.state import BrokerState
from kbn.routing.table import Hold


class BrokenInvariantError(AssertionError):
    """The core is wrong; the message tells which rule and about whom."""


def check(state: BrokerState) -> None:
    """Raise ``BrokenInvariantError`` unless every invariant holds."""
    core = state.core
    for name, subscriber in core.table.subscribers.items():
        _require(name == subscriber.id, f"subscriber {name} is filed under another name")
        _require(bool(subscriber.units), f"subscriber {name} holds no unit")
        _require(
            subscriber.target.subscribers.get(name) is subscriber,
            f"the target of {name} does not know it",
        )
        for unit in subscriber.units:
            _require(core.table.units.get(unit.number) is unit, f"a unit of {name} is not filed")
    held = sum(len(s.units) for s in core.table.subscribers.values())
    _require(held == len(core.table.units), "units without a subscriber")
    crowded = sum(len(s.units) > 1 for s in core.table.subscribers.values())
    _require(crowded == core.table.crowded, "the count of crowded subscribers is wrong")
    _require(sum(core.held_units.values()) == held, "units per principal do not add up")
    for number, link in core.links.items():
        _require(link.number == number, f"link {number} is filed under another number")
        if link.target is not None and link.target.link is not None:
            other = link.target.link
            _require(other.target is link.target, f"link {other.number} lost the target it serves")
    for address, target in core.handlers.items():
        _require(target.address == address, f"handler {address} is filed under another address")
    if state.memory is not None:
        _check_history(state)
    for law, missing in core.accounts.balance(core.outboxes()).items():
        _require(missing == 0, f"{missing} {law} are unaccounted for")


def _check_history(state: BrokerState) -> None:
    """What a broker with a history promises besides."""
    core, memory, recalling = state.core, state.memory, state.recalling
    assert memory is not None
    assert recalling is not None
    pending = state.publishing.pending
    _require(pending == sorted(set(pending)), "what is pending is out of order")
    _require(core.accounts.pending == len(pending), "the count of pending publications is wrong")
    for seq in pending:
        _require(seq > memory.engine.durable, f"publication {seq} is pending and on disk")
        _require(seq <= memory.accepted, f"publication {seq} is pending and has no number")
    for name, subscriber in core.table.subscribers.items():
        if subscriber.hold is not None:
            _require(not subscriber.target.durable, f"{name} is on hold alone in its session")
            _require(recalling.reads_for(subscriber), f"{name} is on hold for ever")
            _check_hold(name, subscriber.hold)
        for unit in subscriber.units:
            if not unit.options.history:
                _require(
                    not memory.engine.memory.missing(unit.asked),
                    f"the memory lacks an inner filter of {name}",
                )
    for name, target in core.durables.items():
        _require(target.durable and target.name == name, f"session {name} is filed wrongly")
        _require(target.hold is None or target.spilling, f"{name} is held and told at once")
        _require(target.hold is None or target.job > 0, f"{name} is on hold for ever")
        _require(target.link is not None or target.spilling, f"{name} is away and not spilling")
        _require(
            target.link is not None or not target.outbox, f"something waits here for absent {name}"
        )
        _require(target.confirmed <= memory.accepted, f"{name} confirmed what is still to come")
        if target.hold is not None:
            _check_hold(name, target.hold)


def _check_hold(name: str, hold: Hold) -> None:
    seqs = [publication.seq for publication, _ in hold.items]
    _require(seqs == sorted(seqs), f"what is held for {name} is out of order")
    _require(all(seq > hold.after for seq in seqs), f"the past of {name} is held")


def _require(holds: bool, story: str) -> None:
    if not holds:
        raise BrokenInvariantError(story)
