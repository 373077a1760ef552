"""The files of deploy/ are ones that their programs understand."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ideal_dispatch.service.observations import Observations
from ideal_dispatch.service.settings import ServiceSettings
from tests.deploy.stack import DEPLOY, free_ports, nginx_files, nginx_program, put_in


def test_the_example_configuration_can_be_used() -> None:
    environment = {}
    for line in (DEPLOY / "secrets.env").read_text().splitlines():
        name, separator, value = line.partition("=")
        if separator and not line.startswith("#"):
            environment[name] = value
    settings = ServiceSettings.load(DEPLOY / "ideal.toml", environment)
    assert settings.database_url.startswith("postgresql+psycopg://ideal_service:")
    assert settings.server.secure_cookie
    assert {token.role for token in settings.tokens} == {"cad", "dispatcher", "auditor"}


def test_alerts_ask_for_metrics_that_exist() -> None:
    seen = Observations()
    for family in (seen.recommendations, seen.degraded, seen.refused, seen.responses):
        family.labels("x")
    samples = {
        sample.name
        for family in text_string_to_metric_families(seen.text().decode())
        for sample in family.samples
    }
    yaml = pytest.importorskip("yaml")
    rules = yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"][0]["rules"]
    asked = {name for rule in rules for name in re.findall(r"ideal_\w+", rule["expr"])}
    assert len(asked) > 5
    assert asked <= samples
    assert {rule["labels"]["severity"] for rule in rules} == {"page", "ticket"}


def test_nginx_understands_its_file(tmp_path: Path) -> None:
    tls, plain, *workers = free_ports(4)
    config = nginx_files(tmp_path, tls, plain, workers)
    command = [nginx_program(), "-t", "-p", str(tmp_path), "-c", str(config)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "[warn]" not in done.stderr


def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    """No complaint, and little that the service could do to its machine."""
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed (Debian: systemd)")
    text = (DEPLOY / "ideal-dispatch@.service").read_text()
    here = Path(sys.executable).parent
    text = put_in(text, "/opt/ideal-dispatch/current/bin", str(here))
    unit = tmp_path / "ideal-dispatch@8101.service"
    unit.write_text(text)
    done = subprocess.run([program, "verify", unit], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "ideal-dispatch" not in done.stderr
    exposed = subprocess.run(
        [program, "security", "--offline=true", "--threshold=15", unit],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert exposed.returncode == 0, exposed.stdout[-500:]
