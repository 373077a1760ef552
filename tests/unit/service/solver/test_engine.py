"""Advice off the event loop: in time or late, admitted or refused."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from ideal_dispatch.service.solver.engine import LATE, BusyError, Engine


def test_what_is_in_time_is_given(event: threading.Event) -> None:
    engine = Engine(1, 0)
    until = time.monotonic() + 30
    given = asyncio.run(engine.run(lambda due: {"due": due}, until, engine.admit("cad")))
    assert given == {"due": until}
    assert engine.inside == 0
    engine.close()


@pytest.fixture
def event() -> threading.Event:
    return threading.Event()


def test_what_is_late_is_left_behind_and_keeps_its_place(event: threading.Event) -> None:
    engine = Engine(1, 1)

    def hangs(until: float) -> dict[str, Any]:
        event.wait(30)
        return {}

    place = engine.admit("cad")
    assert asyncio.run(engine.run(hangs, time.monotonic() + 1.0, place)) is LATE
    place.release()  # it was moved to the thread
    assert engine.inside == 1  # the thread is still busy with it
    assert (
        asyncio.run(engine.run(lambda _: {}, time.monotonic() + 0.05, engine.admit("cad"))) is LATE
    )
    assert engine.inside == 1  # it had not begun, so its place is free
    event.set()
    deadline = time.monotonic() + 10
    while engine.inside and time.monotonic() < deadline:
        time.sleep(0.01)
    assert engine.inside == 0
    engine.close()


def test_what_is_seen_too_late_is_late() -> None:
    """It was made in time, but the event loop was held up by something else."""
    engine = Engine(1, 0)

    async def held_up() -> object:
        until = time.monotonic() + 1.0
        running = asyncio.create_task(engine.run(lambda _: {}, until, engine.admit("cad")))
        await asyncio.sleep(0)
        while time.monotonic() < until:
            time.sleep(0.05)
        return await running

    assert asyncio.run(held_up()) is LATE
    engine.close()


def test_beyond_the_queue_the_refusal_is_at_once() -> None:
    engine = Engine(1, 2)
    engine.check("cad")
    places = [engine.admit("cad") for _ in range(3)]
    for refusing in (engine.admit, engine.check):
        with pytest.raises(BusyError, match="more calls wait than can be answered in time"):
            refusing("cad")
    moved = places[0].moved()
    places[0].release()
    assert engine.inside == 3  # whoever moved it away has nothing to give back
    moved.release()
    moved.release()
    assert engine.inside == 2  # once
    engine.admit("cad")
    engine.close()


def admitted(engine: Engine, holder: str) -> int:
    """How many calls of a holder who asks again and again are let in."""
    for number in range(100):
        try:
            engine.admit(holder)
        except BusyError:
            return number
    raise AssertionError("there is no limit")


def test_who_storms_leaves_places_to_others() -> None:
    engine = Engine(2, 14)
    assert admitted(engine, "storm") == 12
    assert admitted(engine, "another storm") == 3
    engine.admit("cad")
    assert engine.inside == 16
    engine.close()


def test_holders_take_turns_however_many_calls_each_has(event: threading.Event) -> None:
    engine, order = Engine(1, 20), list[str]()

    def work(name: str) -> Callable[[float], dict[str, Any]]:
        def step(until: float) -> dict[str, Any]:
            event.wait(30)
            order.append(name)
            return {}

        return step

    async def all_of_them() -> None:
        until = time.monotonic() + 60
        names = [("storm", "s1"), ("storm", "s2"), ("storm", "s3"), ("storm", "s4"), ("cad", "c1"),
                 ("desk", "d1"), ("cad", "c2")]  # fmt: skip
        running = []
        for holder, name in names:
            running.append(asyncio.create_task(engine.run(work(name), until, engine.admit(holder))))
            await asyncio.sleep(0)
        event.set()
        await asyncio.gather(*running)

    asyncio.run(all_of_them())
    assert order[0] == "s1"
    assert set(order[1:3]) == {"c1", "d1"}  # never served before, so they are first
    assert order[3:5] == ["s2", "c2"]
    assert order[5:] == ["s3", "s4"]
    engine.close()


def test_what_work_raises_is_raised_here() -> None:
    engine = Engine(1, 0)

    def fails(until: float) -> dict[str, Any]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(engine.run(fails, time.monotonic() + 30, engine.admit("cad")))
    assert engine.inside == 0
    engine.close()


def test_what_nobody_waits_for_any_more_does_not_begin(event: threading.Event) -> None:
    engine = Engine(1, 1)

    def hangs(until: float) -> dict[str, Any]:
        event.wait(30)
        return {}

    def begins(until: float) -> dict[str, Any]:
        begun.append(until)
        return {}

    begun: list[float] = []

    async def given_up() -> None:
        until = time.monotonic() + 30
        running = asyncio.create_task(engine.run(hangs, until, engine.admit("cad")))
        waiting = asyncio.create_task(engine.run(begins, until, engine.admit("cad")))
        await asyncio.sleep(0.05)
        for task in (waiting, running):
            task.cancel()
        await asyncio.wait([waiting, running])
        assert engine.inside == 1  # what had begun keeps its place
        event.set()
        await asyncio.sleep(0.05)

    asyncio.run(given_up())
    assert (engine.inside, begun) == (0, [])
    engine.close()
