"""Somebody who reads a page and types what it says, with a clone, a shell and a broker."""

from __future__ import annotations

import ast
import asyncio
import inspect
import io
import itertools
import logging
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kbn
from tests.commands import commands_in, on_spark
from tests.listeners import PATIENCE, Listener
from tests.pages import Block
from tests.server.processes import ROOT, Served, environment, served

DEFAULT_URL = "ka://127.0.0.1:1969"
DEFAULT_HTTP = "http://127.0.0.1:1970"
#: A study waits as its story does, and Spark takes its time: the tests of both are elsewhere.
_STUDY = re.compile(r"^((?:\.venv/bin/)?python -m case_studies\.\w+(?=\s)[^#\n]*)", re.M)
#: What fails anywhere in a block fails the block; so does what says no, unless that is shown.
_STRICT = "set -o pipefail; trap 's=$?; if [ $s -gt %d ]; then exit $s; fi' ERR\n"
#: What a shell in the folder of a clone finds there.
_CLONE = ("case_studies", "ontologies", "tests")


@dataclass(frozen=True, slots=True)
class Said:
    """What a block came to."""

    code: int
    out: str
    error: str = ""


class Reader:
    """Somebody with a clone, a shell and a broker, who types what a page says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        #: Addresses as they are printed, and as they are here.
        self.addresses: dict[str, str] = {}
        self.listeners: list[Listener] = []
        self.names: dict[str, Any] = {"__name__": "a page"}
        self._brokers = ExitStack()
        self._own: Served | None = None
        self._others: list[Served] = []
        bin_dir = folder / ".venv" / "bin"
        bin_dir.mkdir(parents=True)
        _script(bin_dir / "kbn", f'exec "{sys.executable}" -m kbn "$@"')
        _script(bin_dir / "python", f'exec "{sys.executable}" "$@"')
        _script(bin_dir / "activate", f'PATH="{bin_dir}:$PATH"')
        for name in _CLONE:
            (folder / name).symlink_to(ROOT / name)
        self.environment = environment()
        self.environment["PATH"] = f"{bin_dir}:{self.environment['PATH']}"

    # --- brokers -------------------------------------------------------------------------

    def broker(self) -> str:
        """The address of the reader's broker, which is started when it is first needed."""
        if self._own is None:
            self._own = self._brokers.enter_context(served(self.folder, "--http", "127.0.0.1:0"))
            self._stands(self._own, DEFAULT_URL)
        return self.addresses[DEFAULT_URL]

    def serve(self, line: str) -> None:
        """``make run``, or ``kbn serve``; without its own folder, instead of the reader's."""
        if line == "make run":
            self.broker()
            return
        ((program, verb, *words),) = commands_in(line)
        assert (program, verb) == ("kbn", "serve"), f"this starts no broker: {line}"
        printed = words[words.index("--listen") + 1] if "--listen" in words else DEFAULT_URL
        here = [
            "ka://127.0.0.1:0" if before == "--listen" else self.here(word)
            for before, word in zip(["", *words], words, strict=False)
        ]
        if "--data-dir" in words:
            made = self._brokers.enter_context(served(self.folder, *here))
            self._others.append(made)
        else:
            self.end_broker()
            made = self._own = self._brokers.enter_context(served(self.folder, *here))
        self._stands(made, printed)

    def _stands(self, broker: Served, printed: str) -> None:
        self.addresses[printed] = broker.url
        found = re.search(r"(http://\S+)/metrics", broker.lines[2])
        if found is not None:
            self.addresses[DEFAULT_HTTP] = found[1]

    def standing(self) -> str:
        """What the broker printed, as it would with its own address and from ``make run``."""
        self.broker()
        assert self._own is not None
        said = "\n".join(self._own.lines)
        for printed, real in self.addresses.items():
            said = said.replace(f" --broker {real}", "").replace(real, printed)
        return re.sub(r"  kbn (?=sub|pub)", "  .venv/bin/kbn ", said)

    def end_broker(self) -> None:
        """Ctrl-C in the broker's terminal: it drains and says 0."""
        if self._own is not None:
            code, logged = self._own.end(signal.SIGINT)
            assert code == 0, logged
            self._own = None

    def here(self, text: str) -> str:
        """What is printed on a page, with the addresses of this run."""
        for printed, real in self.addresses.items():
            text = text.replace(printed, real)
        return text

    # --- typing --------------------------------------------------------------------------

    def run(self, text: str, *, alone: bool = False, shown: bool = False) -> Said:
        """Type a block; with a broker at hand unless it is wanted alone.

        What is shown may say no: exit code 1 is an answer then.
        """
        if alone:
            self.end_broker()
        else:
            self.environment["KBN_BROKER"] = self.broker()
        told = []
        for spark, part in _parts(text):
            told.append(self._in_process(part) if spark else self._typed(part, shown))
        error = "".join(said.error for said in told)
        return Said(told[-1].code, "".join(said.out for said in told), error)

    def _typed(self, text: str, shown: bool) -> Said:
        quick = _STUDY.sub(r"\1 --speed 0 --no-spark ", text)
        process = self._shell(_STRICT % shown + quick)
        said, complained = process.communicate(timeout=PATIENCE)
        return Said(process.returncode, said, complained)

    def _shell(self, text: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["bash", "-c", self.here(text)],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A reader's terminal does not ignore Ctrl-C, whatever the tests were started by.
            preexec_fn=_heed_interrupts,  # noqa: PLW1509  no lock is asked for there
        )

    def _in_process(self, text: str) -> Said:
        """Verbs by their functions; one session serves them all."""
        from typer.testing import CliRunner

        from kbn.cli.main import build

        code, out = 0, ""
        for _, *words in commands_in(text):
            result = CliRunner().invoke(build(words[0]), self._placed(words))
            if result.exception is not None and not isinstance(result.exception, SystemExit):
                raise result.exception
            code, out = result.exit_code, out + result.stdout
            assert code in (0, 1), f"{words}: {result.output}"
        return Said(code, out)

    def _placed(self, words: list[str]) -> list[str]:
        """With whole paths: a Java process that runs already stands in another folder."""
        here = [
            str(self.folder / word) if before == "--pairs" else self.here(word)
            for before, word in itertools.pairwise(["", *words])
        ]
        if {"--store", "--data-dir"} & set(words):
            return here
        return [*here, "--data-dir", str(self.folder / "kbn-data")]

    def listen(self, line: str) -> None:
        """Start a listener; returns when the broker holds its subscription."""
        self.environment["KBN_BROKER"] = self.broker()
        before = self._subscriptions()
        made = Listener(self._shell(f"exec {line}"), line)
        self.listeners.append(made)
        end = time.monotonic() + PATIENCE
        while self._subscriptions() == before:
            assert made.process.poll() is None, made.process.communicate()
            assert time.monotonic() < end, f"nobody subscribed: {line}"

    def _subscriptions(self) -> int:
        with kbn.connect_sync(self.broker()) as client:
            return len(client.subscriptions())

    def heard(self, expected: str) -> str:
        assert self.listeners, "nobody listens on this page"
        return self.listeners.pop(0).heard(expected.count("\n"))

    def execute(self, block: Block) -> Said:
        """A block of Python, with what the blocks before it defined."""
        text = self.here(block.text).replace("kbn-data/", f"{self.folder}/kbn-data/")
        if "kbn.connect" in text or block.title == "connected":
            url = self.names["url"] = self.broker()
            text = self.here(text).replace("connect_sync()", f"connect_sync({url!r})")
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        code = compile(text, block.place, "exec", flags=flags)

        async def work() -> None:
            if block.title == "connected":
                async with kbn.connect(self.broker()) as client:
                    self.names["c"] = client
                    await _result(eval(code, self.names))
            else:
                await _result(eval(code, self.names))

        out = io.StringIO()
        with redirect_stdout(out), _quiet_root():
            if block.title == "connected" or code.co_flags & inspect.CO_COROUTINE:
                asyncio.run(asyncio.wait_for(work(), PATIENCE))
            else:
                exec(code, self.names)
        return Said(0, out.getvalue())

    def leave(self) -> None:
        """End what still runs, each as a person would; it must end well."""
        try:
            for listener in self.listeners:
                listener.end()
            for broker in reversed(self._others):
                code, logged = broker.end(signal.SIGINT)
                assert code == 0, logged
            self.end_broker()
        finally:
            self.give_up()

    def give_up(self) -> None:
        """End what still runs, however it is."""
        for listener in self.listeners:
            if listener.process.poll() is None:
                listener.process.kill()
                listener.process.communicate()
        self._brokers.close()


def _parts(text: str) -> list[tuple[bool, str]]:
    """Lines that run on Spark, and what stands between them."""
    lines = text.splitlines(keepends=True)
    grouped = itertools.groupby(lines, lambda line: any(map(on_spark, commands_in(line))))
    return [(spark, "".join(part)) for spark, part in grouped]


async def _result(work: object) -> None:
    if inspect.isawaitable(work):
        await work


def _script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def _heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def _quiet_root() -> Iterator[None]:
    """Handlers and the level that a block gives to the root logger leave with it."""
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    try:
        yield
    finally:
        root.setLevel(level)
        for handler in set(root.handlers) - set(before):
            root.removeHandler(handler)
            handler.close()
