"""Certificates are made once a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server import certificates


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificates.make(tmp_path_factory.mktemp("pki"))
