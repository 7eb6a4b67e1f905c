"""Commands that run beside the others while a page is read."""

from __future__ import annotations

import signal
import subprocess
import threading

from tests.sockets import DEADLINE

#: Seconds for a block of verbs and programs, and for a listener: nothing is measured by them.
PATIENCE = 10 * DEADLINE


class Listener:
    """A command that runs beside the others, until it has heard enough or Ctrl-C."""

    def __init__(self, process: subprocess.Popen[str], line: str) -> None:
        self.process, self.line = process, line

    def heard(self, lines: int) -> str:
        """What it printed: all of it if it ends by itself, else so many lines and Ctrl-C."""
        giving_up = threading.Timer(PATIENCE, self.process.kill)
        giving_up.start()
        try:
            if "--count" in self.line:
                said, complained = self.process.communicate()
                assert self.process.returncode == 0, complained
                return said
            assert self.process.stdout is not None
            said = "".join(self.process.stdout.readline() for _ in range(lines))
            self.end()
            return said
        finally:
            giving_up.cancel()

    def end(self) -> None:
        """Ctrl-C, if it still runs."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            _, complained = self.process.communicate(timeout=PATIENCE)
            assert self.process.returncode == 130, f"{self.line}: {complained}"
