"""A broker's history at the edge: the store, its writer, and the reading of the past.

``open_history`` opens the store and puts the memory of earlier runs together;
``Historian`` carries out what the broker instructs: one thread writes, readers
run in threads of their own and hand over the past piece by piece, at the pace
at which its receiver reads.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from datastore.store import SWAP, Batch, KnownInner, Store
from kbn.broker.instructions import (
    Explain,
    Fill,
    Forget,
    LookUp,
    ReadSpool,
    Recall,
    Record,
    SaveSession,
    Trim,
)
from kbn.broker.knowing import NOTHING_LOADED, Ontology
from kbn.broker.remembering import HEARD, ONTOLOGY, Kept, known_inner, mark_of
from kbn.broker.state import BrokerState
from kbn.broker.stimuli import (
    Explained,
    Filled,
    FromStore,
    LookedUp,
    Recalled,
    Recorded,
    Saved,
    Spooled,
    Trimmed,
    Unrecorded,
)
from kbn.errors import KbnError, StoreError
from kbn.knowledge.hierarchy import NO_TERMS
from kbn.model.events import MergedEvent, merge_all
from kbn.model.filters import Subscription, needs_history, needs_ontology
from kbn.model.past import Box
from kbn.model.publications import Decision, LogEntry
from kbn.model.settled import Settled
from kbn.model.time import TIME_MAX, TIME_MIN
from kbn.server.care import Care
from kbn.server.collector import SettingAside
from kbn.server.reading import PIECE, explained, past_of
from kbn.server.reading import pieces as pieces_of
from kbn.server.recorder import Recorder
from kbn.temporal.backfill import Backfill
from kbn.temporal.engine import TemporalEngine
from kbn.temporal.memory import Limits, inners
from senp import decode_subscription

#: Entries handed over before a reader looks for room, or decided on the loop.
SLICE = FEW = 20
#: Seconds the writer waits for an answer of the loop.
ANSWER_PATIENCE = 30.0
#: Newest publications whose ids are known again after a restart.
UIDS = 50_000
#: Decisions of an inner filter that come into memory at a restart; the rest is asked of the store.
HEADS = 20_000
_EVERYTHING = Box(TIME_MIN, TIME_MAX, TIME_MIN, TIME_MAX)

Report = Callable[[FromStore], None]
T = TypeVar("T")


class StoredEvents:
    """The store as the temporal memory sees it, for events it no longer remembers."""

    def __init__(self, store: Store) -> None:
        self._store = store
        #: Read ahead of being asked for, all together.
        self.ahead: dict[str, list[LogEntry]] = {}

    def get(self, event_id: str) -> MergedEvent | None:
        known = self.ahead.get(event_id)
        return merge_all(self._store.entries(event_id) if known is None else known)

    def settled(self, event_id: str) -> Settled | None:
        return self._store.settled_event(event_id)


def open_history(
    store: Store, known_now: Ontology = NOTHING_LOADED, limits: Limits | None = None
) -> Kept:
    """What earlier runs left: the memory of live inner filters, sessions, the spool.

    Inner filters that were decided under other knowledge than there is now, or whose
    decisions were lost, are decided anew.
    """
    last = store.last_seq()
    knowledge = known_now.hierarchy or NO_TERMS
    events = StoredEvents(store)
    engine = TemporalEngine(events, store, limits, knowledge, seq=last)
    same = store.get_mark(ONTOLOGY) == mark_of(known_now)
    for inner, subscription in _complete(store, last, same):
        heads = store.decisions(inner, HEADS)
        beyond = None
        if len(heads) == HEADS:
            # What can still change must be here, however long ago it began.
            beyond = _EVERYTHING
            held = {decision.event for decision in heads}
            heads += [one for one in store.unfinished(inner) if one.event not in held]
        # One by one they would be as many readings of an archive.
        events.ahead = store.entries_of(one.event for one in heads if one.holds)
        engine.load(subscription, heads, beyond)
        events.ahead = {}
    sessions = tuple(store.sessions())
    acquired = tuple(
        said.subscription
        for session in sessions
        for said in session.subscriptions
        if needs_history(said.subscription)
    )
    for asked in acquired:
        _acquire(store, engine, asked)
    uids = frozenset(
        entry.uid for entry in store.log(max(0, last - UIDS)) if entry.part.value == "PLAIN"
    )
    if not same:
        # Unwritten, as on a full disk, it only means that all is decided anew next time.
        with contextlib.suppress(KbnError):
            store.append(Batch(marks=_exchanged(store, last, known_now)))
    spooled = tuple(store.spooled(0, PIECE))
    return Kept(engine, uids, sessions, spooled, store.get_mark(HEARD), acquired)


def _exchanged(store: Store, last: int, known_now: Ontology) -> dict[str, int]:
    """The marks that other things are known now than in the run before, if there was one."""
    marks = {ONTOLOGY: mark_of(known_now)}
    newest = next(iter(store.log(last)), None)
    if newest is not None and store.get_mark(ONTOLOGY) is not None:
        marks[f"{SWAP}{last}"] = newest.arrived
    return marks


def _complete(store: Store, last: int, same: bool) -> list[tuple[str, Subscription]]:
    """Inner filters all of whose decisions are there, those inside others first.

    Those that ask for kinds were decided under an ontology, which must be the ``same``.
    """
    found: dict[str, tuple[KnownInner, Subscription]] = {
        inner.inner: (inner, decode_subscription(inner.text.encode("ascii")))
        for inner in store.inners().values()
    }
    complete: list[tuple[str, Subscription]] = []
    names: set[str] = set()
    # The deeper one nests, the later it is loaded.
    for name, (inner, subscription) in sorted(found.items(), key=lambda one: one[1][1].depth):
        inside = {one.name for one in inners(subscription)}
        valid = same or not needs_ontology(subscription)
        if valid and inner.upto >= last and inside <= names:
            names.add(name)
            complete.append((name, subscription))
        else:
            store.forget_inner(name)
    return complete


def _acquire(store: Store, engine: TemporalEngine, asked: Subscription) -> None:
    """Have a subscription of an earlier run answered, if need be by reading the log.

    Before anything is published, so that nothing is missed meanwhile.
    """
    nodes = engine.memory.nodes
    before = set(nodes)
    backfill = engine.acquire(asked)
    made: list[Decision] = []
    if backfill is not None:
        for piece in pieces_of(store.log(0, backfill.upto, batch=PIECE)):
            made += backfill.feed(piece)
        backfill.replay.seq = max(backfill.replay.seq, backfill.upto)
        made += engine.adopt(backfill)
    changed = {name for name in nodes if name not in before}
    if backfill is not None:
        changed |= {inner.name for inner in backfill.missing}
    if changed:
        known = [known_inner(name, nodes[name].inner) for name in sorted(changed)]
        store.append(Batch(decisions=made, inners=known))
    if backfill is not None:
        engine.stored(backfill)


class Historian:
    """Performs the instructions that concern the history; reports by stimuli, on the loop."""

    def __init__(
        self, store: Store, state: BrokerState, report: Report, care: Care | None = None
    ) -> None:
        self._store = store
        self._care = Care() if care is None else care
        self._state = state
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._recorder = Recorder(store, self, state.core.statistics)
        self._recorder.start()
        self._tasks: set[asyncio.Task[None]] = set()
        self._spawn(self._keep_caring())

    async def close(self) -> None:
        """Commit what was handed over; end the readers."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self._recorder.stop)

    # --- called by the writer, in its own thread -----------------------------------------

    def recorded(self, upto: int, number: int) -> None:
        self._tell(Recorded(upto, number))

    def unrecorded(self, epoch: int, code: str, reason: str) -> None:
        self._tell(Unrecorded(epoch, code, reason))

    def _tell(self, stimulus: FromStore) -> None:
        self._call(self._report, stimulus)

    def _call(self, action: Callable[..., None], *arguments: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
            self._loop.call_soon_threadsafe(action, *arguments)

    # --- instructions ----------------------------------------------------------------------

    def perform(
        self,
        instruction: Record
        | Fill
        | Recall
        | ReadSpool
        | SaveSession
        | Forget
        | Explain
        | LookUp
        | Trim,
    ) -> None:
        if isinstance(instruction, Record):
            self._recorder.record(instruction)
        elif isinstance(instruction, SaveSession):
            self._recorder.run(lambda: self._save(instruction))
        elif isinstance(instruction, Forget):
            self._recorder.owe(lambda: self._forget(instruction))
        elif isinstance(instruction, Trim):
            self._recorder.run(lambda: self._trim(instruction))
        elif isinstance(instruction, ReadSpool):
            self._recorder.run(lambda: self._read_spool(instruction))
        elif isinstance(instruction, Fill):
            self._spawn(self._fill(instruction))
        elif isinstance(instruction, Explain):
            self._spawn(self._explain(instruction))
        elif isinstance(instruction, LookUp):
            self._spawn(self._look_up(instruction))
        else:
            self._spawn(self._recall(instruction))

    def _save(self, asked: SaveSession) -> None:
        failure = None
        try:
            self._store.save_session(asked.session)
        except Exception as error:  # whatever it is, it was not written down
            failure = f"the session could not be written down: {error}"
        self._tell(Saved(asked.session.name, asked.link, asked.seq, asked.number, failure))

    def _forget(self, asked: Forget) -> None:
        for name in asked.sessions:
            self._store.drop_session(name)
        for inner in asked.inners:
            self._store.forget_inner(inner)
        for name, count in asked.losses:
            self._store.losses_told(name, count)

    def _trim(self, asked: Trim) -> None:
        with contextlib.suppress(KbnError):  # it is bounded at the next time
            for name in asked.sessions:
                lost = self._store.trim_backlog(
                    name, before=asked.before, max_bytes=asked.max_bytes
                )
                if lost:
                    self._tell(Trimmed(name, lost))

    def _read_spool(self, asked: ReadSpool) -> None:
        entries: list[LogEntry] | None = None
        try:
            entries = self._store.spooled(asked.after, PIECE)
        finally:
            self._tell(Spooled(entries))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _keep_caring(self) -> None:
        while True:
            await asyncio.sleep(self._care.every / 1000)
            done = self._loop.create_future()
            self._recorder.run(lambda: self._take_care(self._state.core.now, done))  # noqa: B023
            await done

    def _take_care(self, now: int, done: asyncio.Future[None]) -> None:
        memory = self._state.memory
        assert memory is not None
        try:
            self._care.retain(self._store, now, memory.engine, self._ask)
        except KbnError:
            pass  # a store that is down says so at the next append
        finally:
            self._call(_settle, done)

    def _ask(self, question: Callable[..., T], *arguments: object) -> T:
        """Called by the writer: have the loop answer, and wait for it."""
        answer: Future[T] = Future()

        def give() -> None:
            if answer.set_running_or_notify_cancel():
                answer.set_result(question(*arguments))

        self._call(give)
        try:
            return answer.result(ANSWER_PATIENCE)
        except TimeoutError:
            answer.cancel()
            raise StoreError("the broker is busy or at its end") from None

    async def _committed(self) -> None:
        """Wait until everything handed over so far is on disk, or was refused."""
        done = self._loop.create_future()
        self._recorder.run(lambda: self._call(_settle, done))
        await done

    async def _fill(self, asked: Fill) -> None:
        """Feed the log to a new inner filter, in a thread."""
        backfill = asked.backfill
        made: list[Decision] = []
        try:
            async with asyncio.timeout(None if asked.patient else self._care.fill):
                pieces = pieces_of(self._store.log(0, backfill.upto, batch=PIECE))
                with SettingAside() as aside:
                    while piece := await asyncio.to_thread(next, pieces, None):
                        if backfill.abandoned:
                            return  # whoever asked has left, and was answered
                        made += await asyncio.to_thread(backfill.feed, piece)
                        aside.piece()
                # Numbers may have gaps at the end: the log was read all the same.
                backfill.replay.seq = max(backfill.replay.seq, backfill.upto)
                # What was written meanwhile; only the rest is left to the loop.
                while len(since := self._since(backfill)) >= FEW:
                    made += await asyncio.to_thread(backfill.feed, since)
                made += backfill.feed(since)
        except TimeoutError:
            self._report(Filled(asked.number, failure="its history could not be read in time"))
        except Exception as error:  # the SUB must be answered, whatever the store says
            self._report(Filled(asked.number, failure=f"its history cannot be read: {error}"))
        else:
            self._report(Filled(asked.number, tuple(made)))

    def _since(self, backfill: Backfill) -> list[LogEntry]:
        memory = self._state.memory
        return [] if memory is None else backfill.ready(memory.engine.durable)

    async def _recall(self, asked: Recall) -> None:
        """Read the past and hand it over at the pace of its receiver."""
        await self._committed()
        memory = self._state.memory
        max_open = None if memory is None else memory.engine.limits.max_open
        pieces = past_of(self._store, asked, self._state.core.world, max_open)
        try:
            while piece := await asyncio.to_thread(next, pieces, None):
                for first in range(0, len(piece), SLICE):
                    if not await self._has_room(asked.number):
                        return
                    self._report(Recalled(asked.number, piece[first : first + SLICE]))
        except Exception as error:  # it is read on when the store is back
            self._state.core.log("error", "history", f"the past could not be read: {error}")
            self._report(Recalled(asked.number, [], failed=True))
        else:
            self._report(Recalled(asked.number, [], done=True))

    async def _explain(self, asked: Explain) -> None:
        """Replay the log up to an event, in a thread, and say what was found."""
        await self._committed()
        memory = self._state.memory
        max_open = None if memory is None else memory.engine.limits.max_open
        knowledge = self._state.core.world.knowledge
        try:
            lines = await asyncio.to_thread(
                explained, self._store, asked.asked, asked.event, knowledge, max_open
            )
        except KbnError as error:
            self._report(Explained(asked.link, asked.seq, failure=error.message))
        else:
            self._report(Explained(asked.link, asked.seq, "\n".join(lines)))

    async def _look_up(self, asked: LookUp) -> None:
        try:
            entries = await asyncio.to_thread(self._store.entries, asked.event)
        except Exception as error:  # it must be answered, whatever the archive says
            self._report(LookedUp(asked.link, asked.seq, failure=f"it cannot be read: {error}"))
        else:
            self._report(LookedUp(asked.link, asked.seq, merge_all(entries)))

    async def _has_room(self, number: int) -> bool:
        """Wait until the receiver has read most of what it was given; False if it left."""
        recalling = self._state.recalling
        assert recalling is not None
        while not (room := recalling.room(number)):
            if room is None:
                return False
            await asyncio.sleep(0.005)
        return True


def _settle(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)
