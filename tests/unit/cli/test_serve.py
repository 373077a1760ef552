"""``ideal serve``: checks, tokens, and a demonstration that needs nothing."""

import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ideal_dispatch.service.settings import digest
from tests.postgres import Postgres
from tests.service_town import Town, bearer, launched, serving
from tests.service_town import town as town
from tests.waiting import PATIENCE_S, wait_for


def ideal(*words: str, state: Path | None = None) -> "subprocess.CompletedProcess[str]":
    environment = dict(os.environ) | ({"XDG_STATE_HOME": str(state)} if state else {})
    command = [str(Path(sys.executable).with_name("ideal")), "serve", *words]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=PATIENCE_S, env=environment
    )


def test_check_says_what_would_be_served_and_leaves_nothing(town: Town) -> None:
    fleet = {"units": dict.fromkeys(("D0", "D1", "D2"), 2), "calls_per_day": 40}
    done = ideal("--config", str(town.config("check.toml", fleet=fleet)), "--check")
    assert done.returncode == 0, done.stderr
    rows = {line.split(maxsplit=1)[0] for line in done.stdout.splitlines() if line.strip()}
    assert rows >= {"city", "depots", "policy", "fleet", "traffic", "database", "tokens"}
    assert "check.toml.db" in done.stderr  # it is yet to be made
    assert not list(town.folder.glob("check.toml.*"))


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"server": {"deadline_s": 999.0}}, "deadline_s"),
        ({"model": {"folder": "nowhere"}}, "nowhere"),
        ({"weather": {"source": "tests.planted:Rooof"}}, "Rooof"),
        ({"audit": {"url": "postgresql+psycopg://nobody:secret@127.0.0.1:1/none"}}, "127.0.0.1"),
        ({"audit": {"url": "sqlite:///old.db"}}, "0.2"),
    ],
)
def test_what_cannot_be_used_is_one_line_and_exit_code_2(
    town: Town, changes: dict[str, dict[str, Any]], key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]), prepend=os.pathsep)
    with sqlite3.connect(town.folder / "old.db") as old:
        old.execute("CREATE TABLE IF NOT EXISTS audit (id)")
        old.execute("CREATE TABLE IF NOT EXISTS alembic_version (id)")
    done = ideal("--config", str(town.config("wrong-cli.toml", **changes)), "--check")
    assert done.returncode == 2
    assert key in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert "secret" not in done.stderr + done.stdout


@pytest.mark.parametrize("options", [[], ["--workers", "2"]])
def test_a_service_that_cannot_start_ends(town: Town, options: list[str]) -> None:
    path = town.config("no-model.toml", model={"folder": "nowhere"})
    done = ideal("--config", str(path), "--port", "1", *options)
    assert done.returncode == 2
    assert "nowhere" in done.stderr or "port 1" in done.stderr
    assert "Traceback" not in done.stderr


def test_check_takes_a_database_whose_tables_are_yet_to_be_made(
    town: Town, postgres: Postgres
) -> None:
    path = town.config("empty.toml", audit={"url": postgres.new_database()})
    done = ideal("--config", str(path), "--check")
    assert done.returncode == 0, done.stderr


def test_an_address_in_use_is_one_line(town: Town) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = ideal("--config", str(town.config("port.toml")), "--port", port)
    assert done.returncode == 2
    assert f"port {port}" in done.stderr.splitlines()[-1]


def test_a_new_token_and_its_hash() -> None:
    found = re.fullmatch(r"token:  (\S+)\nsha256: (\w{64})\n", ideal("--new-token").stdout)
    assert found is not None
    assert digest(found[1]) == found[2]


@pytest.mark.parametrize(
    "options", [["--workers", "2"], ["--simulate", "--config", "x.toml"], ["--prot", "80"],
                ["--speed", "2", "--config", "x.toml"]],
)  # fmt: skip
def test_options_that_do_not_go_together(tmp_path: Path, options: list[str]) -> None:
    done = ideal(*options, state=tmp_path)
    assert done.returncode == 2
    assert options[0] in done.stderr
    assert "Traceback" not in done.stderr


def test_the_embedded_city_can_be_served(tmp_path: Path) -> None:
    assert ideal("--check", state=tmp_path).returncode == 0


def test_systemd_learns_when_the_service_is_ready(town: Town) -> None:
    """`systemctl restart` of a unit of type notify returns then, and not sooner."""
    name = f"ideal-dispatch-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(f"\0{name}")
        systemd.settimeout(PATIENCE_S)
        config = town.config("notify.toml")
        with launched(config, environment={"NOTIFY_SOCKET": f"@{name}"}) as running:
            assert systemd.recv(1024) == b"READY=1"
            assert running.get("/readyz").status_code == 200
        assert running.process.returncode == 0


def test_several_workers_share_the_calls_and_end_together(town: Town) -> None:
    """A worker that was killed is replaced."""
    with serving(town.config("several.toml"), options=["--workers", "2"]) as running:

        def said(words: str) -> list[str]:
            return [line for line in running.lines() if words in line]

        wait_for(lambda: len(said("startup complete")) == 2)
        process = re.search(r"\[(\d+)\]", said("Started server process")[0])
        assert process is not None
        os.kill(int(process[1]), signal.SIGKILL)
        wait_for(lambda: len(said("startup complete")) == 3)
        for number in range(8):
            running.report({"depot": "D0", "free": number})
        assert running.get("/v1/units", headers=bearer()).status_code == 200
    assert running.process.returncode == 0
