"""A small web service with a login, on loopback. It knows ``logging`` and nothing of brokers."""

from __future__ import annotations

import logging
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import HTTPError

from case_studies.dynamic_logging.script import USERS, Step

log = logging.getLogger("webshop")


class Desk(BaseHTTPRequestHandler):
    """``GET /``, ``GET /report`` (whose disk is full) and ``POST /login``."""

    def do_GET(self) -> None:
        about = {"client": self._client(), "category": "visit"}
        log.debug("headers of %s: %d", self.path, len(self.headers), extra=about)
        if self.path == "/report":
            log.info("a report was asked for from %s", about["client"], extra=about)
            log.error("report not written: disk full", extra={**about, "category": "storage"})
            self._answer(500, "no report today\n")
        else:
            log.info("GET %s from %s", self.path, about["client"], extra=about)
            self._answer(200, "welcome\n")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        form = {name: values[0] for name, values in urllib.parse.parse_qs(body).items()}
        user, about = form.get("user", ""), {"client": self._client()}
        # Never the password: logs are read by more people than may log in.
        log.info(
            "login of '%s' tried from %s", user, about["client"],
            extra={**about, "category": "login_tried", "user": user},
        )  # fmt: skip
        if user in USERS and USERS[user] == form.get("password"):
            log.info("'%s' came in", user, extra={**about, "category": "login", "user": user})
            self._answer(200, "come in\n")
        else:
            log.warning(
                "login of '%s' failed", user,
                extra={**about, "category": "login_failed", "user": user},
            )  # fmt: skip
            self._answer(401, "no\n")

    def _client(self) -> str:
        """Where the request says it came from: here all of them come from loopback."""
        return self.headers.get("X-Forwarded-For", self.client_address[0])

    def _answer(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        """The base class would write to standard error."""


@contextmanager
def serving() -> Iterator[str]:
    """The service on a free port as long as the block lasts; gives its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Desk)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="webshop")
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def perform(base: str, step: Step) -> int:
    """Make a step's request; returns the status."""
    data = None
    if step.do == "login":
        data = urllib.parse.urlencode({"user": step.user, "password": step.password}).encode()
    path = {"visit": "/", "report": "/report", "login": "/login"}[step.do]
    request = urllib.request.Request(base + path, data, {"X-Forwarded-For": step.origin})
    # No proxy of the environment may come between a program and its own loopback.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=30) as answer:
            return int(answer.status)
    except HTTPError as error:
        with error:
            return error.code
