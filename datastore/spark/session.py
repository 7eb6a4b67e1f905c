"""The one place where a Spark session is made: in this process, on a cluster, or remote.

    local[*]              Spark in this process, on all cores (the default)
    spark://host:7077     a cluster's master
    sc://host:15002       Spark Connect

No environment variable is needed. The Delta jars are resolved by Spark itself at the
first start and taken from its cache afterwards: five of them, since Spark has the rest.
What the JVM says goes to a file that is shown only when the session cannot be made.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kbn.errors import UnsupportedError

LOCAL = "local[*]"
#: Where our own packages lie: the workers import them, too.
_ROOT = Path(__file__).parent.parent.parent
_PACKAGES = ("kbn", "senp", "datastore")
_SCALA = "2.13"
_JARS = ("spark_" + _SCALA, "storage", "kernel-api", "kernel-defaults", "kernel-unitycatalog")
#: What Delta names and Spark has already.
_EXCLUDED = (
    "com.fasterxml.jackson.core",
    "com.fasterxml.jackson.datatype",
    "com.fasterxml.jackson.module",
    "com.github.luben",
    "com.google.code.findbugs",
    "commons-logging",
    "commons-pool",
    "io.airlift",
    "io.unitycatalog",
    "javax.annotation",
    "org.apache.hadoop",
    "org.apache.logging.log4j",
    "org.apache.parquet",
    "org.locationtech.jts",
    "org.roaringbitmap",
    "org.slf4j",
    "org.xerial.snappy",
)
_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",
}
_COMMON = {
    "spark.sql.session.timeZone": "UTC",
    # Interval joins: a small side is hashed rather than both sorted (a third less at 1M rows).
    "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "64m",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
    # Where in Python each column was made costs more than making it.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def make_session(
    master: str = LOCAL,
    *,
    memory: str = "2g",
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session, or the one that this process has already.

    ``memory`` is the driver's and counts only when it starts. Raises ``UnsupportedError``
    that says what is missing: Java, the jars, or an answer from the cluster.
    """
    if master.startswith("sc://"):
        return _remote(master)
    _check_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("kbn")
    chosen = {
        **_COMMON,
        **_delta_settings(),
        **_placed(master),
        "spark.driver.memory": memory,
        "spark.pyspark.python": os.environ["PYSPARK_PYTHON"],
        **(settings or {}),
    }
    for name, value in chosen.items():
        builder = builder.config(name, value)
    with _hushed() as said:
        try:
            made = builder.getOrCreate()
        except (PySparkException, RuntimeError, OSError) as error:
            raise UnsupportedError(_why(master, error, said)) from error
        except Exception as error:
            # Errors of the JVM have a class of their own in the bridge to it.
            if type(error).__module__.startswith("py4j"):
                raise UnsupportedError(_why(master, error, said)) from error
            raise
    if not master.startswith("local"):
        made.addArtifacts(_packed(), pyfile=True)
    return made


def delta_jars() -> list[Path]:
    """The jars in Spark's cache, all five or none."""
    cache = Path.home() / ".ivy2.5.2" / "jars"
    found = [cache / f"io.delta_delta-{jar}-{_delta_version()}.jar" for jar in _JARS]
    return found if all(jar.exists() for jar in found) else []


def _remote(url: str) -> SparkSession:
    try:
        made = SparkSession.builder.remote(url).getOrCreate()
        made.addArtifacts(_packed(), pyfile=True)
    except ImportError as error:
        raise UnsupportedError(
            f"Spark Connect needs packages of its own: pip install 'pyspark[connect]' ({error})"
        ) from error
    except PySparkException as error:
        raise UnsupportedError(f"no Spark Connect server answers at {url}: {error}") from error
    return made


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").exists():
        return
    if shutil.which("java") is None:
        raise UnsupportedError(
            "Spark needs Java 17 or later, and there is no `java` on the PATH and no JAVA_HOME:"
            " install a JRE, such as openjdk-17-jre-headless"
        )


def _delta_version() -> str:
    try:
        return version("delta-spark")
    except PackageNotFoundError as missing:
        raise UnsupportedError(
            "the Delta jars belong to an extra that is not installed: pip install 'kbn[spark]'"
        ) from missing


def _delta_settings() -> dict[str, str]:
    jars = delta_jars()
    if jars:
        return {**_DELTA, "spark.jars": ",".join(map(str, jars))}
    return {
        **_DELTA,
        "spark.jars.packages": f"io.delta:delta-spark_{_SCALA}:{_delta_version()}",
        "spark.jars.excludes": ",".join(f"{group}:*" for group in _EXCLUDED),
    }


def _placed(master: str) -> dict[str, str]:
    """What depends on where the work is done."""
    if master.startswith("local"):
        cores = os.cpu_count() or 2
        here = {"spark.sql.shuffle.partitions": str(max(2, min(cores, 16)))}
    else:
        # For machines that share this file system; others get the packed copy.
        here = {"spark.executorEnv.PYTHONPATH": str(_ROOT)}
        if "127.0.0.1" not in master and "localhost" not in master:
            return here
    # Names of this machine need not resolve, and nobody else is meant to reach the driver.
    return {**here, "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}


@contextmanager
def _hushed() -> Iterator[Path]:
    """While the JVM starts, what it says goes to a file, and our packages to its workers."""
    number, name = tempfile.mkstemp(prefix="kbn-spark-", suffix=".log")
    said = Path(name)
    atexit.register(said.unlink, missing_ok=True)
    held = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(_ROOT), *([held] if held else [])])
    sys.stderr.flush()
    before = os.dup(2)
    os.dup2(number, 2)
    try:
        yield said
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(number)
        if held is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = held


def _why(master: str, error: Exception, said: Path) -> str:
    log = said.read_text("utf-8", "replace")
    if "unresolved dependency" in log or "UNRESOLVED DEPENDENCIES" in log:
        return (
            "the Delta jars are not in the cache and cannot be fetched: start once with a network"
            " (behind a mirror set DEFAULT_ARTIFACT_REPOSITORY), or name them in spark.jars"
        )
    told = "\n".join(log.strip().splitlines()[-8:])
    return f"no Spark session at {master}: {str(error).splitlines()[0]}\n{told}".rstrip()


def _packed() -> str:
    """Our packages in one file, for machines that do not have them."""
    folder = Path(tempfile.mkdtemp(prefix="kbn-spark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    packed = folder / "kbn-packages.zip"
    with zipfile.ZipFile(packed, "w") as held:
        for package in _PACKAGES:
            for path in sorted((_ROOT / package).rglob("*")):
                if path.suffix in (".py", ".lark", ".mako"):
                    held.write(path, path.relative_to(_ROOT))
    return str(packed)
