"""One session for the whole run; without Java these tests are left out, and say so."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest

from datastore.spark.session import make_session
from tests.datastore.conftest import postgres

__all__ = ["postgres"]

JAVA = shutil.which("java") is not None or bool(os.environ.get("JAVA_HOME"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            if not JAVA:
                item.add_marker(pytest.mark.skip(reason="Spark needs Java, and there is none"))
            # All on one worker: a session takes memory and seconds.
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    settings = {
        "spark.sql.shuffle.partitions": "2",
        # Small jobs: the time of the second compiler is never earned back.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    made = make_session("local[2]", memory="1g", settings=settings)
    yield made
    made.stop()
