"""Plays a dialogue from a data file over real sockets against a broker in this process.

A dialogue is a list of steps, each a mapping with one key:

    listen: h                 a legacy handler of the test; $h is its URL. ``{h: senp}`` for one
                              packet a connection, ``{h: refusing}`` greets with 0
    connect: c                a ka connection, greeted with 1
    refused: c                a ka connection, greeted with 0
    session: {c: name}        connect, say HLO as ``name`` and take the answer
    send: {c: packet(s)}      several packets of a list leave in one piece
    bytes: {c: "hex"}         raw bytes, framing and all
    post: packet              one connection to the senp port, closed after the packet
    expect: {c: packet(s)}    the next packets of a connection or handler, in order
    ended: c                  the broker closes the connection and says nothing more before
    hangup: c                 this end closes; for a handler: it closes what is open
    close: h                  the handler listens no more
    until: {what: n}          wait until a counter of the broker has that value

In packets ``$name`` is a handler's URL, ``$long(n)`` n letters. In what is expected
``<any>`` stands for anything, ``<int>`` for digits, ``<uid>`` for a UUID of version 7.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

from kbn.server.run import Broker
from senp import ACCEPTED, REFUSED
from tests.sockets import LOOPBACK, Handler, Raw, port_of, running, soon, until

_WILD = {
    "any": ".*?",
    "int": "[0-9]+",
    "uid": "[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
}
_PLACEHOLDER = re.compile("<(any|int|uid)>")


def fits(pattern: str, packet: str) -> bool:
    """Whether a packet is what a dialogue expects."""
    parts = _PLACEHOLDER.split(pattern)
    expression = "".join(_WILD[p] if i % 2 else re.escape(p) for i, p in enumerate(parts))
    return re.fullmatch(expression, packet, re.DOTALL) is not None


class Player:
    """The state of one dialogue: who is connected, who listens."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.peers: dict[str, Raw] = {}
        self.handlers: dict[str, Handler] = {}

    async def play(self, steps: list[dict[str, Any]]) -> None:
        try:
            for number, step in enumerate(steps, 1):
                ((verb, what),) = step.items()
                try:
                    await getattr(self, f"do_{verb}")(what)
                except AssertionError as error:
                    raise AssertionError(f"step {number}, {verb} {what!r}: {error}") from None
        finally:
            for peer in self.peers.values():
                await peer.close()
            for handler in self.handlers.values():
                await handler.close()

    # --- coming and going ------------------------------------------------------------

    async def do_listen(self, said: str | dict[str, str]) -> None:
        for name, kind in (said if isinstance(said, dict) else {said: "ka"}).items():
            transport = "senp" if kind == "senp" else "ka"
            greeting = REFUSED if kind == "refusing" else ACCEPTED
            self.handlers[name] = await Handler(transport, greeting).open()

    async def do_connect(self, name: str) -> None:
        self.peers[name] = await Raw.open(port_of(self.broker))

    async def do_refused(self, name: str) -> None:
        reader, writer = await asyncio.open_connection(LOOPBACK, port_of(self.broker))
        self.peers[name] = Raw(reader, writer)
        assert await soon(reader.readexactly(1), "the greeting byte") == REFUSED

    async def do_session(self, said: dict[str, str]) -> None:
        for name, called in said.items():
            self.peers[name] = await Raw.session(port_of(self.broker), called)

    async def do_hangup(self, name: str) -> None:
        if name in self.handlers:
            self.handlers[name].hang_up()
        else:
            await self.peers[name].close()

    async def do_close(self, name: str) -> None:
        await self.handlers[name].close()

    async def do_ended(self, name: str) -> None:
        assert await self.peers[name].ended() == []

    # --- what is said ------------------------------------------------------------------

    def filled(self, packet: str) -> str:
        for name, handler in self.handlers.items():
            packet = packet.replace(f"${name}", handler.url)
        return re.sub(r"\$long\((\d+)\)", lambda m: "x" * int(m[1]), packet)

    async def do_send(self, said: dict[str, Any]) -> None:
        for name, packets in said.items():
            many = packets if isinstance(packets, list) else [packets]
            await self.peers[name].send(*map(self.filled, many))

    async def do_bytes(self, said: dict[str, str]) -> None:
        for name, digits in said.items():
            self.peers[name].writer.write(bytes.fromhex(digits))
            await self.peers[name].writer.drain()

    async def do_post(self, packet: str) -> None:
        _, writer = await asyncio.open_connection(LOOPBACK, port_of(self.broker, "senp"))
        writer.write(self.filled(packet).encode("latin-1"))
        writer.close()
        await writer.wait_closed()

    async def do_expect(self, said: dict[str, Any]) -> None:
        for name, patterns in said.items():
            source = self.handlers.get(name) or self.peers[name]
            for pattern in patterns if isinstance(patterns, list) else [patterns]:
                packet = await source.receive()
                wanted = self.filled(pattern)
                assert fits(wanted, packet), f"{name} heard\n  {packet}\nand not\n  {wanted}"

    # --- what is true --------------------------------------------------------------------

    def counted(self, what: str) -> int:
        core = self.broker.state.core
        if what in ("subscriptions", "subscribers", "handlers", "advertisements", "links"):
            held = {
                "subscriptions": core.table,
                "subscribers": core.table.subscribers,
                "handlers": core.handlers,
                "advertisements": core.advertisements,
                "links": core.links,
            }
            return len(held[what])
        if what.startswith("dropped."):
            return core.accounts.dropped[what.removeprefix("dropped.")]
        if what.startswith("errors."):
            return core.accounts.errors[what.removeprefix("errors.")]
        return int(getattr(core.accounts, what))

    async def do_until(self, said: dict[str, int]) -> None:
        for what, wanted in said.items():
            await until(
                lambda what=what, wanted=wanted: self.counted(what) == wanted,  # type: ignore[misc]
                f"{what} is {wanted} (it is {self.counted(what)})",
            )


async def play(dialogue: dict[str, Any]) -> None:
    """Run one dialogue against a broker of its own; the broker's books must balance after."""
    listen = (f"ka://{LOOPBACK}:0", f"senp://{LOOPBACK}:0")
    async with running(listen=listen, **dialogue.get("config", {})) as broker:
        await Player(broker).play(dialogue["steps"])
