"""Runs a living city against a service: a CAD, its units' radios and its dispatcher in one."""

import asyncio
import time
from collections.abc import Coroutine
from contextlib import aclosing, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from ideal_dispatch.living.api import Api, Log, ServiceClock
from ideal_dispatch.living.city import City, Unit
from ideal_dispatch.living.dispatcher import Dispatcher
from ideal_dispatch.living.plan import Plan
from ideal_dispatch.living.radio import Radio
from ideal_dispatch.living.roads import network_of
from ideal_dispatch.living.tally import Tally
from ideal_dispatch.ranges import Checked, Count, Positive, Range, Share, Whole, ZeroOrMore

_KEEP_TIME_S = 20.0
_SETTLE_S = 5.0  # for answers and news that are under way at the end
_LONGEST_S, _SHORTEST_S = 0.25, 0.005  # real time between two looks at the city


@dataclass(frozen=True, slots=True)
class Life(Checked):
    """How a city lives. Minutes and thinking are on the service's clock, ``every_s`` is real.

    ``units`` and ``calls_per_day`` replace those of the city's own fleet.
    """

    seed: Whole = 1
    accept: Share = 0.95
    think_s: ZeroOrMore = 10.0
    every_s: Annotated[float, Range(0.05, 60)] = 1.0
    units: Count | None = None
    calls_per_day: Positive | None = None
    minutes: Positive | None = None


async def live(
    url: str, token: str, life: Life, stop: asyncio.Event, log_file: Path | None = None
) -> Tally:
    """Run the city until its minutes are over or ``stop`` is set; what it counted."""
    clock, tally = ServiceClock(), Tally()
    with closing(Log(log_file, clock)) as log:
        async with aclosing(Api(url, token, log)) as api:
            preparing = asyncio.create_task(_prepare(api, clock, life))
            stopping = asyncio.create_task(stop.wait())
            await asyncio.wait((preparing, stopping), return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            if preparing.done():
                await _live(api, clock, tally, life, stop, preparing.result())
            preparing.cancel()
    return tally


async def _prepare(api: Api, clock: ServiceClock, life: Life) -> Plan:
    """Learn the city and the clock of the service, once it is ready."""
    await api.insist("GET", "/readyz", None, lambda: True)
    facts = await api.fetch("/v1/city")
    network = network_of(await api.fetch("/v1/network.geojson"))
    plan = await asyncio.to_thread(Plan.of, facts, network, life.units, life.calls_per_day)
    asked = time.monotonic()
    clock.follow((await api.fetch("/v1/city")).get("clock"), asked)
    clock.begin(facts["time_zone"])
    return plan


async def _live(
    api: Api, clock: ServiceClock, tally: Tally, life: Life, stop: asyncio.Event, plan: Plan
) -> None:
    asks = set[asyncio.Task[None]]()
    async with asyncio.TaskGroup() as group:

        def spawn(work: Coroutine[Any, Any, None]) -> None:
            task = group.create_task(work)
            asks.add(task)
            task.add_done_callback(asks.discard)

        radio = Radio(api, clock, tally, life.every_s)
        dispatcher = Dispatcher(api, clock, tally, spawn, life.accept, life.think_s)

        def tell(unit: Unit, at_s: float) -> None:
            call = unit.incident
            if unit.status == "on_scene" and call is not None and call.first is None:
                tally.first_by_second += call.second is unit
            radio.tell(unit, at_s)

        city = City(plan, life.seed, clock.now_s(), tell, dispatcher.sent)
        radio.city = dispatcher.city = city
        radio.introduce()
        begun = [
            group.create_task(work)
            for work in (radio.run(), dispatcher.listen(), _keep_time(api, clock))
        ]
        await _advance(city, clock, life.minutes, stop)
        tally.waiting = len(city.waiting)
        city.close()
        api.ending = True
        if asks:
            await asyncio.wait(asks, timeout=_SETTLE_S)
        await radio.flush(_SETTLE_S)
        for task in [*begun, *asks]:
            task.cancel()
    tally.calls = city.calls


async def _advance(
    city: City, clock: ServiceClock, minutes: float | None, stop: asyncio.Event
) -> None:
    """Let the city live until its time is over."""
    end_s = float("inf") if minutes is None else clock.now_s() + 60.0 * minutes
    while not stop.is_set() and (now_s := clock.now_s()) < end_s:
        city.advance(now_s)
        wait_s = (min(city.next_s, end_s) - now_s) / clock.speed
        with suppress(TimeoutError):
            async with asyncio.timeout(min(max(wait_s, _SHORTEST_S), _LONGEST_S)):
                await stop.wait()


async def _keep_time(api: Api, clock: ServiceClock) -> None:
    """Set the clock by the service's now and then, where that answers."""
    while True:
        await asyncio.sleep(_KEEP_TIME_S)
        asked = time.monotonic()
        answer = await api.ask("GET", "/v1/city")
        if answer.good:
            clock.follow(answer.content.get("clock"), asked)
