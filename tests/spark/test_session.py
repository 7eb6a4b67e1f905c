"""What is missing is said in one line, and soon: Java, the jars, the cluster, the server."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from datastore.sql.store import open_sqlite
from datastore.store import Batch
from tests.spark.conftest import JAVA
from tests.spark.test_cli import EVENTS

ROOT = Path(__file__).parent.parent.parent
needs_java = pytest.mark.skipif(not JAVA, reason="Spark needs Java, and there is none")


@pytest.fixture
def store(tmp_path):
    with open_sqlite(tmp_path / "history.db") as made:
        made.append(Batch(EVENTS))
    return f"sqlite:///{tmp_path / 'history.db'}"


def started(*command, **environment):
    """(exit code, standard output, standard error) of a Python with only this environment."""
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=ROOT,
        env={name: str(value) for name, value in environment.items()},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def refused(store, *more, **environment):
    """The one line that is said instead of an answer."""
    code, out, err = started("-m", "kbn", "scan", "a = 1", "--store", store, *more, **environment)
    assert (code, out) == (2, ""), err
    assert err.startswith("kbn: unsupported: ")
    assert len(err.splitlines()) == 1
    return err


def test_without_java_it_says_what_to_install(store, tmp_path):
    assert "no `java` on the PATH" in refused(store, PATH=tmp_path)
    assert "JAVA_HOME is" in refused(store, JAVA_HOME=tmp_path)


def test_a_java_that_is_too_old_is_named(store, tmp_path):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = -version ]; then echo \'openjdk version "11.0.2"\' >&2; exit; fi\n'
        "echo 'java.lang.UnsupportedClassVersionError: class file version 61.0' >&2\n"
        "exit 1\n"
    )
    java.chmod(0o755)
    said = refused(store, JAVA_HOME=tmp_path, PATH="/usr/bin:/bin")
    assert 'Spark needs Java 17 or later, and this is openjdk version "11.0.2"' in said


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("spark://127.0.0.1:1", "no cluster answers at spark://127.0.0.1:1"),
        ("spark://127.0.0.1:1,127.0.0.1:2", "no cluster answers"),
        ("spark://127.0.0.1:x", "no cluster answers"),
        ("sc://127.0.0.1:1/;user_id=me", "no Spark Connect server answers"),
    ],
)
@needs_java
def test_where_nobody_listens_it_gives_up_at_once(store, url, said):
    assert said in refused(store, "--spark", url, PATH="/usr/bin:/bin")


def test_a_listener_that_is_no_connect_server_is_not_waited_for(store):
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"sc://127.0.0.1:{mute.getsockname()[1]}"
        said = refused(store, "--spark", url, PATH="/usr/bin:/bin")
    assert f"no Spark Connect server answers at {url}: what listens there is another" in said


@needs_java
def test_without_the_jars_and_a_network_it_says_what_to_do(tmp_path):
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="none"/><resolvers><filesystem name="none">'
        f'<artifact pattern="{tmp_path}/nothing/[artifact].[ext]"/>'
        "</filesystem></resolvers></ivysettings>"
    )
    program = (
        "from datastore.spark.session import make_session\n"
        "from kbn.errors import UnsupportedError\n"
        f"held = {{'spark.jars.ivy': {str(tmp_path / 'ivy')!r},"
        f" 'spark.jars.ivySettings': {str(settings)!r}}}\n"
        "try:\n    make_session('local[1]', settings=held)\n"
        "except UnsupportedError as error:\n    print(error)\n"
    )
    code, out, err = started("-c", program, PATH="/usr/bin:/bin")
    assert (code, err) == (0, "")
    assert out.startswith("the Delta jars are not in the cache and cannot be fetched")
    assert len(out.splitlines()) == 1


@needs_java
@pytest.mark.xdist_group("spark")
def test_it_works_with_no_environment_variable_set(store):
    code, out, err = started(
        "-m", "kbn", "scan", "level > 1", "--store", store, "--json", "--spark", "local[1]"
    )
    assert code == 0, err
    assert len(out.splitlines()) == 3
    assert err == "3 events, of 6 numbers; 5 rows read\n"
