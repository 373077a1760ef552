"""A small town to serve: its files, and the real service running on them."""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from benchmarks.ports import free_port
from benchmarks.stack import stop, wait_until_ready
from ideal_dispatch import RoadNetwork
from ideal_dispatch.service.http.app import create_app
from ideal_dispatch.service.http.server import options
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.service.solver.adviser import Adviser
from ideal_dispatch.service.solver.assets import Assets, load_assets
from ideal_dispatch.service.solver.messages import CityFacts
from ideal_dispatch.service.solver.pool import SolverPool
from ideal_dispatch.service.solver.process import SolverProcess
from ideal_dispatch.service.solver.solver import Solver
from ideal_dispatch.service.state import Service
from ideal_dispatch.service.tokens import digest
from tests.conftest import ROOT
from tests.unit.dispatch.worlds import GAIN, depots, random_model, world
from tests.waiting import PATIENCE_S as PATIENCE_S

EIDO: dict[str, Any] = json.loads((ROOT / "examples" / "eido.json").read_text(encoding="utf-8"))
"""The example of the documentation."""

ROLES = ("cad", "dispatcher", "auditor", "admin")
DEPOTS = ("D0", "D1", "D2")
DEADLINE_S = 30.0
"""Enough on any machine; tests of the deadline itself set their own."""
PATIENT = {"deadline_s": 60.0, "expiry_s": 3600.0}
"""A server whose answers are never late and do not expire: the machine may be busy."""
ENOUGH = 500
"""Units of a depot, for tests in which many calls share a service: each is promised some."""


def token(role: str) -> str:
    """The token of a role in the town."""
    return f"{role}-{'x' * 32}"


def bearer(role: str = "dispatcher") -> dict[str, str]:
    return {"Authorization": f"Bearer {token(role)}"}


@dataclass(frozen=True)
class Town:
    """A folder with everything a configuration names."""

    folder: Path
    network: RoadNetwork

    def config(self, name: str = "town.toml", **changes: Mapping[str, Any]) -> Path:
        """A configuration with other values in some tables."""
        tables: dict[str, dict[str, Any]] = {
            "city": {"name": "Gridtown", "network": "town.network", "depots": "depots.csv",
                     "time_zone": "Asia/Hong_Kong", "country": "HK"},
            "model": {"folder": "model", "gain": "gain.json"},
            "traffic": {"kind": "recorded", "file": "town.traffic"},
            "units": {"default": 2},
            "audit": {"url": f"sqlite:///{name}.db", "spool": f"{name}.spool"},
            "server": {"deadline_s": DEADLINE_S},
        }  # fmt: skip
        for table, values in changes.items():
            tables[table] = {**tables.get(table, {}), **values}
        lines = []
        for table, values in tables.items():
            lines += [f"[{table}]", *(f"{key} = {_toml(value)}" for key, value in values.items())]
        for role in ROLES:
            lines += ["[[tokens]]", f'name = "{role}"', f'role = "{role}"']
            lines.append(f'sha256 = "{digest(token(role))}"')
        path = self.folder / name
        path.write_text("\n".join(lines) + "\n")
        return path

    def settings(self, name: str = "town.toml", **changes: Mapping[str, Any]) -> ServiceSettings:
        return ServiceSettings.load(self.config(name, **changes), {})

    def place(self, node: int) -> dict[str, float]:
        return {"lon": float(self.network.lon[node]), "lat": float(self.network.lat[node])}

    def call(self, call_id: str = "c-1", node: int = 65, **changes: Any) -> dict[str, Any]:
        """A request about a node, received now."""
        return {
            "call_id": call_id,
            "received_at": datetime.now(UTC).isoformat(),
            "location": self.place(node),
            "depots": [{"name": name, "units": ENOUGH} for name in DEPOTS],
            **changes,
        }


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {_toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value)


@pytest.fixture(scope="session")
def town(grid: RoadNetwork, tmp_path_factory: pytest.TempPathFactory) -> Town:
    """The grid with three depots, a model that nobody trained, and a busy morning."""
    folder = tmp_path_factory.mktemp("town")
    grid.save(folder / "town.network")
    rows = [f"{one.name},{grid.lon[one.node]},{grid.lat[one.node]}" for one in depots(3)]
    (folder / "depots.csv").write_text("\n".join(["name,lon,lat", *rows]) + "\n")
    random_model(grid).save(folder / "model")
    GAIN.save(folder / "gain.json")
    world(grid).recording.save(folder / "town.traffic")
    return Town(folder, grid)


@dataclass(frozen=True)
class Served:
    """The running service; ``client`` has no token of its own."""

    url: str
    process: "subprocess.Popen[bytes]" = field(repr=False)
    client: httpx.Client = field(repr=False)
    log: Path

    def post(self, body: Any, role: str = "cad", **options: Any) -> httpx.Response:
        """Ask for a recommendation."""
        headers = {**bearer(role), **options.pop("headers", {})}
        url = f"{self.url}/v1/recommendations"
        return self.client.post(url, json=body, headers=headers, **options)

    def get(self, path: str, role: str = "auditor") -> httpx.Response:
        return self.client.get(self.url + path, headers=bearer(role))

    def lines(self) -> list[str]:
        return self.log.read_text().splitlines()


@contextmanager
def serving(
    config: Path, *, options: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> Iterator[Served]:
    """``ideal serve`` in a process of its own, ready for calls; ended by SIGTERM."""
    with launched(config, options=options, environment=environment) as served:
        wait_until_ready(served.url, served.process, served.log)
        yield served


@contextmanager
def launched(
    config: Path, *, options: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> Iterator[Served]:
    """The same from its first moment on."""
    port = free_port()
    log = config.with_suffix(f".{port}.log")
    command = [
        str(Path(sys.executable).with_name("ideal")), "serve", "--config", str(config),
        "--port", str(port), *options,
    ]  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    with log.open("wb") as output, httpx.Client(timeout=PATIENCE_S) as client:
        process = subprocess.Popen(
            command, stderr=output, stdout=output, env={**os.environ, **(environment or {})}
        )
        served = Served(url, process, client, log)
        try:
            yield served
        finally:
            stop(process)


@pytest.fixture(scope="module")
def served(town: Town) -> Iterator[Served]:
    """The service on the town, for the tests of one module."""
    name = f"served-{time.monotonic_ns()}.toml"
    with serving(town.config(name)) as running:
        yield running


class SolverThread(SolverProcess):
    """A solver in a thread of this process, where a test can reach into it."""

    def __init__(self, changed: Callable[[], None], solver: Solver) -> None:
        super().__init__(changed, 60.0, early=False)
        self._solver, self._thread = solver, ThreadPoolExecutor(1)

    def start(self) -> None:
        """The solver itself is started by its pool."""

    @property
    def warm(self) -> bool:
        return self._solver.warm

    @property
    def facts(self) -> CityFacts:
        return self._solver.facts

    def alive(self) -> bool:
        return True

    def ask(
        self, name: str, given: tuple[Any, ...], due: float | None = None
    ) -> "asyncio.Future[Any]":
        return asyncio.wrap_future(self._thread.submit(self._solver.method(name), *given))

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)


class SolverThreads(SolverPool):
    """Threads in place of processes, all with the same solver."""

    def __init__(self, settings: ServiceSettings, assets: Assets) -> None:
        self.solver = Solver(settings, assets, self._tell)
        self._loop: asyncio.AbstractEventLoop
        super().__init__()
        self.begin(settings)

    def _process(self, early: bool) -> SolverProcess:
        return SolverThread(self._changed, self.solver)

    def _tell(self) -> None:
        self._loop.call_soon_threadsafe(self._changed)

    @property
    def traffic(self) -> str:
        return self.solver.traffic

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.solver.start()

    def close(self) -> None:
        super().close()
        self.solver.close()


def application(settings: ServiceSettings, assets: Assets | None = None) -> FastAPI:
    """The application with its solver in this process, where a test can reach into it."""
    return create_app(settings, SolverThreads(settings, assets or load_assets(settings)))


class Local(httpx.Client):
    """A client of an application that this process serves on a real socket."""

    service: Service

    @property
    def solver(self) -> Solver:
        pool = self.service.solver
        assert isinstance(pool, SolverThreads)
        return pool.solver

    @property
    def adviser(self) -> Adviser:
        return self.solver.adviser


@contextmanager
def local(app: FastAPI) -> Iterator[Local]:
    """The application served by a thread of this process; its state can be looked at."""
    service: Service = app.state.service
    config = uvicorn.Config(app, host="127.0.0.1", port=0, **options(service.settings))
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not server.started or service.health()[0] == "starting":
            assert thread.is_alive()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        while service.solver.traffic == "starting":
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        with Local(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S) as client:
            client.service = service
            yield client
    finally:
        server.should_exit = True
        thread.join(PATIENCE_S)


def respond(client: Local, made: Mapping[str, Any], action: str) -> None:
    """Say what was done with an advice."""
    body = {"action": action, "reason_code": "other" if action == "override" else None}
    where = f"/v1/recommendations/{made['id']}/response"
    answer = client.post(where, json=body, headers=bearer())
    assert answer.status_code == 200, answer.text


def codes(made: Mapping[str, Any]) -> list[str]:
    """All codes of what an answer says against itself."""
    return [code for one in made["degraded"] for code in (one["code"], *one["also"])]


def later(seconds: float) -> str:
    """A moment so many seconds from now."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


def with_radius(model: Any, radius: float) -> Any:
    """A model whose scenario sets have another size."""
    return replace(model, radius_rule=replace(model.radius_rule, constant=radius))
