"""A service that keeps to the contract of live units and fails when told to."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from ideal_dispatch import RoadNetwork
from ideal_dispatch.service.clock import ClockTable, moment_text
from ideal_dispatch.service.desk.events import Hub
from ideal_dispatch.service.units.unit import FREE

PATIENCE_S = 120.0


def geojson(network: RoadNetwork) -> dict[str, Any]:
    """The network as the service draws it, a line for every edge."""
    return {
        "type": "FeatureCollection",
        "features": [
            {
                "type": "Feature",
                "properties": {"name": "", "road_class": "residential", "edges": [edge]},
                "geometry": {
                    "type": "LineString", "coordinates": network.polyline(edge).round(6).tolist(),
                },
            }
            for edge in range(network.num_edges)
        ],
    }  # fmt: skip


@dataclass
class Service:
    """Advises a second for every call that has one free, and stands it down once it drives."""

    network: RoadNetwork
    speed: float = 60.0
    fault: Callable[[Request], int | None] = lambda request: None
    news: list[dict[str, Any]] = field(default_factory=list)
    units: dict[str, dict[str, Any]] = field(default_factory=dict)
    positions: Counter[str] = field(default_factory=Counter)
    advice: dict[str, dict[str, Any]] = field(default_factory=dict)
    dispatches: dict[str, dict[str, Any]] = field(default_factory=dict)
    closures: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        origin = datetime(2026, 3, 2, 1, tzinfo=UTC)
        self.clock = ClockTable(origin, datetime.now(UTC), self.speed)
        self.hub = Hub()

    def now(self) -> datetime:
        return self.clock.at(datetime.now(UTC))

    def told(self, batch: list[dict[str, Any]]) -> dict[str, Any]:
        assert len({one["id"] for one in batch}) == len(batch)
        for one in batch:
            assert datetime.fromisoformat(one["at"]) <= self.now() + timedelta(seconds=5)
            self.positions[one["id"]] += "lon" in one
            self.units.setdefault(one["id"], {}).update(one)
            if "status" in one:
                self.news.append(one)
                self._follow(one)
        return {"taken": len(batch), "ignored": []}

    def _follow(self, one: dict[str, Any]) -> None:
        """A second that drives is no longer needed."""
        if one["status"] != "en_route":
            return
        for number, dispatch in self.dispatches.items():
            its = dispatch["second"]["unit"], dispatch["call_id"], dispatch["advice"]
            if its == (one["id"], one["call_id"], "keep"):
                dispatch |= {"advice": "stand_down", "advice_id": f"{number}-1"}
                self.hub.publish("dispatch", dispatch)

    def advise(self, call: dict[str, Any]) -> dict[str, Any]:
        for known in self.advice.values():
            if known["call_id"] == call["call_id"]:
                return known
        unit = next(
            (
                one["id"] for one in self.units.values()
                if one.get("status") in FREE and one["id"] != call["primary"]["unit"]
            ),
            None,
        )  # fmt: skip
        made = {
            "id": f"r{len(self.advice)}",
            "call_id": call["call_id"],
            "decision": "primary_only" if unit is None else "send_second",
            "second": None if unit is None else {"unit": unit, "depot": "D0"},
            "expires_at": moment_text(self.now() + timedelta(seconds=1800)),
            "response": None,
        }
        self.advice[made["id"]] = made
        return made

    def replied(self, number: str, reply: dict[str, Any]) -> dict[str, Any]:
        made = self.advice[number]
        made["response"] = reply
        data = {"recommendation_id": number, "call_id": made["call_id"], "response": reply}
        self.hub.publish("response", data)
        if reply["action"] == "accept" and made["second"] is not None:
            self.dispatches[number] = {
                "id": number, "call_id": made["call_id"], "state": "running", "advice": "keep",
                "advice_id": None, "second": made["second"], "response": None,
            }  # fmt: skip
        return made

    def app(self) -> FastAPI:
        app = FastAPI()

        @app.middleware("http")
        async def failing(request: Request, follow: Any) -> Response:
            status = self.fault(request)
            if status is not None:
                return JSONResponse({"error": {"code": "unavailable"}}, status)
            answer: Response = await follow(request)
            return answer

        @app.get("/v1/city")
        async def city() -> dict[str, Any]:
            where = {"lon": 114.0, "lat": 22.0}, {"lon": 114.011, "lat": 22.009}
            return {
                "name": "Gridtown", "time_zone": "Asia/Hong_Kong",
                "depots": [{"name": f"D{i}", **one} for i, one in enumerate(where)],
                "clock": {"now": moment_text(self.now()), "speed": self.speed},
            }  # fmt: skip

        @app.get("/v1/network.geojson")
        async def network() -> dict[str, Any]:
            return geojson(self.network)

        @app.get("/v1/closures")
        async def closed() -> list[dict[str, Any]]:
            return self.closures

        @app.put("/v1/fleet/units")
        async def fleet(request: Request) -> Any:
            batch = await request.json()
            if any(one["id"] not in self.units and "station" not in one for one in batch):
                return JSONResponse({"error": {"code": "invalid"}}, 422)
            return self.told(batch)

        @app.post("/v1/recommendations")
        async def recommend(request: Request) -> dict[str, Any]:
            return self.advise(await request.json())

        @app.post("/v1/recommendations/{number}/response")
        async def respond(number: str, request: Request) -> dict[str, Any]:
            return self.replied(number, await request.json())

        @app.get("/v1/dispatches")
        async def running() -> list[dict[str, Any]]:
            return [one for one in self.dispatches.values() if one["state"] == "running"]

        @app.post("/v1/dispatches/{number}/response")
        async def stand_down(number: str, request: Request) -> dict[str, Any]:
            reply, dispatch = await request.json(), self.dispatches[number]
            assert reply["advice_id"] == dispatch["advice_id"]
            dispatch["response"] = reply
            if reply["action"] == "accept":
                dispatch["state"] = "stood_down"
            self.hub.publish("dispatch", dispatch)
            return dispatch

        @app.get("/v1/events")
        async def events() -> StreamingResponse:
            return StreamingResponse(self.hub.listen(1.0), media_type="text/event-stream")

        return app


@contextmanager
def serving(service: Service, port: int = 0) -> Iterator[str]:
    """The stand-in on loopback; its address."""
    service.hub = Hub()
    config = uvicorn.Config(
        service.app(), host="127.0.0.1", port=port, log_config=None, timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        until = time.monotonic() + PATIENCE_S
        while not server.started:
            assert thread.is_alive()
            assert time.monotonic() < until
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        service.hub.close()
        server.should_exit = True
        thread.join(PATIENCE_S)
