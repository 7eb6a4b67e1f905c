"""A program that turns its own level up while something is wrong: a line for any logger.

    follow(logging.getLogger("shop"), "ka://127.0.0.1:1969", calm=10)

The pattern may come from whoever logs to the broker: one service under attack can make
all of them talk.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Unpack

import kbn
from case_studies.dynamic_logging.controller import pattern
from kbn.client.options import DEFAULT_URL, Told

#: Seconds without the pattern until it is quiet again.
CALM = 10.0


def follow(
    logger: logging.Logger,
    url: str = DEFAULT_URL,
    calm: float = CALM,
    *,
    quiet: int = logging.WARNING,
    loud: int = logging.INFO,
    asked: str | None = None,
    **told: Unpack[Told],
) -> Callable[[], None]:
    """Set the logger's level to ``loud`` when ``asked`` comes, and to ``quiet`` after calm.

    In a daemon thread; returns what ends it. The first connection must succeed, later ones
    are made again.
    """
    client = kbn.connect_sync(url, **told).open()
    try:
        stream = client.subscribe(asked or pattern())
    except BaseException:
        client.close()
        raise
    logger.setLevel(quiet)

    def work() -> None:
        try:
            while True:
                try:
                    stream.get(timeout=calm)
                    logger.setLevel(loud)
                except TimeoutError:
                    logger.setLevel(quiet)
        except kbn.KbnError:
            logger.setLevel(quiet)  # it was ended

    thread = threading.Thread(target=work, name="kbn-level", daemon=True)
    thread.start()

    def stop() -> None:
        client.close()
        thread.join()

    return stop
