"""The one place where a Spark session is made: in this process, on a cluster, or remote.

    local[*]              Spark in this process, on all cores (the default)
    spark://host:7077     a cluster's master
    sc://host:15002       Spark Connect

No environment variable is needed. The Delta jars are resolved by Spark itself at the
first start and taken from its cache afterwards: five of them, since Spark has the rest.
What the JVM says goes to a file that is shown only when the session cannot be made.
Whether anybody listens at a cluster's or a server's address is looked at first: Spark
itself would try for minutes.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import socket
import subprocess
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
#: How long somebody who listens may take to speak, in seconds.
_PATIENCE = 10
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
    if master.startswith("spark://"):
        _check_listening(master, 7077, "no cluster answers")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("kbn")
    chosen = {
        **_COMMON,
        **delta_settings(ivy_of(settings)),
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


def ivy_of(settings: Mapping[str, str] | None) -> Path:
    """Where Spark keeps what it fetched."""
    return Path((settings or {}).get("spark.jars.ivy", Path.home() / ".ivy2.5.2"))


def delta_jars(ivy: Path) -> list[Path]:
    """The jars in Spark's cache, all five or none."""
    found = [ivy / "jars" / f"io.delta_delta-{jar}-{_delta_version()}.jar" for jar in _JARS]
    return found if all(jar.exists() for jar in found) else []


def _remote(url: str) -> SparkSession:
    _check_listening(url, 15002, "no Spark Connect server answers")
    try:
        _check_speaking(url)
        made = SparkSession.builder.remote(url).getOrCreate()
        made.addArtifacts(_packed(), pyfile=True)
    except ImportError as error:
        raise UnsupportedError(
            f"Spark Connect needs packages of its own: pip install 'kbn[connect]' ({error})"
        ) from error
    except PySparkException as error:
        said = str(error).strip().splitlines()[0]
        raise UnsupportedError(f"no Spark Connect server answers at {url}: {said}") from error
    return made


def _check_listening(url: str, usual: int, otherwise: str) -> None:
    """Raise if nobody accepts a connection at any of the addresses of a URL."""
    _, _, rest = url.partition("://")
    why: OSError | ValueError | None = None
    for place in re.split("[/;?]", rest)[0].split(","):
        host, colon, port = place.rpartition(":")
        try:
            number = int(port) if colon else usual
            with socket.create_connection(
                ((host if colon else place).strip("[]"), number), _PATIENCE
            ):
                return
        except (OSError, ValueError) as error:
            why = error
    said = (why.strerror if isinstance(why, OSError) else None) or str(why)
    raise UnsupportedError(f"{otherwise} at {url}: {said}")


def _check_speaking(url: str) -> None:
    """Raise if what listens there does not speak as a Connect server does. Over TLS it is left
    to Spark, which knows the certificates."""
    import grpc  # noqa: PLC0415 - an extra

    if "use_ssl=true" in url or "token=" in url:
        return
    place = re.split("[/;?]", url.removeprefix("sc://"))[0]
    with grpc.insecure_channel(place if ":" in place else f"{place}:15002") as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=_PATIENCE)
        except grpc.FutureTimeoutError:
            raise UnsupportedError(
                f"no Spark Connect server answers at {url}: what listens there is another"
            ) from None


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if home:
        # Spark looks nowhere else then.
        if shutil.which(str(Path(home) / "bin" / "java")) is None:
            raise UnsupportedError(
                f"Spark needs Java 17 or later, and JAVA_HOME is {home}, where there is no"
                " bin/java: set it to a Java's folder, or not at all"
            )
    elif shutil.which("java") is None:
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


def delta_settings(ivy: Path) -> dict[str, str]:
    """What a session needs to read Delta: from the cache, or to be fetched."""
    jars = delta_jars(ivy)
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
    sys.stdout.flush()
    sys.stderr.flush()
    # The JVM keeps what it was started with: it never writes between our answers.
    before = {ours: os.dup(ours) for ours in (1, 2)}
    for ours in before:
        os.dup2(number, ours)
    try:
        yield said
    finally:
        for ours, kept in before.items():
            os.dup2(kept, ours)
            os.close(kept)
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
    if "UnsupportedClassVersionError" in log or "Unrecognized VM option" in log:
        return f"Spark needs Java 17 or later, and this is {_java_version()}: install a newer one"
    if "All masters are unresponsive" in log:
        return f"no cluster answers at {master}: what listens there is no Spark master"
    told = "\n".join(log.strip().splitlines()[-8:])
    first = (str(error).strip() or type(error).__name__).splitlines()[0]
    return f"no Spark session at {master}: {first}\n{told}".rstrip()


def _java_version() -> str:
    """What the Java that Spark takes says of itself."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else "java"
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    except OSError as error:
        return f"one that does not start ({error.strerror})"
    said = (done.stderr + done.stdout).strip().splitlines()
    return said[0] if said else "one that does not say its version"


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
