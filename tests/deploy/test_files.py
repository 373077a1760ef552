"""The files of deploy/ are ones that their programs understand."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.load import HANDBOOK, restarts
from benchmarks.ports import free_port
from benchmarks.stack import DEPLOY, WORKER_PORTS, nginx_command, put_in
from ideal_dispatch.service.service import Metrics
from ideal_dispatch.service.settings import Server, ServiceSettings


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
    seen = Metrics()
    for family in (seen.decisions, seen.remarks, seen.refused, seen.replies):
        family.labels("x")
    samples = {
        sample.name
        for family in text_string_to_metric_families(generate_latest(seen.registry).decode())
        for sample in family.samples
    }
    yaml = pytest.importorskip("yaml")
    rules = yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"][0]["rules"]
    asked = {name for rule in rules for name in re.findall(r"ideal_\w+", rule["expr"])}
    assert len(asked) > 5
    assert asked <= samples
    assert {rule["labels"]["severity"] for rule in rules} == {"page", "ticket"}


@pytest.mark.usefixtures("nginx_is_there")
def test_nginx_understands_its_file(tmp_path: Path) -> None:
    tls, plain, *workers = (free_port() for _ in range(4))
    command = [*nginx_command(tmp_path, tls, plain, workers), "-t"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "[warn]" not in done.stderr


def test_a_call_has_time_for_a_second_worker_within_the_patience_of_a_cad() -> None:
    """The deadline of a worker, then what nginx waits for it, then what the CAD waits."""
    call = (DEPLOY / "nginx.conf").read_text().partition("location = /call {")[2].partition("}")[0]
    waits_s = {name: int(ms) / 1000 for name, ms in re.findall(r"proxy_(\w+) (\d+)ms;", call)}
    assert waits_s.keys() == {"send_timeout", "read_timeout", "next_upstream_timeout"}
    deadline_s, cad_s = Server().deadline_s, 3.0
    assert deadline_s < waits_s["read_timeout"] < waits_s["next_upstream_timeout"] < cad_s
    assert waits_s["send_timeout"] < waits_s["next_upstream_timeout"]


def test_both_pages_of_the_handbook_restart_all_workers_by_the_same_words() -> None:
    """`make load` runs these words, and refuses no call."""
    assert [restarts(page) for page in HANDBOOK] == [list(WORKER_PORTS)] * 2
    assert "Type=notify" in (DEPLOY / "ideal-dispatch@.service").read_text()


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
