"""TLS and mutual TLS on ``ka+senps`` ports."""

from __future__ import annotations

from pathlib import Path

import pytest

import kbn
from kbn.errors import RefusedError, UnreachableError
from kbn.server.run import Broker
from tests.server.certificates import client_context
from tests.sockets import LOOPBACK, Raw, config, over_sockets, port_of, running, until, url_of

TLS = (f"ka+senps://{LOOPBACK}:0",)


def server(pki: Path, **more: object) -> dict[str, object]:
    return {"tls.cert": str(pki / "server.pem"), "tls.key": str(pki / "server.key"), **more}


@over_sockets
async def test_a_client_that_trusts_the_authority_speaks_over_tls(pki: Path) -> None:
    async with running(listen=TLS, **server(pki)) as broker:
        url = url_of(broker, "ka+senps")
        async with (
            kbn.connect(url, tls=client_context(pki)) as client,
            client.subscribe("n any") as stream,
        ):
            await client.publish(n=1)
            assert (await anext(stream))["n"] == 1


@over_sockets
async def test_a_client_that_does_not_trust_the_authority_stays_away(pki: Path) -> None:
    async with running(listen=TLS, **server(pki)) as broker:
        with pytest.raises(UnreachableError, match="certificate"):
            await kbn.connect(url_of(broker, "ka+senps"), reconnect=False).open()


@over_sockets
async def test_plain_bytes_on_a_tls_port_harm_nobody(pki: Path) -> None:
    async with running(listen=TLS, **server(pki)) as broker:
        url, port = url_of(broker, "ka+senps"), port_of(broker, "ka+senps")
        with pytest.raises(UnreachableError):
            await kbn.connect(f"ka://{LOOPBACK}:{port}", reconnect=False, timeout=0.3).open()
        async with kbn.connect(url, tls=client_context(pki)) as client:
            await client.ping()


@over_sockets
async def test_a_client_certificate_stands_for_the_principal_of_its_name(pki: Path) -> None:
    said = server(
        pki,
        **{"tls.client_ca": str(pki / "ca.pem")},
        principals=[{"name": "ann", "publish": "n < 10"}, {"name": "bob", "token": "t"}],
    )
    async with running(listen=TLS, **said) as broker:
        url = url_of(broker, "ka+senps")
        async with kbn.connect(url, tls=client_context(pki, "ann")) as client:
            await client.publish(n=1)
            with pytest.raises(RefusedError, match="ann may not publish") as refused:
                await client.publish(n=11)
            assert refused.value.code == "forbidden"
        with pytest.raises(RefusedError) as unknown:
            await kbn.connect(url, tls=client_context(pki, "eve")).open()
        assert unknown.value.code == "auth"
        async with kbn.connect(url, tls=client_context(pki), token="t") as client:
            await client.publish(n=11)


@over_sockets
async def test_mutual_tls_refuses_who_shows_no_certificate(pki: Path) -> None:
    said = server(
        pki,
        **{"tls.client_ca": str(pki / "ca.pem"), "tls.client_required": True},
        principals=[{"name": "ann"}],
    )
    async with running(listen=TLS, **said) as broker:
        url = url_of(broker, "ka+senps")
        with pytest.raises(UnreachableError):
            await kbn.connect(url, tls=client_context(pki), reconnect=False).open()
        async with kbn.connect(url, tls=client_context(pki, "ann")) as client:
            await client.ping()


@over_sockets
async def test_a_legacy_peer_with_a_certificate_is_that_principal(pki: Path) -> None:
    said = server(
        pki,
        **{"tls.client_ca": str(pki / "ca.pem")},
        principals=[{"name": "ann", "may_publish": False}],
    )
    async with running(listen=TLS, **said) as broker:
        port = port_of(broker, "ka+senps")
        peer = await Raw.open(port, ssl=client_context(pki, "ann"), server_hostname=LOOPBACK)
        await peer.send('senp{version=1 method="PUB" id="p"} event{ n=1}')
        accounts = broker.state.core.accounts
        await until(lambda: accounts.refused == 1, "the publication is refused")
        await peer.close()


@over_sockets
async def test_a_child_broker_reaches_its_master_over_tls(pki: Path) -> None:
    async with running(listen=TLS, **server(pki)) as master:
        told = {"master": url_of(master, "ka+senps"), "tls.ca": str(pki / "ca.pem")}
        async with running(identity="child", **told) as child:
            uplink = child.state.uplink
            assert uplink is not None
            await until(lambda: uplink.established, "the master is reached")
            assert child.state.core.path == ("child", "b1")


def test_a_tls_port_without_a_certificate_is_refused_before_anything_listens() -> None:
    @over_sockets
    async def start() -> None:
        await Broker(config(listen=TLS)).start()

    with pytest.raises(RefusedError, match=r"tls\.cert"):
        start()


def test_certificates_that_cannot_be_read_are_named() -> None:
    with pytest.raises(RefusedError, match="certificates"):
        Broker(config(**{"tls.cert": "/nowhere.pem"}))
