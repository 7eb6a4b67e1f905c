"""A standalone cluster on loopback: one master, two workers, from the installed pyspark."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from queue import Queue

import pyspark

_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
#: Small processes: the time of the second compiler is never earned back.
_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_PATIENCE = 120


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


class Daemon:
    """A process of the cluster; what it says is kept, and can be waited for."""

    def __init__(self, folder: Path, what: str, *arguments: str, memory: str = "256m") -> None:
        self.process = subprocess.Popen(
            [str(_CLASS), f"org.apache.spark.deploy.{what}", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # Not in our folder: what the workers import of us must have been sent to them.
            cwd=folder,
            env={
                **{name: held for name, held in os.environ.items() if name != "PYTHONPATH"},
                "SPARK_DAEMON_MEMORY": memory,
                "SPARK_DAEMON_JAVA_OPTS": _QUICK,
                "PYSPARK_PYTHON": sys.executable,
            },
            start_new_session=True,
        )
        self._log = folder / f"{what}-{self.process.pid}.log"
        self._lines: Queue[str] = Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with self._log.open("w") as log:
            for line in self.process.stdout:
                log.write(line)
                self._lines.put(line)
        self._lines.put("")

    def says(self, text: str) -> None:
        """Wait until it says so. Raises if it ends instead, or says nothing for long."""
        while True:
            line = self._lines.get(timeout=_PATIENCE)
            if text in line:
                return
            assert line, f"it ended: {self._log.read_text()}"

    def end(self, how: int) -> None:
        """The process and the executors it started: they share its group."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, how)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.process.stdout.close()


class Cluster:
    """Up when it is made; ``stop`` ends what it started and nothing else."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        port = free_port()
        self.url = f"spark://127.0.0.1:{port}"
        at = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
        self.daemons = [Daemon(folder, "master.Master", *at)]
        try:
            self.daemons[0].says("elected leader")
            for number in range(workers):
                with_ = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g"]
                with_ += ["--webui-port", "0", "--work-dir", str(folder / f"work-{number}")]
                self.daemons.append(Daemon(folder, "worker.Worker", *with_, self.url))
            for worker in self.daemons[1:]:
                worker.says("Successfully registered")
        except BaseException:
            self.stop()
            raise

    def kill_a_worker(self) -> None:
        self.daemons.pop().end(signal.SIGKILL)

    def stop(self) -> None:
        while self.daemons:
            self.daemons.pop().end(signal.SIGTERM)
