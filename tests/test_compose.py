"""``docker-compose.yml``: what it starts, and that each part can be asked whether it lives."""

from __future__ import annotations

from pathlib import Path

import yaml
from typer.testing import CliRunner

from kbn.cli.main import app

ROOT = Path(__file__).parent.parent
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
SERVICES = COMPOSE["services"]


def test_it_starts_a_database_a_broker_and_a_cluster():
    assert SERVICES.keys() >= {"postgres", "broker", "spark-master", "spark-worker"}


def test_everything_that_stays_up_has_a_health_check():
    for name, service in SERVICES.items():
        if "profiles" not in service:
            assert service["healthcheck"]["test"], name


def test_who_depends_on_another_waits_until_it_is_healthy():
    for service in SERVICES.values():
        for name, how in service.get("depends_on", {}).items():
            assert how == {"condition": "service_healthy"}
            assert "healthcheck" in SERVICES[name]


def test_ports_are_open_to_this_machine_only():
    for service in SERVICES.values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))


def test_the_broker_is_started_with_options_it_knows():
    command = SERVICES["broker"]["command"]
    said = CliRunner().invoke(app, [command[0], "--help"]).output
    options = [word for word in command if word.startswith("--")]
    assert options
    assert all(option in said for option in options)


def test_volumes_that_are_mounted_are_declared():
    for service in SERVICES.values():
        mounted = {mount.split(":")[0] for mount in service.get("volumes", ())}
        assert mounted <= COMPOSE["volumes"].keys()
