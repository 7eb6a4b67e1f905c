"""Listening beyond this machine, and whom the broker calls for whom."""

from __future__ import annotations

import ipaddress

import pytest

from kbn.broker.addresses import handler_refusal, parse_address
from kbn.broker.instructions import Connect
from kbn.errors import RefusedError
from kbn.server.legacy import ForbiddenAddressError, resolve
from kbn.server.run import Broker
from tests.sockets import config, over_sockets, running

ELSEWHERE = "ka://0.0.0.0:0"


def test_listening_elsewhere_needs_principals_or_the_word_insecure() -> None:
    with pytest.raises(RefusedError, match="--insecure") as refused:
        Broker(config(listen=(ELSEWHERE,)))
    assert refused.value.code == "auth"
    with pytest.raises(RefusedError):
        Broker(config(listen=("ka://127.0.0.1:0", "senp://[::]:0")))
    Broker(config(listen=(ELSEWHERE,), insecure=True))
    Broker(config(listen=(ELSEWHERE,), principals=[{"name": "ann", "token": "t"}]))


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "10.0.0.1", "192.168.1.1", "172.16.0.1", "169.254.169.254",
     "::1", "fe80::1", "fd00::1", "::ffff:127.0.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255"],
)  # fmt: skip
def test_a_remote_client_cannot_have_the_broker_call_into_private_places(host: str) -> None:
    assert handler_refusal(host, local=False, allowed=()) is not None
    assert handler_refusal(host, local=True, allowed=()) is None


def test_public_addresses_and_those_the_operator_lists_may_be_called() -> None:
    assert handler_refusal("93.184.216.34", local=False, allowed=()) is None
    allowed = (ipaddress.ip_network("10.1.0.0/16"),)
    assert handler_refusal("10.1.2.3", local=False, allowed=allowed) is None
    assert handler_refusal("10.2.0.1", local=False, allowed=allowed) is not None


@pytest.mark.parametrize("host", ["localhost", "127.1", "0x7f000001"])
@over_sockets
async def test_a_name_is_checked_again_once_it_is_resolved(host: str) -> None:
    async with running() as broker:
        address = parse_address(f"ka://{host}:9")
        with pytest.raises(ForbiddenAddressError, match=r"127\.0\.0\.1|::1"):
            await resolve(Connect(1, address, local=False), broker.shell)
        assert await resolve(Connect(1, address, local=True), broker.shell)
        assert await resolve(Connect(1, address, local=False, trusted=True), broker.shell)
