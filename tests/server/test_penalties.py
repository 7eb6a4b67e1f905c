"""Nonsense takes a share of the loop that does not grow with the number of connections."""

from __future__ import annotations

import pytest

from kbn.server.penalties import PENALTY, Penalties
from tests.sockets import Raw, over_sockets, port_of, running, until


@pytest.mark.parametrize("connections", [1, 10, 300])
def test_the_nonsense_of_one_host_takes_a_bounded_share_over_many_connections(
    connections: int,
) -> None:
    penalties = Penalties()
    # Each sends again as soon as it is read from: the loop does nothing else meanwhile.
    until_when = [0.0] * connections
    now = busy = 0.0
    waiting: set[int] = set()
    for _ in range(20 * connections):
        which = min(range(connections), key=until_when.__getitem__)
        now = max(now, until_when[which])
        if which in waiting:
            penalties.end("a")
        waiting.add(which)
        busy += 0.001
        now += 0.001
        until_when[which] = now + penalties.begin("a", 0.001)
    assert busy / max(now, *until_when) < 1.5 / PENALTY


def test_hosts_share_nothing_and_are_forgotten() -> None:
    penalties = Penalties()
    assert [penalties.begin("a", 1.0) for _ in range(3)] == [PENALTY, 2 * PENALTY, 3 * PENALTY]
    assert penalties.begin("b", 1.0) == PENALTY
    for _ in range(3):
        penalties.end("a")
    assert penalties.begin("a", 1.0) == PENALTY


@over_sockets
async def test_penalties_end_with_their_time_or_their_connection() -> None:
    async with running() as broker:
        peers = [await Raw.open(port_of(broker)) for _ in range(5)]
        for peer in peers:
            peer.writer.write(b"\x00\x05garba" * 200)
        accounts = broker.state.core.accounts
        await until(lambda: accounts.malformed_legacy == 1_000, "every packet was looked at")
        for peer in peers[:3]:
            await peer.close()
        penalties = broker.shell.penalties
        await until(lambda: not penalties._waiting, "nobody waits any more")
        for peer in peers[3:]:
            await peer.close()
