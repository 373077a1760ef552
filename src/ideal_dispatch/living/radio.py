"""News of the units of a living city: every change of status in its order, and where they are."""

import asyncio
import time
from collections import deque
from contextlib import suppress
from typing import Any

from ideal_dispatch.living.api import Api, ServiceClock
from ideal_dispatch.living.city import City, Unit
from ideal_dispatch.living.roads import Sight
from ideal_dispatch.living.tally import Tally

UNITS = "/v1/fleet/units"
_MOST = 1000  # in one request
_PAUSE_S = 0.5
_PARKED = 5  # every so many times units that stand tell where, too


class Radio:
    """Sends news to the service as they happen, and positions every ``every_s`` real seconds.

    Units that drive tell each time where they are, those that stand every fifth time.
    A status that the service did not take is sent again until it does, before any later one of
    the unit. Only news that it refuses are let go. Positions are not kept: the next is newer.
    """

    def __init__(self, api: Api, clock: ServiceClock, tally: Tally, every_s: float) -> None:
        self._api, self._clock, self._tally, self._every_s = api, clock, tally, every_s
        self._news, self._woken = deque[dict[str, Any]](), asyncio.Event()
        self._turn, self._failed = 0, False
        self.city: City

    def tell(self, unit: Unit, at_s: float) -> None:
        """A unit's status changed."""
        facts = {
            "id": unit.id, "station": unit.station.depot, "status": unit.status,
            "call_id": None if unit.incident is None else unit.incident.id,
            "at": self._clock.text(at_s), **_place(self.city.seen(unit)[1]),
        }  # fmt: skip
        self._news.append(facts)
        self._api.log.write("status", **facts)
        self._woken.set()

    def introduce(self) -> None:
        """Tell of all units, as they are now."""
        for unit in self.city.units.values():
            self.tell(unit, self.city.now_s)

    async def run(self) -> None:
        """Send without end."""
        due = time.monotonic()
        while True:
            if not self._news and (left_s := due - time.monotonic()) > 0.0:
                self._woken.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(left_s):
                        await self._woken.wait()
                continue
            positions = time.monotonic() >= due
            if positions:
                due = time.monotonic() + self._every_s
            self._failed = not await self._send(positions)
            if self._failed:
                await asyncio.sleep(_PAUSE_S)

    async def flush(self, limit_s: float) -> None:
        """Wait until all statuses were sent, but not for long, nor for a service that is away."""
        until = time.monotonic() + limit_s
        while self._news and not self._failed and time.monotonic() < until:
            await asyncio.sleep(0.01)

    async def _send(self, positions: bool) -> bool:
        """One request with the oldest news of every unit; False where it must be tried again."""
        seen = self._positions() if positions else []  # which may bring news
        first: dict[str, dict[str, Any]] = {}
        for facts in self._news:
            first.setdefault(facts["id"], facts)
        news = list(first.values())[:_MOST]
        batch = (news + [one for one in seen if one["id"] not in first])[:_MOST]
        if not batch:
            return True
        answer = await self._api.ask("PUT", UNITS, batch, units=len(batch))
        if answer.good:
            self._done(news, answer.content)
        elif not answer.passing:
            self._tally.refused[answer.why] += 1
            if await self._one_by_one(news):  # it was a position, of a unit that it forgot
                self.introduce()
        return answer.good

    async def _one_by_one(self, news: list[dict[str, Any]]) -> bool:
        """Whether all are taken; one that is refused by itself is let go."""
        taken = True
        for facts in news:
            answer = await self._api.ask("PUT", UNITS, [facts], units=1)
            if answer.passing:
                return False
            if not answer.good:
                taken = False
                self._api.log.write("let go", why=answer.why, news=facts)
            self._done([facts], answer.content if answer.good else {})
        return taken

    def _done(self, news: list[dict[str, Any]], said: Any) -> None:
        for facts in news:
            self._news.remove(facts)
        self._tally.news += int(said.get("taken", 0))
        for one in said.get("ignored", ()):
            self._tally.ignored += 1
            self._api.log.write("ignored", **one)

    def _positions(self) -> list[dict[str, Any]]:
        """Where units are that drive, and now and then where the others stand."""
        city, everybody = self.city, self._turn % _PARKED == 0
        self._turn += 1
        city.advance(self._clock.now_s())
        at = self._clock.text(city.now_s)
        return [
            {"id": unit.id, "at": at, **_place(city.seen(unit)[1])}
            for unit in city.units.values()
            if everybody or unit.drive is not None
        ]


def _place(sight: Sight) -> dict[str, Any]:
    told = {
        "lon": round(sight.lon, 6), "lat": round(sight.lat, 6),
        "heading": None if sight.heading is None else round(sight.heading, 1),
        "speed_kmh": round(sight.speed_kmh, 1),
    }  # fmt: skip
    return {key: value for key, value in told.items() if value is not None}
