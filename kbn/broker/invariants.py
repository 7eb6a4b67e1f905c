"""What must hold of a broker between any two stimuli; checked by tests and simulations."""

from __future__ import annotations

from kbn.broker.state import BrokerState


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
    for law, missing in core.accounts.balance(core.outboxes()).items():
        _require(missing == 0, f"{missing} {law} are unaccounted for")


def _require(holds: bool, story: str) -> None:
    if not holds:
        raise BrokenInvariantError(story)
