"""``ideal simulate`` and ``ideal serve --simulate``: a living city from the command line."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from benchmarks.ports import free_port
from ideal_dispatch.service.clock import ClockTable
from ideal_dispatch.service.demo import demo, living
from tests.service_town import PATIENCE_S

IDEAL = str(Path(sys.executable).with_name("ideal"))


def ideal(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [IDEAL, *words], capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("serve", "--speed", "60", "--config", "town.toml"), "with --config use [clock]"),
        (("serve", "--simulate", "--config", "town.toml"), "run `ideal simulate`"),
        (("simulate",), "whose calls are they? Give --token or --token-file"),
        (("simulate", "--token", "a", "--token-file", "b"), "Give --token or --token-file"),
        (("simulate", "--token-file", "no-such-file"), "no-such-file: no such file"),
        (("simulate", "--token", "ä"), "the token has characters that no token has"),
        (("simulate", "--token", "a", "--url", "nowhere"), "'nowhere' cannot be used"),
    ],
)  # fmt: skip
def test_mistakes_are_told_in_a_line(words: tuple[str, ...], message: str) -> None:
    done = ideal(*words)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())


def test_a_living_city_leaves_a_person_time_to_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    plain, _ = demo()
    shown, _ = living(60.0)
    assert shown.server.expiry_s == shown.units.position_stale_s == 600.0
    assert living(1.0)[0].server.expiry_s == plain.server.expiry_s
    assert isinstance(shown.clock, ClockTable)
    assert shown.clock.speed == 60.0
    assert shown.folder != living(60.0)[0].folder  # its clock begins anew: so does its record
    assert (plain.invents, shown.invents) == (True, False)


def test_the_embedded_city_waits_for_one_that_is_started_beside_it(tmp_path: Path) -> None:
    with _serving(tmp_path, "--speed", "120") as (client, token, _):
        assert (_get(client, "/v1/city")["clock"]["speed"], _get(client, "/v1/units")) == (
            120.0, [],
        )  # fmt: skip
        city = ("simulate", "--url", str(client.base_url), "--token", token, "--seed", "2")
        done = ideal(*city, "--minutes", "2")
        assert done.returncode == 0, done.stderr
        assert len(_get(client, "/v1/units")) == 11


def test_the_embedded_city_lives_as_long_as_the_service(tmp_path: Path) -> None:
    with _serving(tmp_path, "--simulate", "--speed", "120") as (client, _, process):

        def works() -> bool:
            found = _get(client, "/v1/units")
            return len(found) == 11 and any(one["call_id"] for one in found)

        _wait(works)
        assert _get(client, "/v1/city")["clock"]["speed"] == 120.0
        assert _get(client, "/v1/city")["units_known"]
        assert not _get(client, "/v1/simulated-calls")["running"]
        calls = _get(client, "/v1/recommendations")
        assert all(one["call_id"].startswith("L2-") for one in calls)
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        rest = process.stdout.read()  # to its end: the city has ended, too
        assert re.search(r"calls +\d", rest), rest
        assert "Traceback" not in rest
        assert process.wait(PATIENCE_S) == 0


@contextmanager
def _serving(
    folder: Path, *options: str
) -> "Iterator[tuple[httpx.Client, str, subprocess.Popen[str]]]":
    """The embedded city, once it is ready."""
    port = free_port()
    own = {"XDG_STATE_HOME": str(folder), "TMPDIR": str(folder)}
    process = subprocess.Popen(
        [IDEAL, "serve", *options, "--port", str(port)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **own},
    )  # fmt: skip
    assert process.stdout is not None
    try:
        token = _after(process, "token")
        url, headers = f"http://127.0.0.1:{port}", {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=url, headers=headers, timeout=PATIENCE_S) as client:
            _wait(lambda: client.get("/readyz").status_code == 200)
            yield client, token, process
    finally:
        process.kill()
        process.stdout.close()
        process.wait()


def _get(client: httpx.Client, path: str) -> Any:
    return client.get(path).raise_for_status().json()


def _after(process: "subprocess.Popen[str]", word: str) -> str:
    """What is printed after a word and a colon."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(f"{word}:"):
            return line.partition(":")[2].strip()
    raise AssertionError(f"the service ended without its {word}")


def _wait(done: Any) -> None:
    limit = time.monotonic() + PATIENCE_S
    while True:
        try:
            if done():
                return
        except httpx.TransportError:
            pass
        assert time.monotonic() < limit
        time.sleep(0.1)
