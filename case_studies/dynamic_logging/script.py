"""What visitors do to the web service, and when: made from a seed, or read from a file.

A file has one JSON object a line, ``{"at": 1500, "do": "login", "user": "admin",
"password": "guess", "from": "203.0.113.7"}``: milliseconds from the beginning, and what
is done: ``visit``, ``login`` or ``report`` (which fails, an error).
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

#: Who may come in. Nothing here guards anything.
USERS = {"admin": "correct horse", "backup": "battery", "guest": "staple"}
_GUESSES = ("123456", "password", "letmein", "qwerty", "dragon", "master", "monkey", "shadow")
#: Addresses for documentation, which nobody has.
_ATTACKERS, _VISITORS = "203.0.113", "192.0.2"


@dataclass(frozen=True, slots=True)
class Step:
    """One request, so many milliseconds after the beginning."""

    at: int
    do: str
    origin: str
    user: str = ""
    password: str = ""

    @property
    def fails(self) -> bool:
        """Whether this is a login that is refused."""
        return self.do == "login" and USERS.get(self.user) != self.password


def made(seed: int) -> list[Step]:
    """Typing errors that mean nothing, an attack, and calm after it; 40 told seconds.

    The seed moves requests by less than what would change the story.
    """
    chance = random.Random(seed)
    home = [f"{_VISITORS}.{chance.randrange(1, 255)}" for _ in range(4)]
    attacker = f"{_ATTACKERS}.{chance.randrange(1, 255)}"

    def near(second: float) -> int:
        return int(second * 1000) + chance.randrange(-100, 101)

    def visitor(second: float, do: str, user: str = "", password: str = "") -> Step:
        return Step(near(second), do, chance.choice(home), user, password)

    def right(second: float) -> Step:
        user = chance.choice(["backup", "guest"])
        return visitor(second, "login", user, USERS[user])

    def wrong(second: float) -> Step:
        return visitor(second, "login", chance.choice(["backup", "guest"]), "stapel")

    def guess(second: float) -> Step:
        return Step(near(second), "login", attacker, "admin", chance.choice(_GUESSES))

    steps = [visitor(at, "visit") for at in (0.3, 2.2, 4.1, 7.4, 16.1, 19.2, 31.0, 36.4)]
    steps += [right(at) for at in (0.9, 5.2, 12.2, 21.3, 34.1)]
    steps += [visitor(at, "report") for at in (1.6, 9.0, 32.2, 38.0)]
    # Two failures close together, then three that are too far apart.
    steps += [wrong(2.8), wrong(3.6), wrong(6.6), wrong(9.6), wrong(12.6)]
    # The attack: the third guess is the one that changes the level.
    steps += [guess(at) for at in (15.0, 16.5, 18.0)]
    steps += [guess(18.6 + 0.5 * n) for n in range(8)]
    steps.append(wrong(35.2))
    return sorted(steps, key=lambda step: step.at)


def read(path: Path) -> list[Step]:
    """A recorded script; raises ``ValueError`` that names the line."""
    return list(_steps(path.name, path.read_text(encoding="utf-8").splitlines()))


def _steps(name: str, lines: Iterable[str]) -> Iterable[Step]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            said = json.loads(line)
            at, do = int(said["at"]), str(said["do"])
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{name}, line {number}: {error!r}") from None
        if do not in ("visit", "login", "report"):
            raise ValueError(f"{name}, line {number}: nobody can '{do}' here")
        origin = str(said.get("from", "192.0.2.1"))
        yield Step(at, do, origin, str(said.get("user", "")), str(said.get("password", "")))
