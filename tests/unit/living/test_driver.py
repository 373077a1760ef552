"""A living city against a service that keeps to the contract, and fails now and then."""

import asyncio
import json
import random
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request

from benchmarks.ports import free_port
from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import InputError
from ideal_dispatch.living.city import City
from ideal_dispatch.living.driver import Life, live
from ideal_dispatch.living.tally import Tally
from tests.unit.living.checks import check_statuses
from tests.unit.living.stand_in import PATIENCE_S, Service, serving

BUSY = Life(calls_per_day=1500, units=40, every_s=0.2, think_s=1.0)
"""Many calls, and never more than units: on a slow machine a test only takes longer."""


def run(
    url: str,
    until: Callable[[], bool],
    log: Path | None = None,
    life: Life = BUSY,
    token: str = "x",
) -> Tally:
    """Let the city live until something is so."""

    async def enough() -> Tally:
        stop = asyncio.Event()
        living = asyncio.create_task(live(url, token, life, stop, log))
        limit = time.monotonic() + PATIENCE_S
        while not (living.done() or until()):
            assert time.monotonic() < limit
            await asyncio.sleep(0.01)
        stop.set()
        return await living

    return asyncio.run(enough())


def stood_down(service: Service) -> int:
    return sum(one["state"] == "stood_down" for one in service.dispatches.values())


def at_scenes(service: Service) -> int:
    return sum(one["status"] == "on_scene" for one in service.news)


def lines(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def answered(tally: Tally) -> int:
    return sum(tally.decisions.values())


def test_calls_are_answered_and_seconds_sent_and_stood_down(
    grid: RoadNetwork, tmp_path: Path
) -> None:
    service, log = Service(grid), tmp_path / "log"
    with serving(service) as url:
        tally = run(url, lambda: stood_down(service) > 2, log)
    assert answered(tally) == tally.calls - tally.waiting
    assert not tally.refused
    assert 2 < tally.stood_down <= tally.seconds
    check_statuses(service.news)
    assert len(service.units) == 80
    assert max(service.positions.values()) > 2
    told = [
        {key: one[key] for key in ("id", "status", "at")}
        for one in lines(log) if one["kind"] == "status"
    ]  # fmt: skip
    assert len(told) == len(service.news)
    seconds = {one["unit"] for one in lines(log) if one["kind"] == "second"}
    assert seconds <= set(service.units)


def test_the_city_goes_on_while_requests_fail(grid: RoadNetwork) -> None:
    dice = random.Random(1)

    def fault(request: Request) -> int | None:
        if request.method == "GET":
            return None
        return dice.choice([None, None, None, 503, 500])

    service = Service(grid, fault=fault)
    with serving(service) as url:
        tally = run(url, lambda: len(service.advice) > 10 and at_scenes(service) > 4)
    # a call is asked about until somebody is there, and no longer
    assert 10 < answered(tally) <= tally.calls
    check_statuses(service.news)  # none was lost, or their order would not be possible


def test_the_city_goes_on_while_the_service_is_away(grid: RoadNetwork) -> None:
    service = Service(grid)
    done: list[Tally] = []
    port = free_port()
    with serving(service, port) as url:
        thread = threading.Thread(
            target=lambda: done.append(run(url, lambda: len(service.advice) > 10))
        )
        thread.start()
        while len(service.advice) < 4:
            assert thread.is_alive()
            time.sleep(0.01)
    before = len(service.news)
    with serving(service, port):
        thread.join()
    assert done
    assert len(service.news) > before
    check_statuses(service.news)


def test_a_refusal_is_counted_and_the_city_goes_on(grid: RoadNetwork) -> None:
    def fault(request: Request) -> int | None:
        return 409 if request.url.path == "/v1/recommendations" else None

    service = Service(grid, fault=fault)
    with serving(service) as url:
        tally = run(url, lambda: at_scenes(service) > 2)
    assert tally.refused["unavailable"] == tally.calls - tally.waiting
    assert dict(tally.rows())["refused: unavailable"] == str(tally.refused["unavailable"])
    check_statuses(service.news)


def test_units_that_the_service_forgot_are_told_again(grid: RoadNetwork) -> None:
    service = Service(grid)
    forgotten: list[int] = []

    def again() -> bool:
        if not forgotten and at_scenes(service) > 2:
            forgotten.append(len(service.news))
            service.units.clear()
        return bool(forgotten) and len(service.units) == 80

    with serving(service) as url:
        tally = run(url, again)
    assert tally.refused["invalid"] > 0
    check_statuses(service.news[: forgotten[0]])
    assert {one["id"] for one in service.news[forgotten[0] :]} == set(service.units)


def test_a_person_who_answers_first_is_obeyed(grid: RoadNetwork) -> None:
    service = Service(grid)
    own = service.advise

    def advise(call: dict[str, Any]) -> dict[str, Any]:
        made = own(call)
        if made["second"] is not None:
            timer = threading.Timer(
                0.1, service.replied, (made["id"], {"action": "accept", "by": "a person"})
            )
            timer.start()
        return made

    service.advise = advise  # type: ignore[method-assign]
    with serving(service) as url:
        tally = run(url, lambda: _turned_out(service) > 0, life=replace(BUSY, think_s=1e7))
    assert tally.seconds > 0
    assert not any("send_second" in reply for reply in tally.replies)


def test_the_city_keeps_off_the_roads_that_the_service_has_closed(
    grid: RoadNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[list[int]] = []
    monkeypatch.setattr(City, "keep_off", lambda city, edges: told.append(sorted(edges)))
    service = Service(grid)
    one, two = ({"edges": edges, "active": True} for edges in ([3, 5], [9]))
    service.closures = [one, {"edges": [7], "active": False}]

    def heard() -> bool:
        if told == [[3, 5]]:
            service.hub.publish("closures", [one, two])
        return len(told) > 1

    with serving(service) as url:
        run(url, heard)
    assert told[:2] == [[3, 5], [3, 5, 9]]


def _turned_out(service: Service) -> int:
    """Seconds that were sent."""
    advised = {
        (one["call_id"], one["second"]["unit"])
        for one in list(service.advice.values())
        if one["second"]
    }
    return sum((one["call_id"], one["id"]) in advised for one in service.news)


def test_a_token_that_is_refused_ends_it_in_a_line(grid: RoadNetwork) -> None:
    service = Service(grid, fault=lambda request: 401)
    with serving(service) as url, pytest.raises(InputError, match="check address and token"):
        run(url, bool)
    with pytest.raises(InputError, match="cannot be used"):
        run("nowhere", bool)


def test_it_can_be_stopped_before_the_service_answers() -> None:
    async def stopped() -> Tally:
        stop = asyncio.Event()
        asyncio.get_running_loop().call_later(0.2, stop.set)
        return await live("http://127.0.0.1:1", "x", BUSY, stop)

    assert asyncio.run(stopped()).calls == 0
