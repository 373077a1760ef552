"""Ended while it starts, when nothing is compiled yet and that takes a minute."""

import signal
import time
from pathlib import Path

import pytest

from tests.service_town import PATIENCE_S, Town, launched
from tests.waiting import wait_for


@pytest.mark.parametrize(
    "workers", [1, pytest.param(2, marks=pytest.mark.slow)], ids=["one process", "two workers"]
)
def test_sigterm_while_it_starts(town: Town, tmp_path: Path, workers: int) -> None:
    config = town.config(f"start-{workers}.toml")
    options = ["--workers", str(workers)]
    environment = {"NUMBA_CACHE_DIR": str(tmp_path)}
    with launched(config, options=options, environment=environment) as served:
        started = "Waiting for application startup"
        wait_for(lambda: served.log.read_text().count(started) >= workers, served.log.read_text)
        time.sleep(0.5)
        assert served.process.poll() is None, served.log.read_text()
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(PATIENCE_S) in (0, -signal.SIGTERM)
        assert served.log.read_text().count("ended before it was ready") == workers
