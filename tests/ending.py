"""Children that end at a step chosen by chance, without a word, as by ``kill -9``."""

from __future__ import annotations

import json
import os
import random
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

#: Makes a function count as a step; ``after``: the end may come when it is done.
Ends = Callable[..., Any]


def after_steps(count: int) -> Ends:
    """From now on every step counts, and the last one is not taken."""
    left = [count]

    def ends(function: Callable[..., Any], after: bool = False) -> Callable[..., Any]:
        def step(*arguments: Any, **options: Any) -> Any:
            left[0] -= 1
            if left[0] < 0 and not after:
                os._exit(9)
            made = function(*arguments, **options)
            if left[0] < 0:
                os._exit(9)
            return made

        return step

    return ends


def lives(life: Callable[[int, int | None], None], kills: int, seed: str, most: int) -> None:
    """So many children that end, each before ``most`` steps, and one that ends well (its
    count is None); prints how often each exit code came. Forked, so that none pays for
    the imports."""
    draw = random.Random(seed)
    codes: Counter[int] = Counter()
    for number in range(kills + 1):
        count = draw.randrange(most) if number < kills else None
        child = os.fork()
        if child == 0:
            try:
                life(number, count)
            except BaseException as error:
                sys.stderr.write(f"{number}: {error!r}\n")
                os._exit(1)
            os._exit(0)
        codes[os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])] += 1
    sys.stdout.write(json.dumps({str(code): times for code, times in codes.items()}))
