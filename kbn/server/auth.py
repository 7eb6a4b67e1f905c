"""Who may do what: principals from the configuration, and the check of their secrets.

Secrets may stand in the configuration as hashes (``kbn hash``). Comparing takes
the same time whether a name exists or not.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kbn.broker.settings import ANYBODY, Principal
from kbn.errors import KbnError, RefusedError
from kbn.language import parse_subscription
from kbn.model import Subscription

if TYPE_CHECKING:
    from kbn.broker.instructions import Authenticate
    from kbn.server.config import PrincipalConfig

#: Whoever comes without credentials, if the configuration has a principal of this name.
ANONYMOUS = "anonymous"
_COST, _BLOCK, _PARALLEL = 2**14, 8, 1


def hash_password(password: str, salt: bytes | None = None) -> str:
    """``scrypt$salt$hash``, to be put into the configuration."""
    salt = salt or secrets.token_bytes(16)
    return f"scrypt${salt.hex()}${_scrypt(password, salt).hex()}"


def hash_token(token: str) -> str:
    """``sha256$hash``; a token is long and random, so it needs no salt."""
    return "sha256$" + hashlib.sha256(token.encode()).hexdigest()


def _scrypt(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, n=_COST, r=_BLOCK, p=_PARALLEL)


class Registry:
    """The principals of one broker."""

    def __init__(self, configured: Iterable[PrincipalConfig]) -> None:
        self.principals: dict[str, Principal] = {}
        self._tokens: dict[str, Principal] = {}
        self._passwords: dict[str, str] = {}
        for said in configured:
            principal = Principal(
                said.name,
                publish=_filter(said.publish, said.name),
                subscribe=_filter(said.subscribe, said.name),
                may_publish=said.may_publish,
                may_subscribe=said.may_subscribe,
                admin=said.admin,
            )
            if said.name in self.principals:
                raise RefusedError("syntax", f"principal '{said.name}' is configured twice")
            self.principals[said.name] = principal
            _check_hash(said.token, "token", "sha256$", said.name)
            _check_hash(said.password, "password", "scrypt$", said.name)
            if said.token is not None:
                self._tokens[_hashed(said.token)] = principal
            if said.password is not None:
                self._passwords[said.name] = said.password
        self._nobody = hash_password(secrets.token_hex(8))

    @property
    def anonymous(self) -> Principal:
        """The principal of peers without credentials."""
        return self.principals.get(ANONYMOUS, ANYBODY)

    @property
    def required(self) -> bool:
        """Whether peers must say who they are."""
        return bool(self.principals) and ANONYMOUS not in self.principals

    @property
    def asks(self) -> str | None:
        """``token``, or ``user`` where nobody has a token; None if peers need not say."""
        if not self.required:
            return None
        return "token" if self._tokens or not self._passwords else "user"

    def verify(self, asked: Authenticate) -> Principal | None:
        """The principal these credentials belong to, or None."""
        if asked.token is not None:
            return self._tokens.get(hash_token(asked.token))
        name = asked.user or ""
        known = self._passwords.get(name, self._nobody)
        right = _password_fits(asked.password or "", known)
        return self.principals.get(name) if right and name in self._passwords else None


def _check_hash(secret: str | None, kind: str, mark: str, name: str) -> None:
    """A hash with something before it was pasted wrongly: it would be taken for a secret."""
    if secret is not None and mark in secret and not secret.startswith(mark):
        raise RefusedError(
            "syntax",
            f"the {kind} of principal '{name}' holds {mark} but does not begin with it:"
            " leave out what stands before the hash",
        )


def _hashed(token: str) -> str:
    return token if token.startswith("sha256$") else hash_token(token)


def _password_fits(given: str, known: str) -> bool:
    parts = known.split("$")
    if len(parts) == 3 and parts[0] == "scrypt":
        try:
            salt, wanted = bytes.fromhex(parts[1]), bytes.fromhex(parts[2])
        except ValueError:
            return False
        return hmac.compare_digest(_scrypt(given, salt), wanted)
    return hmac.compare_digest(given.encode(), known.encode())


def _filter(text: str | None, name: str) -> Subscription | None:
    if text is None:
        return None
    try:
        return parse_subscription(text)
    except KbnError as error:
        raise RefusedError("syntax", f"the filter of principal '{name}': {error}") from None
