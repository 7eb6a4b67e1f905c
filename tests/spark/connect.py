"""A Spark Connect server on loopback, from the installed pyspark, with the Delta jars."""

from __future__ import annotations

import signal
from pathlib import Path

from datastore.spark.session import delta_settings, ivy_of
from tests.spark.cluster import Daemon, free_port

_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"


class ConnectServer:
    """Up when it is made; ``stop`` ends what it started and nothing else."""

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.url = f"sc://127.0.0.1:{port}"
        settings = {
            **delta_settings(ivy_of(None)),
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(port),
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.master": "local[2]",
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.enabled": "false",
        }
        said = [f"--conf={name}={value}" for name, value in settings.items()]
        said += [f"--class={_CLASS}", "spark-internal"]
        self._daemon = Daemon(folder, "SparkSubmit", *said, memory="1g")
        try:
            self._daemon.says("Spark Connect server started")
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        self._daemon.end(signal.SIGTERM)
