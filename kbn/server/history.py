"""A broker's history at the edge: the store, its writer, and the reading of the past.

``open_history`` opens the store and puts the memory of earlier runs together;
``Historian`` carries out what the broker instructs: one thread writes, readers
run in threads of their own and hand over the past piece by piece, at the pace
at which its receiver reads.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterator
from itertools import islice
from typing import Any

from datastore.store import Batch, Store
from kbn.broker.instructions import Fill, Forget, ReadSpool, Recall, Record, SaveSession
from kbn.broker.knowing import NOTHING_LOADED, Ontology
from kbn.broker.remembering import ONTOLOGY, Kept, known_inner, mark_of
from kbn.broker.state import BrokerState
from kbn.broker.stimuli import Filled, FromStore, Recalled, Recorded, Saved, Spooled, Unrecorded
from kbn.errors import KbnError
from kbn.knowledge.hierarchy import NO_TERMS
from kbn.matching.world import World
from kbn.model.events import MergedEvent, merge_all
from kbn.model.filters import Subscription, needs_history, needs_ontology
from kbn.model.past import Box
from kbn.model.publications import Decision, LogEntry
from kbn.model.time import TIME_MAX, TIME_MIN
from kbn.server.recorder import Recorder
from kbn.temporal.backfill import Backfill
from kbn.temporal.engine import TemporalEngine
from kbn.temporal.lookback import about, matching
from kbn.temporal.memory import Limits
from senp import decode_subscription

#: Entries a reader takes from the log at a time.
PIECE = 500
#: So few entries are decided on the loop.
FEW = 20
#: Seconds a new inner filter may take to be filled.
FILL_PATIENCE = 60.0
#: Newest publications whose ids are known again after a restart.
UIDS = 50_000
#: Decisions of an inner filter that come into memory at a restart; the rest is asked of the store.
HEADS = 20_000
_EVERYTHING = Box(TIME_MIN, TIME_MAX, TIME_MIN, TIME_MAX)

Report = Callable[[FromStore], None]


class StoredEvents:
    """The store as the temporal memory sees it, for events it no longer remembers."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, event_id: str) -> MergedEvent | None:
        return merge_all(self._store.entries(event_id))


def open_history(
    store: Store, known_now: Ontology = NOTHING_LOADED, limits: Limits | None = None
) -> Kept:
    """What earlier runs left: the memory of live inner filters, sessions, the spool.

    Inner filters that were decided under other knowledge than there is now, or whose
    decisions were lost, are decided anew.
    """
    last = store.last_seq()
    knowledge = known_now.hierarchy or NO_TERMS
    engine = TemporalEngine(StoredEvents(store), store, limits, knowledge, seq=last)
    same = store.get_mark(ONTOLOGY) == mark_of(known_now)
    known = [
        (inner, decode_subscription(inner.text.encode("ascii")))
        for inner in store.inners().values()
    ]
    # Filters that others contain come first: the deeper one nests, the later it is loaded.
    for inner, subscription in sorted(known, key=lambda pair: pair[1].depth):
        if not same and needs_ontology(subscription):
            store.forget_inner(inner.inner)
            continue
        heads = store.decisions(inner.inner, HEADS)
        engine.load(subscription, heads, _EVERYTHING if len(heads) == HEADS else None)
    uids = frozenset(
        entry.uid for entry in store.log(max(0, last - UIDS)) if entry.part.value == "PLAIN"
    )
    sessions = tuple(store.sessions())
    asked = (s.subscription for session in sessions for s in session.subscriptions)
    reread = tuple(s for s in asked if engine.memory.missing(s) and _read_again(store, engine, s))
    if not same:
        store.append(Batch(marks={ONTOLOGY: mark_of(known_now)}))
    return Kept(engine, uids, sessions, tuple(store.spooled(0, PIECE)), reread)


def _read_again(store: Store, engine: TemporalEngine, asked: Subscription) -> bool:
    """Decide the inner filters of a subscription over the whole log."""
    backfill = engine.acquire(asked)
    if backfill is not None:
        made = backfill.feed(store.log(0, backfill.upto, batch=PIECE))
        backfill.replay.seq = max(backfill.replay.seq, backfill.upto)
        made += engine.adopt(backfill)
        inners = [known_inner(inner.name, inner.subscription) for inner in backfill.missing]
        store.append(Batch(decisions=made, inners=inners))
        engine.stored(backfill)
    return True


class Historian:
    """Performs the instructions that concern the history; reports by stimuli, on the loop."""

    def __init__(self, store: Store, state: BrokerState, report: Report) -> None:
        self._store = store
        self._state = state
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._recorder = Recorder(store, self)
        self._recorder.start()
        self._tasks: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Commit what was handed over; end the readers."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self._recorder.stop)

    # --- called by the writer, in its own thread -----------------------------------------

    def recorded(self, upto: int) -> None:
        self._tell(Recorded(upto))

    def unrecorded(self, epoch: int, code: str, reason: str) -> None:
        self._tell(Unrecorded(epoch, code, reason))

    def _tell(self, stimulus: FromStore) -> None:
        self._call(self._report, stimulus)

    def _call(self, action: Callable[..., None], *arguments: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
            self._loop.call_soon_threadsafe(action, *arguments)

    # --- instructions ----------------------------------------------------------------------

    def perform(
        self, instruction: Record | Fill | Recall | ReadSpool | SaveSession | Forget
    ) -> None:
        if isinstance(instruction, Record):
            self._recorder.record(instruction)
        elif isinstance(instruction, SaveSession):
            self._recorder.run(lambda: self._save(instruction))
        elif isinstance(instruction, Forget):
            self._recorder.run(lambda: self._forget(instruction))
        elif isinstance(instruction, ReadSpool):
            self._recorder.run(lambda: self._read_spool(instruction))
        elif isinstance(instruction, Fill):
            self._spawn(self._fill(instruction))
        else:
            self._spawn(self._recall(instruction))

    def _save(self, asked: SaveSession) -> None:
        with contextlib.suppress(KbnError):  # a store that is down says so at the next append
            self._store.save_session(asked.session)
        self._tell(Saved(asked.link, asked.seq, asked.number))

    def _forget(self, asked: Forget) -> None:
        with contextlib.suppress(KbnError):
            for name in asked.sessions:
                self._store.drop_session(name)
            for inner in asked.inners:
                self._store.forget_inner(inner)

    def _read_spool(self, asked: ReadSpool) -> None:
        try:
            entries = self._store.spooled(asked.after, PIECE)
        except KbnError:
            entries = []
        self._tell(Spooled(entries))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _committed(self) -> None:
        """Wait until everything handed over so far is on disk, or was refused."""
        done = self._loop.create_future()

        def settle() -> None:
            if not done.done():
                done.set_result(None)

        self._recorder.run(lambda: self._call(settle))
        await done

    async def _fill(self, asked: Fill) -> None:
        """Feed the log to a new inner filter, in a thread."""
        backfill = asked.backfill
        made: list[Decision] = []
        try:
            async with asyncio.timeout(None if asked.patient else FILL_PATIENCE):
                pieces = _pieces(self._store.log(0, backfill.upto, batch=PIECE))
                while piece := await asyncio.to_thread(next, pieces, None):
                    made += await asyncio.to_thread(backfill.feed, piece)
                # Numbers may have gaps at the end: the log was read all the same.
                backfill.replay.seq = max(backfill.replay.seq, backfill.upto)
                # What was written meanwhile; only the rest is left to the loop.
                while len(since := self._since(backfill)) >= FEW:
                    made += await asyncio.to_thread(backfill.feed, since)
                made += backfill.feed(since)
        except TimeoutError:
            self._report(Filled(asked.number, failure="its history could not be read in time"))
        except KbnError as error:
            self._report(Filled(asked.number, failure=error.message))
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
                if not await self._has_room(asked.number):
                    return
                self._report(Recalled(asked.number, piece))
        except KbnError as error:
            self._state.core.log("error", "history", f"the past could not be read: {error}")
        self._report(Recalled(asked.number, [], done=True))

    async def _has_room(self, number: int) -> bool:
        """Wait until the receiver has read most of what it was given; False if it left."""
        recalling = self._state.recalling
        assert recalling is not None
        while True:
            link = self._state.core.links.get(recalling.wanted(number) or 0)
            if link is None or link.target is None:
                return False
            outbox = link.target.outbox
            if outbox.size < outbox.high_water // 4:
                return True
            await asyncio.sleep(0.005)


def past_of(
    store: Store, asked: Recall, world: World, max_open: int | None
) -> Iterator[list[tuple[LogEntry, tuple[str, ...]]]]:
    """What a ``Recall`` is to be told, piece by piece."""
    if asked.session is not None:
        yield from _backlog(store, asked, asked.session)
        return
    assert asked.asked is not None
    from_seq = 0
    if not asked.history and not needs_history(asked.asked):
        # Content needs no history: begin where it is wanted.
        first = store.first_seq_since(asked.since)
        if first is None:
            return
        from_seq = max(first, asked.after + 1)
    log = store.log(from_seq, asked.upto, batch=PIECE)
    after, since = asked.after, asked.since
    if asked.history:
        found = about(log, asked.asked, world, after=after, since=since)
    else:
        found = matching(log, asked.asked, world, after=after, since=since, max_open=max_open)
    for piece in _pieces(found):
        yield [(entry, ()) for entry in piece]


def _backlog(
    store: Store, asked: Recall, session: str
) -> Iterator[list[tuple[LogEntry, tuple[str, ...]]]]:
    after = asked.after
    while rows := store.backlog(session, after, PIECE):
        piece = [(row.entry, row.receivers) for row in rows if row.entry.seq <= asked.upto]
        if not piece:
            return
        yield piece
        after = piece[-1][0].seq


def _pieces(entries: Iterator[LogEntry]) -> Iterator[list[LogEntry]]:
    while piece := list(islice(entries, PIECE)):
        yield piece
