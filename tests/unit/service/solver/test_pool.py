"""Calls wait for a solver in turn, and no longer than until they are due."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest

from ideal_dispatch.service.admission import Admission
from ideal_dispatch.service.solver.messages import Call, CityFacts, KnownUnits, KnownWeather
from ideal_dispatch.service.solver.pool import LateError, SolverPool
from ideal_dispatch.service.solver.process import SolverLostError, SolverProcess


class Held(SolverProcess):
    """A solver that answers when the test says so."""

    def __init__(self, changed: Callable[[], None]) -> None:
        super().__init__(changed, 60.0, early=False)
        self._warm, self.asked = True, list[tuple[Any, asyncio.Future[Any]]]()
        self._facts = CityFacts("town", {}, (0, 0, 1, 1), (0, 0), "UTC", {"model": "m"})

    def alive(self) -> bool:
        return True

    def ask(
        self, name: str, given: tuple[Any, ...], due: float | None = None
    ) -> "asyncio.Future[Any]":
        answer = asyncio.get_running_loop().create_future()
        self.asked.append((given[0], answer))
        return answer

    def lose(self) -> None:
        self._warm = False
        self._changed()

    async def answer(self) -> Any:
        """Answer the last question; what was asked."""
        while not self.asked or self.asked[-1][1].done():
            await asyncio.sleep(0)
        given, answer = self.asked[-1]
        answer.set_result({"advice": given})
        return given


class OneHeld(SolverPool):
    """A pool with one such solver."""

    def _process(self, early: bool) -> SolverProcess:
        return Held(self._changed)

    @property
    def solver(self) -> Held:
        assert isinstance(self._first, Held)
        return self._first


SLOTS = Admission(1000, lambda: True)


def advise(
    pool: SolverPool, name: str = "call", holder: str = "cad", left_s: float = 60.0
) -> Coroutine[Any, Any, dict[str, Any]]:
    call, slot = cast(Call, name), SLOTS.admit(holder)
    units, weather = KnownUnits({}, None), KnownWeather()
    return pool.advise(call, units, weather, time.monotonic() + left_s, slot)


async def asked(pool: SolverPool, *calls: tuple[str, str]) -> list["asyncio.Task[Any]"]:
    """Calls of holders, one after the other."""
    running = []
    for holder, name in calls:
        running.append(asyncio.create_task(advise(pool, name, holder)))
        await asyncio.sleep(0)
    return running


def test_what_is_late_is_left_behind_and_keeps_its_slot_and_its_solver() -> None:
    async def late() -> None:
        pool, before = OneHeld(), SLOTS.inside
        with pytest.raises(LateError):
            await advise(pool, "late", left_s=0.05)
        assert SLOTS.inside == before + 1
        waiting = SLOTS.admit("cad")
        with pytest.raises(LateError, match="no solver was free in time"):
            await pool.advise(
                cast(Call, "next"), KnownUnits({}, None), KnownWeather(),
                time.monotonic() + 0.05, waiting,
            )  # fmt: skip
        assert SLOTS.inside == before + 1  # it had not begun, so its slot is free
        await pool.solver.answer()
        (running,) = await asked(pool, ("cad", "after"))
        assert await pool.solver.answer() == "after"
        assert await running == {"advice": "after", "versions": {"model": "m"}}
        assert SLOTS.inside == before

    asyncio.run(late())


def test_what_is_seen_too_late_is_late() -> None:
    """It was made in time, but the event loop was held up by something else."""

    async def held_up() -> None:
        pool, began = OneHeld(), time.monotonic()
        running = asyncio.create_task(advise(pool, left_s=1.0))
        await pool.solver.answer()
        while time.monotonic() < began + 1.5:
            time.sleep(0.05)
        with pytest.raises(LateError):
            await running

    asyncio.run(held_up())


def test_holders_take_turns_however_many_calls_each_has() -> None:
    async def in_turn() -> list[str]:
        pool = OneHeld()
        running = await asked(
            pool, ("storm", "s1"), ("storm", "s2"), ("storm", "s3"), ("storm", "s4"),
            ("cad", "c1"), ("desk", "d1"), ("cad", "c2"),
        )  # fmt: skip
        order = [await pool.solver.answer() for _ in running]
        await asyncio.gather(*running)
        return order

    order = asyncio.run(in_turn())
    assert order[0] == "s1"
    assert set(order[1:3]) == {"c1", "d1"}  # never served before, so they are first
    assert order[3:5] == ["s2", "c2"]
    assert order[5:] == ["s3", "s4"]


def test_what_nobody_waits_for_any_more_does_not_begin() -> None:
    async def given_up() -> None:
        pool = OneHeld()
        running, waiting, last = await asked(pool, ("cad", "1"), ("cad", "2"), ("cad", "3"))
        for task in (waiting, running):
            task.cancel()
        await asyncio.wait([waiting, running])
        assert await pool.solver.answer() == "1"  # what had begun goes on
        assert await pool.solver.answer() == "3"
        assert (await last)["advice"] == "3"

    asyncio.run(given_up())


def test_a_solver_handed_to_somebody_who_left_goes_to_the_next() -> None:
    async def left() -> None:
        pool = OneHeld()
        _, leaving, last = await asked(pool, ("cad", "1"), ("cad", "2"), ("cad", "3"))
        await pool.solver.answer()
        while pool.solver not in pool._free and leaving.cancelling() == 0:
            leaving.cancel()  # in the moment in which the solver is handed over
        assert await pool.solver.answer() == "3"
        assert (await last)["advice"] == "3"

    asyncio.run(left())


def test_who_waits_learns_at_once_that_no_solver_is_left() -> None:
    async def lost() -> None:
        pool = OneHeld()
        _, waiting = await asked(pool, ("cad", "1"), ("cad", "2"))
        pool.solver.lose()
        with pytest.raises(SolverLostError, match="no solver is at work"):
            await waiting
        with pytest.raises(SolverLostError, match="no solver is at work"):
            await advise(pool)
        with pytest.raises(SolverLostError, match="no solver is at work"):
            await pool.ask("model_card")
        await pool.solver.answer()

    asyncio.run(lost())
