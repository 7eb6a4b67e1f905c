"""Exports: a whole store as lines of JSON, the same from every engine to every engine.

The first line says what the file is; each other line is ``[kind, …]``. The last
one counts the entries, so that a file cut short is refused. Gzip if the name ends
in ``.gz``.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

from datastore.bodies import read_body, write_body
from datastore.store import (
    BacklogRow,
    Batch,
    KnownInner,
    Progress,
    Store,
    StoredSession,
    StoredSubscription,
    Waiting,
)
from kbn.errors import MalformedError, StoreError
from kbn.model.publications import Decision, LogEntry, Part
from senp import decode_subscription, encode_subscription

VERSION = 1
_GROUP = 1000


def write(store: Store, path: Path, marks: Mapping[str, int], progress: Progress) -> int:
    """Write the store to a file that appears whole or not at all."""
    partial = path.with_name(path.name + ".partial")
    count, total = 0, store.last_seq()
    with _open(partial, path, "wt") as out:

        def say(*line: object) -> None:
            out.write(json.dumps(line, separators=(",", ":")) + "\n")

        out.write(json.dumps({"kbn-export": VERSION, "last_seq": total}) + "\n")
        for entry in store.log():
            *head, notification = entry
            say("log", *head, write_body(notification))
            count += 1
            if count % _GROUP == 0:
                progress(count, total)
        for known in store.inners().values():
            say("inner", *known)
            for decision in store.decisions(known.inner):
                say("decision", *decision)
        for session in store.sessions():
            name, subscriptions, confirmed, lost = session
            units = [
                [unit.id, encode_subscription(unit.subscription).decode("ascii"), *unit[2:]]
                for unit in subscriptions
            ]
            say("session", name, units, confirmed, lost)
            for row in _whole_backlog(store, name):
                say("backlog", name, row.entry.seq, row.receivers)
        for entry in _whole_spool(store):
            say("spool", entry.seq)
        for mark, value in marks.items():
            say("mark", mark, value)
        say("end", count)
    os.replace(partial, path)
    return count


def read(store: Store, path: Path, progress: Progress) -> int:
    """Append a file's content to an empty store; refuses anything cut short."""
    if store.last_seq():
        raise StoreError("an import needs an empty store, this one has entries")
    try:
        with _open(path, path, "rt") as lines:
            return _read(store, lines, path, progress)
    except (OSError, EOFError, ValueError, KeyError, TypeError, IndexError) as error:
        raise MalformedError(f"{path} is no export of a store: {error}") from error


def _read(store: Store, lines: IO[str], path: Path, progress: Progress) -> int:
    head = json.loads(lines.readline())
    if not isinstance(head, dict) or head.get("kbn-export") != VERSION:
        raise ValueError(f"the first line does not say kbn-export {VERSION}")
    total = int(head["last_seq"])
    count = 0
    ended: int | None = None
    while group := list(islice(lines, _GROUP)):
        batch = _batch(store, [json.loads(line) for line in group])
        for line in batch[1]:
            ended = int(line[1])
        store.append(batch[0])
        count += len(batch[0].entries)
        progress(count, total)
    if ended != count:
        raise ValueError(f"it is cut short: {count} entries, {ended} announced")
    return count


def _batch(store: Store, lines: Iterable[list[Any]]) -> tuple[Batch, list[list[Any]]]:
    entries, decisions, inners, spool, backlog = [], [], [], [], []
    marks: dict[str, int] = {}
    ends: list[list[Any]] = []
    for line in lines:
        kind, *rest = line
        if kind == "log":
            seq, uid, part, at, arrived, start, end, body = rest
            said = read_body(body)
            entries.append(LogEntry(seq, uid, Part(part), at, arrived, start, end, said))
        elif kind == "inner":
            inners.append(KnownInner(*rest))
        elif kind == "decision":
            decisions.append(Decision(*rest))
        elif kind == "session":
            name, units, confirmed, lost = rest
            asked = tuple(
                StoredSubscription(unit[0], decode_subscription(unit[1].encode()), *unit[2:])
                for unit in units
            )
            store.save_session(StoredSession(name, asked, confirmed, lost))
        elif kind == "backlog":
            backlog.append(BacklogRow(rest[0], rest[1], tuple(rest[2])))
        elif kind == "spool":
            spool.append(rest[0])
        elif kind == "mark":
            marks[rest[0]] = rest[1]
        elif kind == "end":
            ends.append(line)
        else:
            raise ValueError(f"unknown line {kind!r}")
    batch = Batch(
        entries, None, decisions, inners=inners, spool=spool, backlog=backlog, marks=marks
    )
    return batch, ends


def _whole_backlog(store: Store, session: str) -> Iterable[Waiting]:
    after = 0
    while rows := store.backlog(session, after):
        yield from rows
        after = rows[-1].entry.seq


def _whole_spool(store: Store) -> Iterable[LogEntry]:
    after = 0
    while entries := store.spooled(after):
        yield from entries
        after = entries[-1].seq


def _open(path: Path, named: Path, mode: str) -> IO[str]:
    if named.suffix == ".gz":
        return cast(IO[str], gzip.open(path, mode, encoding="utf-8"))
    return cast(IO[str], open(path, mode[0], encoding="utf-8"))
