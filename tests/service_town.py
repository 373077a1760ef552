"""A small town to serve: its files, and the real service running on them."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from benchmarks.ports import free_port
from benchmarks.stack import stop, wait_until_ready
from ideal_dispatch import RoadNetwork
from ideal_dispatch.service.deciding.engine import Engine
from ideal_dispatch.service.http.answer_schemas import Recommendation
from ideal_dispatch.service.http.app import create_app
from ideal_dispatch.service.http.server import options as server_options
from ideal_dispatch.service.service import Service
from ideal_dispatch.service.settings import ServiceSettings, digest
from tests.conftest import ROOT
from tests.unit.dispatch.worlds import depots, random_model, world
from tests.waiting import PATIENCE_S as PATIENCE_S

EIDO: dict[str, Any] = json.loads((ROOT / "examples" / "eido.json").read_text(encoding="utf-8"))
"""The example of the documentation."""

ROLES = ("cad", "dispatcher", "auditor", "admin")
DEPOTS = ("D0", "D1", "D2")
DEADLINE_S = 30.0
"""Enough on any machine; tests of the deadline itself set their own."""
PATIENT = {"deadline_s": 60.0, "expiry_s": 3600.0}
"""A server whose answers are never late and do not expire: the machine may be busy."""
ENOUGH = 100
"""Units of a depot, for tests in which many calls share a service: each is promised some."""
COUNTS = {"D0": ENOUGH, "D1": ENOUGH, "D2": ENOUGH}
ASK = "/v1/recommendations"


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
            "model": {"folder": "model"},
            "traffic": {"kind": "recorded", "file": "town.traffic"},
            "audit": {"url": f"sqlite:///{name}.db"},
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
        received_at = datetime.now(UTC).isoformat()
        location = self.place(node)
        return {"call_id": call_id, "received_at": received_at, "location": location, **changes}

    def unit(self, id: str, node: int | None = None, **changes: Any) -> dict[str, Any]:  # noqa: A002
        """News of a unit of D0, at its station, or free on the road where a node is given."""
        free = {"status": "at_station"} if node is None else {"status": "available"}
        place = {} if node is None else self.place(node)
        return {"id": id, "depot": "D0", **free, **place, **changes}


def counts(**free: int) -> list[dict[str, Any]]:
    """News of how many units are free, by depot."""
    return [{"depot": depot, "free": number} for depot, number in free.items()]


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
    world(grid).recording.save(folder / "town.traffic")
    return Town(folder, grid)


class Client(httpx.Client):
    """A client of a service, without a token; its own methods give that of a ``role``."""

    def ask(self, call: Mapping[str, Any], role: str = "cad", **options: Any) -> httpx.Response:
        """Ask for a recommendation."""
        headers = {**bearer(role), **options.pop("headers", {})}
        return self.post(ASK, json=call, headers=headers, **options)

    def advice(self, call: Mapping[str, Any], **options: Any) -> dict[str, Any]:
        """The recommendation, which keeps its form whatever happens."""
        made: dict[str, Any] = _good(self.ask(call, **options))
        Recommendation.model_validate(made)
        return made

    def report(self, *news: Mapping[str, Any], role: str = "cad") -> dict[str, Any]:
        """What became of news of units, which must be taken; without any, all depots have enough.

        A service starts without units.
        """
        given = news or counts(**COUNTS)
        taken: dict[str, Any] = _good(self.put("/v1/units", json=given, headers=bearer(role)))
        return taken

    def reply(
        self, made: Mapping[str, Any], action: str = "accept", role: str = "dispatcher", **more: Any
    ) -> httpx.Response:
        """Answer an advice, or the question of a running dispatch."""
        reason = {"reason_code": "other"} if action == "override" else {}
        body = {"action": action, **reason, **more}
        return self.post(f"{ASK}/{made['id']}/reply", json=body, headers=bearer(role))

    def read(self, path: str, role: str = "auditor") -> Any:
        """What an address holds."""
        return _good(self.get(path, headers=bearer(role)))

    def unit(self, id: str) -> dict[str, Any]:  # noqa: A002
        """A unit as the service knows it."""
        found: dict[str, Any] = self.read(f"/v1/units/{quote(id)}")
        return found


def _good(answer: httpx.Response) -> Any:
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


class Served(Client):
    """A client of the running process."""

    def __init__(self, url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
        super().__init__(base_url=url, timeout=PATIENCE_S, trust_env=False)
        self.url, self.process, self.log = url, process, log

    def lines(self) -> list[str]:
        return self.log.read_text().splitlines()


@contextmanager
def serving(
    config: Path, *, options: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> Iterator[Served]:
    """``ideal serve`` in another process, ready for calls; ended by SIGTERM."""
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
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stderr=output, stdout=output, env={**os.environ, **(environment or {})}
        )
        try:
            with Served(f"http://127.0.0.1:{port}", process, log) as served:
                yield served
        finally:
            stop(process)


@pytest.fixture(scope="module")
def served(town: Town) -> Iterator[Served]:
    """The service on the town with enough units, for the tests of one module."""
    name = f"served-{time.monotonic_ns()}.toml"
    with serving(town.config(name)) as running:
        running.report()
        yield running


def application(settings: ServiceSettings, engine: Engine | None = None) -> FastAPI:
    """The application, in this process, where a test can reach into it."""
    return create_app(settings, engine or Engine.load(settings))


class Local(Client):
    """A client of an application that a thread of this process serves on a real socket."""

    service: Service


@contextmanager
def local(app: FastAPI) -> Iterator[Local]:
    """The application served by a thread of this process; its state can be looked at."""
    service: Service = app.state.service
    service._decider._end = lambda: pytest.fail("a worker would have ended")  # and so would this
    config = uvicorn.Config(app, host="127.0.0.1", port=0, **server_options(service.settings))
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not server.started or "starting" in service.health().parts.values():
            assert thread.is_alive()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        with Local(
            base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S, trust_env=False
        ) as client:
            client.service = service
            yield client
    finally:
        service.events.close()
        server.should_exit = True
        thread.join(PATIENCE_S)


def codes(made: Mapping[str, Any]) -> list[str]:
    """All codes of what an answer says against itself."""
    return [code for one in made["degraded"] for code in (one["code"], *one["also"])]


def words(made: Mapping[str, Any], code: str) -> str:
    """What an answer says with a code."""
    said = (one["words"] for one in made["degraded"] if code in (one["code"], *one["also"]))
    return str(next(said))


def later(seconds: float) -> str:
    """A moment so many seconds from now."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


def with_radius(model: Any, radius: float) -> Any:
    """A model whose scenario sets have another size."""
    return replace(model, radius_rule=replace(model.radius_rule, constant=radius))
