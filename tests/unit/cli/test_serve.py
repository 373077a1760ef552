"""``ideal serve``: checks, tokens, and a demonstration that needs nothing."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ideal_dispatch.service.tokens import digest
from tests.postgres import Postgres
from tests.service_town import Town
from tests.service_town import town as town


def ideal(*words: str, state: Path | None = None) -> "subprocess.CompletedProcess[str]":
    environment = dict(os.environ) | ({"XDG_STATE_HOME": str(state)} if state else {})
    command = [str(Path(sys.executable).with_name("ideal")), "serve", *words]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, env=environment
    )


def test_check_says_what_would_be_served(town: Town) -> None:
    done = ideal("--config", str(town.config("check.toml")), "--check")
    assert done.returncode == 0, done.stderr
    for words in ("The configuration can be used", "Gridtown", "D0, D1, D2", "cad (cad)", "30 s",
                  "ideal: for a drive of 8 min, a second ambulance"):  # fmt: skip
        assert words in done.stdout
    assert "check.toml.db does not exist; the service makes it" in " ".join(done.stderr.split())
    assert not list(town.folder.glob("check.toml.*"))  # neither database nor spool


def test_check_says_which_fleet_prices_come_from(town: Town) -> None:
    table = {"units": dict.fromkeys(("D0", "D1", "D2"), 2), "calls_per_day": 40}
    done = ideal("--config", str(town.config("fleet-check.toml", fleet=table)), "--check")
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "6 units on duty, 40 calls a day, recall first arrival, not calibrated" in said
    assert "it costs the others" in said


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"source": "tests.planted:Rooof"}, "has no attribute 'Rooof'"),
        ({"source": "my_dispatch.weather:Thermometer", "options": {"temp": 25.0}}, "temp is not k"),
    ],
)
def test_check_makes_the_weather_provider(
    town: Town, table: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Path(__file__).parents[3]
    monkeypatch.setenv("PYTHONPATH", str(here), prepend=os.pathsep)
    monkeypatch.setenv("PYTHONPATH", str(here / "examples/own_policy"), prepend=os.pathsep)
    done = ideal("--config", str(town.config("sky.toml", weather=table)), "--check")
    assert done.returncode == 2
    assert message in done.stderr


def test_check_refuses_a_spool_that_cannot_be_used(town: Town) -> None:
    (town.folder / "no-folder").write_text("")
    done = ideal(
        "--config", str(town.config("nospool.toml", audit={"spool": "no-folder"})), "--check"
    )
    assert done.returncode == 2
    assert f"audit spool {town.folder / 'no-folder'}: File exists" in done.stderr
    assert "can be used" not in done.stdout


def test_check_refuses_a_database_that_does_not_answer(town: Town) -> None:
    url = "postgresql+psycopg://nobody:secret@127.0.0.1:1/none"
    done = ideal("--config", str(town.config("nodb.toml", audit={"url": url})), "--check")
    assert done.returncode == 2
    assert "the service would start, and spool" in done.stderr
    assert "secret" not in done.stderr + done.stdout


def test_check_takes_a_database_whose_tables_are_yet_to_be_made(
    town: Town, postgres: Postgres
) -> None:
    url = postgres.new_database()
    done = ideal("--config", str(town.config("empty.toml", audit={"url": url})), "--check")
    assert done.returncode == 0, done.stderr
    assert "has no tables; the service makes them when it starts" in " ".join(done.stderr.split())
    assert "The configuration can be used" in done.stdout


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"server": {"deadline_s": 999.0}}, "deadline_s 999.0: 0.1 to 60 is needed"),
        ({"model": {"folder": "nowhere"}}, "no such folder; make one with `ideal train`"),
    ],
)
def test_a_wrong_configuration_is_one_line_and_exit_code_2(
    town: Town, changes: dict[str, dict[str, object]], words: str
) -> None:
    path = str(town.config("wrong-cli.toml", **changes))
    for options in (["--check"], [], ["--workers", "2"]):
        done = ideal("--config", path, *options, "--port", "1")
        assert done.returncode == 2
        assert words in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1


def test_an_address_in_use_is_one_line(town: Town) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = ideal("--config", str(town.config("port.toml")), "--port", port)
    assert done.returncode == 2
    assert f"cannot listen at 127.0.0.1, port {port}: Address already in use" in done.stderr


def test_a_new_token_and_its_hash() -> None:
    done = ideal("--new-token")
    found = re.fullmatch(r"token:  (\S+)\nsha256: (\w{64})\n", done.stdout)
    assert found is not None
    assert digest(found[1]) == found[2]


def test_the_demonstration_has_one_worker(tmp_path: Path) -> None:
    done = ideal("--workers", "2", state=tmp_path)
    assert done.returncode == 2
    assert "the embedded city has one worker; give --config" in done.stderr
    assert ideal("--check", state=tmp_path).returncode == 0


def test_a_wrong_option_is_said_and_nothing_goes_on() -> None:
    """The solver that loads already ends without a word: who waits for its end sees none."""
    done = ideal("--prot", "80")
    assert done.returncode == 2
    assert "--prot" in done.stderr
    assert "Traceback" not in done.stderr
