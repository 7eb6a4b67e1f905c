"""What is asked of the master: the maximal filters of the table, each under a name.

Law: what the master was asked and not told to withdraw covers the table, also while
terms change their meaning: what replaces a filter is acknowledged before the filter is
withdrawn. Names outlive connections, so that asking again after a reconnect changes
nothing there; asked with the past from when the master was last heard, it tells what
it could not tell meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import NamedTuple, Protocol

from kbn.broker.core import Core
from kbn.broker.links import Target
from kbn.broker.remembering import Remembering
from kbn.knowledge.hierarchy import Hierarchy
from kbn.model import Bag, Filter, Notification, Subscription
from kbn.model.filters import needs_ontology
from kbn.model.time import TIME_MIN
from kbn.routing.siena import safe_for
from kbn.routing.table import Change, Unit
from kbn.routing.upward import UpwardPosets
from senp import Packet

#: How many units may wait for a withdrawal that was not to travel.
STALE = 1_000
#: How many semantic units are said anew in one turn of the loop.
SLICE = 50
#: How far before the end of a connection its past is asked for again: clocks differ.
_OVERLAP = 60_000


class Phase(Enum):
    """Where the link to the master stands."""

    DOWN = "down"
    CONNECTING = "connecting"
    ASKING = "asking"  # HLO is out
    IDENTIFYING = "identifying"  # WHO is out, to a Siena master
    SESSION = "session"
    SIENA = "siena"


class Wanted(NamedTuple):
    """A filter the master is asked for: to be told, or (``history``) to be remembered."""

    asked: Filter
    ttl: int
    history: bool = False


class Line(Protocol):
    """The link to the master, as far as asking needs it."""

    phase: Phase
    identity: str | None

    def number(self) -> int:
        """The number of the next request."""
        ...

    def send(self, packet: Packet) -> None: ...

    def handler(self) -> str:
        """Where a Siena master calls us."""
        ...


class Asking:
    """The forwarded filters of one broker."""

    def __init__(self, core: Core, line: Line, memory: Remembering | None) -> None:
        self._core = core
        self._line = line
        self._memory = memory
        self._filters = UpwardPosets()
        #: What the master is asked to tell so that it is remembered here.
        self._histories = UpwardPosets(history=True)
        #: The subscriber id each forwarded filter has at a master of ours. It keeps
        #: it over reconnects, so that saying it again changes nothing there.
        self._forwarded: dict[Wanted, str] = {}
        self._next_name = 1
        #: Up to when what the master told for a filter is surely here. Asked for again
        #: from there on, it answers only if it forgot us, as after a restart.
        self._known_until: dict[Wanted, int] = {}
        #: The same for all that was asked in an earlier run of this broker, and is asked
        #: again soon after its start.
        self._known_before = None if memory is None else memory.kept.heard
        self._begun = core.now
        self._has_history = False
        #: Ids to be withdrawn, until the master acknowledged it; with the number of the
        #: request and its ttl: it goes as far as what it withdraws.
        self._withdrawn: dict[str, tuple[int, int]] = {}
        self._sent_to_siena: dict[Wanted, Filter] = {}
        #: Units whose UNS was not to travel: withdrawn at the next reconnect, or when many.
        self._stale: list[Unit[Target]] = []
        #: What the master knows, as its HLO says; see ``Ontology.name``.
        self._master_knows = ("", "")
        #: While what is known here changes, no term travels.
        self._muted = False
        #: Filters said anew that the master has not acknowledged, and those they replace.
        self._awaited: set[int] = set()
        self._leaving: dict[Wanted, None] = {}
        self._shifting = False
        #: Called when the master has what it was asked anew.
        self.when_settled: Callable[[], None] = lambda: None

    # --- the link comes and goes ---------------------------------------------------------

    def reached(self) -> None:
        """The master is there: ask for everything, withdraw what it may not know is gone."""
        stale, self._stale = self._stale, []
        self.changed(Change((), tuple(stale)))
        for root in self._filters.roots():
            self._forward(Wanted(*root))
        for root in self._histories.roots():
            self._forward(Wanted(*root, history=True))
        for name, (_, ttl) in list(self._withdrawn.items()):
            self._withdraw_name(name, ttl)

    def cut(self, *, session: bool) -> None:
        """The link is down; ``session``: until now the master told what it was asked."""
        if session:
            self._known_until = dict.fromkeys(self._known_until, self._core.now - _OVERLAP)
        self._awaited.clear()
        self._settle()
        self._sent_to_siena.clear()

    def acknowledged(self, seq: int) -> None:
        """The master has what was asked or withdrawn under a number."""
        self.answered(seq)
        if self._withdrawn:
            self._withdrawn = {n: s for n, s in self._withdrawn.items() if s[0] != seq}

    def answered(self, seq: int | None) -> None:
        """The master said yes or no to a request: what waited for it goes on."""
        if seq in self._awaited:
            self._awaited.discard(seq)
            self._settle()

    # --- what goes up ----------------------------------------------------------------------

    def changed(self, change: Change[Target], *, travels: bool = True) -> None:
        """The table changed: forward what became maximal, then withdraw what no longer is."""
        if not travels:
            self._stale += change.removed
            if len(self._stale) < STALE:
                return
            change = Change((), tuple(self._stale))
            self._stale = []
        for filters, history in ((self._filters, False), (self._histories, True)):
            shift = filters.apply(change)
            for root in shift.forward:
                self._forward(Wanted(*root, history))
            for root in shift.withdraw:
                self._withdraw(Wanted(*root, history))

    def _forward(self, wanted: Wanted) -> None:
        core, line = self._core, self._line
        self._leaving.pop(wanted, None)
        if line.phase is Phase.SIENA:
            safe = safe_for(wanted.asked, self._sent_to_siena.values())
            self._sent_to_siena[wanted] = safe
            line.send(self._to_siena("SUB", safe, wanted.ttl))
            return
        # Each filter under a name of its own: one that covers another must not
        # replace it, or the withdrawal of the wider would take both.
        name = self._forwarded.get(wanted)
        if name is None:
            name = f"{core.settings.identity}/{self._next_name}"
            self._next_name += 1
            self._forwarded[wanted] = name
        if line.phase is Phase.SESSION:
            since = None
            if wanted.history or (self._has_history and self._memory is not None):
                since = self._known_until.get(wanted, self._past_of(wanted))
                self._known_until[wanted] = core.now - _OVERLAP
            number = line.number()
            if self._shifting:
                self._awaited.add(number)
            line.send(
                Packet(
                    method="SUB",
                    ttl=wanted.ttl,
                    id=name,
                    seq=number,
                    history=wanted.history,
                    since=since,
                    payload=Subscription([wanted.asked]),
                )
            )

    def _past_of(self, wanted: Wanted) -> int | None:
        """From when on a filter needs the past that this run did not ask for yet."""
        if wanted.history:
            return TIME_MIN
        fresh = self._core.now - self._begun >= self._core.settings.unreachable
        if fresh or self._known_before is None:
            return None
        return self._known_before - _OVERLAP

    def _withdraw(self, wanted: Wanted) -> None:
        self._leaving.pop(wanted, None)
        name = self._forwarded.pop(wanted, None)
        self._known_until.pop(wanted, None)
        if name is not None:
            self._withdraw_name(name, wanted.ttl)
        gone = self._sent_to_siena.pop(wanted, None)
        if gone is not None:
            # UNS takes along whatever the filter covers, so what stays is said again.
            self._line.send(self._to_siena("UNS", gone, wanted.ttl))
            for still, kept in self._sent_to_siena.items():
                self._line.send(self._to_siena("SUB", kept, still.ttl))

    def _withdraw_name(self, name: str, ttl: int) -> None:
        number = self._line.number()
        self._withdrawn[name] = (number, ttl)
        if self._line.phase is Phase.SESSION:
            self._line.send(Packet(method="UNS", ttl=ttl, id=name, seq=number))

    def _to_siena(self, method: str, asked: Filter, ttl: int) -> Packet:
        return Packet(
            method=method,
            ttl=ttl,
            id=self._core.settings.identity,
            to=self._line.identity,
            handler=self._line.handler() if method == "SUB" else None,
            payload=Subscription([asked]),
        )

    # --- terms -----------------------------------------------------------------------------

    @property
    def settled(self) -> bool:
        """Whether the master has everything that was said anew."""
        return not self._awaited

    def master_said(self, said: Notification) -> None:
        """The master's HLO: what it can do and what it knows."""
        able = said.get("capabilities")
        self._has_history = isinstance(able, Bag) and "history" in able
        self._master_knows = (str(said.get("ontology", "")), str(said.get("prefixes", "")))

    def stop_speaking(self) -> Iterator[None]:
        """Terms are about to mean something else here: have them widened; in slices."""
        self._muted = True
        yield from self._say_anew()

    def speak_again(self) -> None:
        """Tell the master what is known now; terms travel if it knows the same."""
        self._muted = False
        if self._line.phase is Phase.SESSION:
            known = self.what_is_known()
            self._line.send(Packet(method="INF", id=self._core.settings.identity, payload=known))
        self.say_anew_soon()

    def what_is_known(self) -> Notification | None:
        """What the master is told of the ontologies here."""
        known = self._core.known
        if known.hierarchy is None and self._filters.speaking is None:
            return None
        return Notification({"ontology": known.hash, "prefixes": known.prefixes})

    def _common_knowledge(self) -> Hierarchy | None:
        """What the master knows as we do, if it does."""
        known = self._core.known
        same = known.name == self._master_knows and not self._muted
        return known.hierarchy if same else None

    def say_anew_soon(self) -> None:
        """Ask in other words if master and we understand each other better or worse now."""
        if self._common_knowledge() is not self._filters.speaking:
            self._core.spread(self._say_anew())

    def _say_anew(self) -> Iterator[None]:
        """Say what units ask as master and we understand each other now.

        What comes anew is said at once, what it replaces is withdrawn when the master
        has all of it. Units that come meanwhile are said the new way by themselves.
        """
        speaking = self._common_knowledge()
        if self._line.phase is not Phase.SESSION or speaking is self._filters.speaking:
            return
        both = ((self._filters, False), (self._histories, True))
        for filters, _ in both:
            filters.speaking = speaking
        units = [u for u in self._core.table.units.values() if needs_ontology(u.asked)]
        yield
        for at in range(0, len(units), SLICE):
            for filters, history in both:
                shift = filters.say_anew(units[at : at + SLICE])
                self._shifting = True
                for root in shift.forward:
                    self._forward(Wanted(*root, history))
                self._shifting = False
                for root in shift.withdraw:
                    self._leaving[Wanted(*root, history)] = None
            yield
        self._settle()

    def _settle(self) -> None:
        """Withdraw what was replaced, once the master has all that replaces it."""
        if self._awaited:
            return
        leaving, self._leaving = self._leaving, {}
        for wanted in leaving:
            self._withdraw(wanted)
        self.when_settled()
