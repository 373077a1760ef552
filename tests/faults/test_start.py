"""A service that starts: nothing listens yet, and it can be ended."""

import signal
import threading
import time
from pathlib import Path

import httpx
import pytest
import uvicorn

from ideal_dispatch.service.deciding.engine import Engine
from ideal_dispatch.service.http.server import options
from tests.service_town import PATIENCE_S, Town, application, launched, local
from tests.waiting import wait_for


@pytest.mark.parametrize(
    "workers", [1, pytest.param(2, marks=pytest.mark.slow)], ids=["one process", "two workers"]
)
def test_sigterm_while_it_starts(town: Town, tmp_path: Path, workers: int) -> None:
    """When nothing is compiled yet, which takes a minute."""
    config = town.config(f"start-{workers}.toml")
    environment = {"NUMBA_CACHE_DIR": str(tmp_path)}
    with launched(config, options=["--workers", str(workers)], environment=environment) as served:
        started = "Waiting for application startup"
        wait_for(lambda: served.log.read_text().count(started) >= workers, served.log.read_text)
        time.sleep(0.5)
        assert served.process.poll() is None, served.log.read_text()
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(PATIENCE_S) in (0, -signal.SIGTERM)
        assert served.log.read_text().count("ended before it was ready") == workers


def test_nothing_listens_before_it_can_advise(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a proxy asks another worker while this one starts."""
    warm_up, compiled = Engine.warm_up, threading.Event()

    def slowly(engine: Engine) -> None:
        compiled.wait(PATIENCE_S)
        warm_up(engine)

    monkeypatch.setattr(Engine, "warm_up", slowly)
    app = application(town.settings("listening.toml"))
    config = uvicorn.Config(app, host="127.0.0.1", port=0, **options(app.state.service.settings))
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        time.sleep(0.5)
        assert not server.started
        compiled.set()
        wait_for(lambda: server.started)
        port = server.servers[0].sockets[0].getsockname()[1]
        assert httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == 200
    finally:
        compiled.set()
        server.should_exit = True
        thread.join(PATIENCE_S)


def test_calls_to_a_worker_that_starts_are_refused_at_once(town: Town) -> None:
    with local(application(town.settings("starting.toml"))) as client:
        client.report()
        client.service.engine.ready = False
        refused = client.ask(town.call())
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "starting")
        assert refused.headers["Retry-After"] == "1"
        assert client.get("/readyz").status_code == 503
        client.service.engine.ready = True
        assert client.get("/readyz").status_code == 200
        assert client.advice(town.call())["decision"] != "no_advice"
        assert client.service.admission.inside == 0
