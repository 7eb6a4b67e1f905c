"""What every store promises, as methods that take an open, empty store.

Answers are compared with those of ``MemoryStore``, fed the same.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from datastore.memory import MemoryStore
from datastore.merge import merge
from datastore.query import Order, Query, Window
from datastore.store import (
    BacklogRow,
    Batch,
    KnownInner,
    Retention,
    Store,
    StoredSession,
    StoredSubscription,
)
from datastore.testing.histories import entry, history
from kbn.errors import KbnError, StoreError
from kbn.language import parse_subscription
from kbn.model.past import Box
from kbn.model.publications import Decision, LogEntry, Part
from senp import encode_event


def both(store: Store, entries: list[LogEntry]) -> MemoryStore:
    """The reference, and the store under test, fed the same in groups."""
    reference = MemoryStore()
    for at in range(0, len(entries), 7):
        for each in (store, reference):
            each.append(Batch(entries[at : at + 7]))
    return reference


def refused(call: Callable[[], object]) -> KbnError:
    """The documented error that the call ends with."""
    try:
        call()
    except KbnError as error:
        return error
    raise AssertionError("it was accepted")


class StoreSuite:
    """Mixed into a test class that provides the fixture ``store``."""

    def test_an_empty_store_knows_nothing(self, store: Store) -> None:
        assert store.last_seq() == 0
        assert store.count() == 0
        assert store.get("x") is None
        assert list(store.log()) == []
        assert list(store.events(Query())) == []
        assert store.first_seq_since(0) is None
        assert store.get_mark("m") is None
        assert store.sessions() == []
        assert store.spooled() == []
        assert store.inners() == {}
        assert not store.any_within("f", Box(), None)
        assert [f for f in store.check() if f.wrong] == []

    def test_the_log_gives_back_what_was_appended_in_order(self, store: Store) -> None:
        entries = list(history(1, 120))
        reference = both(store, entries)
        assert list(store.log()) == entries
        assert list(store.log(batch=7)) == entries
        middle, late = entries[40].seq, entries[90].seq
        assert list(store.log(middle, late)) == list(reference.log(middle, late))
        assert store.last_seq() == entries[-1].seq

    def test_a_body_that_the_caller_has_encoded_is_stored_as_it_is(self, store: Store) -> None:
        one = entry(1, "x", price=1.5, word="é\x00")
        two = entry(2, "y", price=2.5)
        store.append(Batch([one, two], bodies=[encode_event(one.notification), None]))
        assert list(store.log()) == [one, two]

    def test_seq_never_goes_back(self, store: Store) -> None:
        store.append(Batch([entry(5, "x")]))
        for bad in ([entry(5, "y")], [entry(4, "y")], [entry(7, "y"), entry(6, "z")]):
            error = refused(partial(store.append, Batch(bad, marks={"m": 1})))
            assert error.code == "store_unavailable"
        assert [e.seq for e in store.log()] == [5]
        assert store.get_mark("m") is None, "nothing of a refused batch is stored"

    def test_events_are_merged_from_their_entries(self, store: Store) -> None:
        entries = list(history(2, 150))
        reference = both(store, entries)
        uids = {e.uid for e in entries}
        for uid in uids:
            assert store.get(uid) == merge(e for e in entries if e.uid == uid)
        assert store.get_many([*uids, "unknown"]) == reference.get_many(uids)
        assert store.entries_of([*uids, "unknown"]) == reference.entries_of(uids)
        assert store.count() == len(uids)
        assert list(store.open_events()) == list(reference.open_events())
        assert list(store.open_events()), "the history has open events"

    def test_an_event_known_by_its_end_alone_is_found_and_completed(self, store: Store) -> None:
        store.append(Batch([entry(1, "x", Part.END, None, 50, level=1)]))
        found = store.get("x")
        assert found is not None
        assert (found.start, found.end) == (None, 50)
        assert [e.uid for e in store.events(Query())] == ["x"]
        store.append(Batch([entry(2, "x", Part.START, 10, None, level=0, kind="storm")]))
        found = next(store.events(Query()))
        assert (found.start, found.end, found.first_seq, found.last_seq) == (10, 50, 1, 2)
        assert found.notification["level"] == 1, "the end wins, whenever it came"
        assert found.notification["kind"] == "storm"

    def test_arrival_times_find_their_place_even_where_the_clock_was_set_back(
        self, store: Store
    ) -> None:
        reference = both(store, list(history(3, 120)))
        for ms in range(-5, 200):
            assert store.first_seq_since(ms) == reference.first_seq_since(ms)

    def test_windows_and_orders_are_those_of_the_reference(self, store: Store) -> None:
        reference = both(store, list(history(4, 150)))
        draw = random.Random(4)
        for _ in range(60):
            low, high = sorted(draw.sample(range(2000), 2))
            bounds = [draw.choice((None, low, high, 10**30, -(10**30))) for _ in range(4)]
            window = Window(
                draw.choice((None, low // 20)),
                draw.choice((None, high // 20)),
                Box(*bounds),
                draw.random() < 0.2,
            )
            query = Query(
                parse_subscription(draw.choice(("", "a any", "a = 1 or b any"))),
                window,
                draw.choice(list(Order)),
                draw.choice((None, 0, 1, 5)),
            )
            assert list(store.events(query)) == list(reference.events(query))
            assert store.has_match(query) == reference.has_match(query)

    def test_any_within_equals_a_scan_of_the_standing_decisions(self, store: Store) -> None:
        reference = MemoryStore()
        draw = random.Random(5)
        entries = [entry(seq, f"e{seq % 60}") for seq in range(1, 400)]
        for one in entries:
            start = draw.choice((None, draw.randrange(1000)))
            closed = (start or 0) + draw.choice((0, 1, 7, 63, 64, 500))
            end = closed if start is None else draw.choice((None, closed))
            said = [
                Decision(f, one.uid, one.seq, draw.random() < 0.7, start, end)
                for f in draw.sample("fgh", 2)
            ]
            for each in (store, reference):
                each.append(Batch([one], decisions=said))
            bounds = [draw.choice((None, draw.randrange(1000), -(10**30))) for _ in range(4)]
            exclude = draw.choice((None, "", f"e{draw.randrange(60)}"))
            for asked in "fghi":
                box = Box(*bounds)
                expected = reference.any_within(asked, box, exclude)
                assert store.any_within(asked, box, exclude) == expected, (asked, box, exclude)
        for asked in "fghi":
            assert store.decisions(asked) == reference.decisions(asked)
            assert store.decisions(asked, 3) == reference.decisions(asked, 3)

    def test_inner_filters_are_known_until_forgotten(self, store: Store) -> None:
        known = KnownInner("hash", "filter{ a any}", 1)
        held = Decision("hash", "x", 1, True, 1, 1)
        store.append(Batch([entry(1, "x")], decisions=[held], inners=[known]))
        assert store.inners() == {"hash": known}
        store.append(Batch(inners=[known._replace(upto=9)]))
        assert store.inners()["hash"].upto == 9
        assert store.any_within("hash", Box(), None)
        store.forget_inner("hash")
        store.forget_inner("unknown")
        assert store.inners() == {}
        assert not store.any_within("hash", Box(), None)
        store.append(Batch([entry(2, "y")], decisions=[held._replace(event="y", seq=2)]))
        assert [d.event for d in store.decisions("hash")] == ["y"]

    def test_marks_are_remembered(self, store: Store) -> None:
        store.set_mark("upto", 3)
        store.append(Batch(marks={"upto": 5, "é\x00": -(2**63)}))
        assert (store.get_mark("upto"), store.get_mark("é\x00")) == (5, -(2**63))

    def test_a_durable_session_keeps_its_subscriptions_and_its_backlog(self, store: Store) -> None:
        asked = parse_subscription('price < 80 or symbol prefix "IB"')
        units = (
            StoredSubscription("s/1", asked),
            StoredSubscription("s/1", parse_subscription("a any"), history=True, since=7),
        )
        store.save_session(StoredSession("s", units))
        store.save_session(StoredSession("é\x00", ()))
        entries = [entry(seq, f"e{seq}", n=seq) for seq in range(1, 11)]
        rows = [BacklogRow("s", e.seq, ("s/1", "s/\x00")) for e in entries]
        store.append(Batch(entries, backlog=rows))
        waiting = store.backlog("s", 3, 4)
        assert [w.entry for w in waiting] == entries[3:7]
        assert waiting[0].receivers == ("s/1", "s/\x00")
        store.confirm("s", 4)
        store.confirm("s", 2)
        assert [w.entry.seq for w in store.backlog("s")] == [5, 6, 7, 8, 9, 10]
        store.append(Batch(confirms={"s": 5}))
        store.save_session(StoredSession("s", units[:1]))
        assert {s.name: s for s in store.sessions()}["s"] == StoredSession("s", units[:1], 5)
        store.drop_session("s")
        assert [s.name for s in store.sessions()] == ["é\x00"]
        assert store.backlog("s") == []

    def test_a_backlog_is_bounded_by_age_and_bytes_and_says_what_was_lost(
        self, store: Store
    ) -> None:
        store.save_session(StoredSession("s", ()))
        entries = [entry(seq, f"e{seq}", word="w" * 90) for seq in range(1, 11)]
        size = len(encode_event(entries[0].notification))
        store.append(Batch(entries, backlog=[BacklogRow("s", e.seq, ("s",)) for e in entries]))
        assert store.trim_backlog("s", before=1, max_bytes=20 * size) == 0
        assert store.trim_backlog("s", before=3) == 2
        assert store.trim_backlog("s", max_bytes=5 * size) == 3
        assert [w.entry.seq for w in store.backlog("s")] == [6, 7, 8, 9, 10]
        assert store.sessions()[0].lost == 5

    def test_losses_that_were_told_are_not_counted_any_more(self, store: Store) -> None:
        store.save_session(StoredSession("s", (), lost=5))
        store.losses_told("s", 2)
        store.losses_told("nobody", 2)
        store.save_session(StoredSession("s", ()))
        assert store.sessions()[0].lost == 3
        store.losses_told("s", 4)
        assert store.sessions()[0].lost == 0

    def test_the_spool_keeps_what_has_not_gone_to_the_master(self, store: Store) -> None:
        entries = [entry(seq, f"e{seq}") for seq in range(1, 7)]
        store.append(Batch(entries[:3], spool=[1, 2, 3]))
        store.append(Batch(entries[3:], spool=[4, 6], unspool=[2]))
        assert [e.seq for e in store.spooled()] == [1, 3, 4, 6]
        assert store.spooled(1, 2) == [entries[2], entries[3]]
        store.unspool([1, 3])
        assert [e.seq for e in store.spooled()] == [4, 6]

    def test_retention_takes_whole_events_and_never_open_ones(self, store: Store) -> None:
        policies = [
            Retention(before=30),
            Retention(count=60),
            Retention(size=4000),
            Retention(before=60, count=30, size=2000),
        ]
        entries = list(history(6, 200))
        reference = both(store, entries)
        held = [Decision("f", e.uid, e.seq, True, e.start, e.end) for e in entries]
        for each in (store, reference):
            each.append(Batch(decisions=held, spool=[entries[3].seq], inners=[_KNOWN]))
            each.append(Batch(backlog=[BacklogRow("s", entries[5].seq, ("s",))]))
        for policy in policies:
            assert store.retain(policy) == reference.retain(policy)
            assert list(store.log()) == list(reference.log())
            assert list(store.events(Query())) == list(reference.events(Query()))
            assert store.decisions("f") == reference.decisions("f")
        assert store.get(entries[3].uid) is not None, "the spool still needs it"
        assert store.get(entries[5].uid) is not None, "a backlog still needs it"
        assert store.last_seq() == entries[-1].seq
        assert [f for f in store.check() if f.wrong] == []

    def test_a_store_that_was_used_passes_its_own_check(self, store: Store) -> None:
        both(store, list(history(7, 150)))
        while store.work(50):
            pass
        assert [f for f in store.check() if f.wrong] == []
        assert store.info()["events"] == store.count()

    def test_an_export_is_imported_by_any_store(self, store: Store, tmp_path: Path) -> None:
        entries = list(history(8, 120))
        reference = both(store, entries)
        session = StoredSession("s", (StoredSubscription("s/1", parse_subscription("a any")),), 3)
        for each in (store, reference):
            each.save_session(session)
            each.append(
                Batch(
                    decisions=[Decision("f", entries[0].uid, entries[0].seq, True, 1, None)],
                    inners=[_KNOWN],
                    spool=[entries[1].seq],
                    backlog=[BacklogRow("s", entries[2].seq, ("s/1",))],
                    marks={"m": 4},
                )
            )
        path = tmp_path / "export.jsonl.gz"
        assert store.export(path) == len(entries)
        there = MemoryStore()
        assert there.import_(path) == len(entries)
        assert list(there.log()) == entries
        reference.export(tmp_path / "back.jsonl")
        there.export(tmp_path / "again.jsonl")
        kept = [
            [line for line in (tmp_path / name).read_text().splitlines() if '["log"' not in line]
            for name in ("back.jsonl", "again.jsonl")
        ]
        assert kept[0] == kept[1]

    def test_an_import_is_refused_unless_the_store_is_empty_and_the_file_whole(
        self, store: Store, tmp_path: Path
    ) -> None:
        full = MemoryStore()
        full.append(Batch(list(history(9, 20))))
        path = tmp_path / "export.jsonl"
        full.export(path)
        cut = tmp_path / "cut.jsonl"
        cut.write_text("\n".join(path.read_text().splitlines()[:-3]) + "\n")
        for path_ in (cut, tmp_path / "missing", Path(__file__)):
            error = refused(partial(MemoryStore().import_, path_))
            assert error.code == "syntax", error
        store.import_(path)
        assert list(store.log()) == list(full.log())
        assert isinstance(refused(lambda: store.import_(path)), StoreError)

    def test_another_thread_reads_while_one_appends(self, store: Store) -> None:
        entries = [entry(seq, f"e{seq}", n=seq) for seq in range(1, 401)]
        wrong: list[object] = []
        stop = threading.Event()

        def read() -> None:
            while not stop.is_set():
                seen = store.last_seq()
                found = store.get(f"e{seen}") if seen else None
                if seen and (found is None or found.notification["n"] != seen):
                    wrong.append((seen, found))
                if [e.seq for e in store.log(1, seen)] != list(range(1, seen + 1)):
                    wrong.append(seen)

        reader = threading.Thread(target=read)
        reader.start()
        try:
            for at in range(0, len(entries), 10):
                store.append(Batch(entries[at : at + 10]))
        finally:
            stop.set()
            reader.join()
        assert wrong == []


_KNOWN = KnownInner("f", "filter{ a any}", 0)
