"""An authority, a server's and a client's certificate, made by the ``openssl`` command."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

_EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def _openssl(folder: Path, *words: str) -> None:
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


def make(folder: Path) -> Path:
    """``ca.pem``, ``server.pem``/``.key`` for 127.0.0.1, ``ann.pem``/``.key`` and ``eve.*``."""
    _openssl(folder, "req", "-x509", *_EC, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2",
             "-subj", "/CN=test authority")  # fmt: skip
    _issue(folder, "server", "127.0.0.1", "subjectAltName=IP:127.0.0.1,DNS:localhost")
    _issue(folder, "ann", "ann", "extendedKeyUsage=clientAuth")
    _issue(folder, "eve", "eve", "extendedKeyUsage=clientAuth")
    return folder


def _issue(folder: Path, name: str, common: str, extension: str) -> None:
    _openssl(folder, "req", *_EC, "-keyout", f"{name}.key", "-out", f"{name}.csr",
             "-subj", f"/CN={common}")  # fmt: skip
    (folder / f"{name}.ext").write_text(extension + "\n")
    _openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
             "-CAcreateserial", "-out", f"{name}.pem", "-days", "2",
             "-extfile", f"{name}.ext")  # fmt: skip


def client_context(folder: Path, name: str | None = None) -> ssl.SSLContext:
    """Trusts the authority; shows the certificate of ``name``."""
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    if name is not None:
        context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    return context
