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
from typing import Any

from datastore.store import Store
from kbn.broker.instructions import Explain, Fill, Forget, ReadSpool, Recall, Record, SaveSession
from kbn.broker.remembering import Kept
from kbn.broker.state import BrokerState
from kbn.broker.stimuli import (
    Explained,
    Filled,
    FromStore,
    Recalled,
    Recorded,
    Saved,
    Spooled,
    Unrecorded,
)
from kbn.errors import KbnError
from kbn.matching.world import NOTHING_KNOWN, Knowledge
from kbn.model.events import MergedEvent, merge_all
from kbn.model.past import Box
from kbn.model.publications import Decision
from kbn.model.time import TIME_MAX, TIME_MIN
from kbn.server.care import Care
from kbn.server.reading import PIECE, explained, past_of
from kbn.server.reading import pieces as pieces_of
from kbn.server.recorder import Recorder
from kbn.temporal.engine import TemporalEngine
from kbn.temporal.memory import Limits
from senp import decode_subscription

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
    store: Store, knowledge: Knowledge = NOTHING_KNOWN.knowledge, limits: Limits | None = None
) -> Kept:
    """What earlier runs left: the memory of live inner filters, sessions, the spool."""
    last = store.last_seq()
    engine = TemporalEngine(StoredEvents(store), store, limits, knowledge, seq=last)
    known = [
        (inner, decode_subscription(inner.text.encode("ascii")))
        for inner in store.inners().values()
    ]
    # Filters that others contain come first: the deeper one nests, the later it is loaded.
    for inner, subscription in sorted(known, key=lambda pair: pair[1].depth):
        heads = store.decisions(inner.inner, HEADS)
        engine.load(subscription, heads, _EVERYTHING if len(heads) == HEADS else None)
    uids = frozenset(
        entry.uid for entry in store.log(max(0, last - UIDS)) if entry.part.value == "PLAIN"
    )
    return Kept(engine, uids, tuple(store.sessions()), tuple(store.spooled(0, PIECE)))


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
        self, instruction: Record | Fill | Recall | ReadSpool | SaveSession | Forget | Explain
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
        elif isinstance(instruction, Explain):
            self._spawn(self._explain(instruction))
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

    async def _keep_caring(self) -> None:
        while True:
            await asyncio.sleep(self._care.every / 1000)
            sessions, now = tuple(self._state.core.durables), self._state.core.now
            done = self._loop.create_future()
            self._recorder.run(lambda: self._take_care(sessions, now, done))  # noqa: B023
            await done

    def _take_care(self, sessions: tuple[str, ...], now: int, done: asyncio.Future[None]) -> None:
        try:
            for trimmed in self._care.trim(self._store, sessions, now):
                self._tell(trimmed)
            self._care.retain(self._store, now)
        except KbnError:
            pass  # a store that is down says so at the next append
        finally:
            self._call(_settle, done)

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
            async with asyncio.timeout(FILL_PATIENCE):
                pieces = pieces_of(self._store.log(0, backfill.upto, batch=PIECE))
                while piece := await asyncio.to_thread(next, pieces, None):
                    made += await asyncio.to_thread(backfill.feed, piece)
            # Numbers may have gaps at the end: the log was read all the same.
            backfill.replay.seq = max(backfill.replay.seq, backfill.upto)
        except TimeoutError:
            self._report(Filled(asked.number, failure="its history could not be read in time"))
        except KbnError as error:
            self._report(Filled(asked.number, failure=error.message))
        else:
            self._report(Filled(asked.number, tuple(made)))

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


def _settle(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)
