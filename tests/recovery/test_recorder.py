"""The writer does what it is asked in order, and says of each batch what became of it."""

from __future__ import annotations

from datastore.memory import MemoryStore
from datastore.store import Batch, KnownInner
from datastore.testing.histories import entry
from kbn.broker.instructions import Record
from kbn.errors import StoreError
from kbn.model.publications import Part
from kbn.server.recorder import Recorder


class Heard:
    def __init__(self) -> None:
        self.said: list[tuple[object, ...]] = []

    def recorded(self, upto: int, number: int) -> None:
        self.said.append(("recorded", upto, number))

    def unrecorded(self, epoch: int, code: str, reason: str) -> None:
        self.said.append(("unrecorded", epoch, code))


def record(seq: int, epoch: int = 0, **more: object) -> Record:
    one = entry(seq, f"e{seq}", Part.PLAIN, seq, None, seq)
    return Record(Batch([one], **more), seq, epoch, seq)  # type: ignore[arg-type]


def test_what_was_asked_between_two_batches_is_done_between_them() -> None:
    store, heard = MemoryStore(), Heard()
    writer = Recorder(store, heard)
    writer.record(record(1, inners=[KnownInner("f", "filter{}", 1)]))
    writer.owe(lambda: store.forget_inner("f"))
    writer.record(record(2))
    seen: list[int] = []
    writer.run(lambda: seen.append(store.last_seq()))
    writer.record(record(3, inners=[KnownInner("f", "filter{}", 3)]))
    writer.start()
    writer.stop()
    assert seen == [2]
    assert store.inners()["f"].upto == 3
    assert heard.said[-1] == ("recorded", 3, 3)


def test_nothing_is_written_before_what_is_owed_was_done() -> None:
    store, heard = MemoryStore(), Heard()
    writer = Recorder(store, heard)
    tries = 0

    def forget() -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise StoreError("down")

    writer.owe(forget)
    writer.record(record(1, epoch=0))
    writer.run(lambda: None)
    writer.record(record(2, epoch=1))
    writer.start()
    writer.stop()
    assert heard.said == [("unrecorded", 0, "store_unavailable"), ("recorded", 2, 2)]
    assert [one.seq for one in store.log()] == [2]


def test_a_commit_whose_answer_was_lost_counts_as_done() -> None:
    class Breaking(MemoryStore):
        def append(self, batch: Batch) -> None:
            super().append(batch)
            raise ConnectionError("lost after the commit")

    heard = Heard()
    writer = Recorder(Breaking(), heard)
    writer.record(record(1))
    writer.start()
    writer.stop()
    assert heard.said == [("recorded", 1, 1)]


def test_an_error_of_a_task_does_not_end_the_writer() -> None:
    store, heard = MemoryStore(), Heard()
    writer = Recorder(store, heard)
    writer.run(lambda: 1 // 0)
    writer.record(record(1))
    writer.start()
    writer.stop()
    assert heard.said == [("recorded", 1, 1)]
