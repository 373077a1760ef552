"""A local stand-in for the service's ``PUT /v1/fleet/units``, well- or ill-behaved."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.units.statuses import StatusCodes
from tests.stand_in import Answer, Asked, serve

TOKEN = "cad-" + "x" * 32
STATIONS = ("Kelp Point", "Old Pier")


def refusal(status: int, code: str, message: str, **headers: str) -> Answer:
    error = {"code": code, "message": message, "where": None}
    return Answer(json.dumps({"error": error}), status, headers)


@dataclass
class FleetStandIn:
    """Keeps the units it is told of; ``first`` are its answers before it behaves."""

    first: list[Answer] = field(default_factory=list)
    codes: StatusCodes = field(default_factory=lambda: StatusCodes("fms"))
    body_bytes: int = 65_536
    url: str = ""
    units: dict[str, dict[str, Any]] = field(default_factory=dict)
    told: list[list[dict[str, Any]]] = field(default_factory=list)
    """The lists that were taken."""
    asked: list[Asked] = field(default_factory=list)

    def answer(self, asked: Asked) -> Answer:
        if self.first:
            return self.first.pop(0)
        assert (asked.method, asked.path) == ("PUT", "/v1/fleet/units")
        if asked.headers.get("authorization") != f"Bearer {TOKEN}":
            return refusal(401, "unauthorized", "the token is not known")
        if len(asked.body) > self.body_bytes:
            return refusal(413, "too_large", f"more than {self.body_bytes} bytes")
        news = json.loads(asked.body)
        try:
            return self._take(news)
        except InputError as error:
            return refusal(422, "invalid", str(error))

    def _take(self, news: list[dict[str, Any]]) -> Answer:
        if len(news) > 1000:
            raise InputError("at most 1000 units")
        after, ignored = dict(self.units), []
        for one in news:
            known = after.get(one["id"])
            if "station" in one and one["station"] not in STATIONS:
                raise InputError(f"unit {one['id']}: station {one['station']!r} is not known")
            status = {"status": self.codes.status(one["status"])} if "status" in one else {}
            if known is None and not ("station" in one and status):
                raise InputError(f"unit {one['id']} is new: give its station and its status")
            if known is not None and known["at"] > one["at"]:
                ignored.append({"id": one["id"], "why": "older than what is known"})
            else:
                after[one["id"]] = {**(known or {}), **one, **status}
        self.units = after
        self.told.append(news)
        return Answer(json.dumps({"taken": len(news) - len(ignored), "ignored": ignored}))

    @property
    def news(self) -> list[dict[str, Any]]:
        """All news that were taken, in their order."""
        return [one for news in self.told for one in news]


@contextmanager
def fleet(*first: Answer, **settings: Any) -> Iterator[FleetStandIn]:
    """A stand-in that runs; ``first`` are its answers to the first requests."""
    stand_in = FleetStandIn(list(first), **settings)
    with serve(stand_in.answer) as server:
        stand_in.url, stand_in.asked = server.url, server.asked
        yield stand_in
