"""Several solver processes: calls go to one that is free, and on while another one is lost."""

import asyncio
import time
from collections import OrderedDict, deque
from datetime import date
from typing import TYPE_CHECKING, Any

from ideal_dispatch.errors import IdealError
from ideal_dispatch.service.solver.process import HANGS_S, SolverLostError, SolverProcess

if TYPE_CHECKING:  # little is imported: a process is to start before anything else
    from ideal_dispatch.context import Calendar
    from ideal_dispatch.service.admission import Slot
    from ideal_dispatch.service.settings import ServiceSettings
    from ideal_dispatch.service.solver.messages import Call, CityFacts, KnownUnits, KnownWeather


class LateError(IdealError):
    """No advice came by the moment at which it was due."""


class SolverPool:
    """The solvers of a worker; the first process starts at once.

    The others start when that one can advise: so it can do so sooner. Of those
    who wait for a solver, the one who was served longest ago is next, however
    many calls each has. From :meth:`start` on, it lives on one event loop.
    """

    def __init__(self, hangs_s: float = HANGS_S) -> None:
        self._hangs_s, self._missing = hangs_s, 0
        self._first = self._last = self._process(early=True)
        self._solvers = [self._first]
        self._free = [self._first]  # the one used last at the end: its caches are warm
        self._waiting: OrderedDict[str, deque[asyncio.Future[SolverProcess]]] = OrderedDict()
        self._given: tuple[ServiceSettings, Calendar]

    def _process(self, early: bool) -> SolverProcess:
        return SolverProcess(self._changed, self._hangs_s, early)

    def begin(self, settings: "ServiceSettings") -> None:
        """Load the city."""
        year = date.today().year
        self._given = settings, settings.city.calendar().looked_up(year - 1, year + 2)
        self._missing = settings.server.solvers - 1
        self._first.begin(*self._given)

    def start(self) -> None:
        """Go on whatever becomes of the solvers, on the event loop that runs."""
        self._first.start()

    @property
    def facts(self) -> "CityFacts":
        """The city; waits until it is loaded, or raises what is wrong with the settings."""
        return self._first.facts

    @property
    def traffic(self) -> str:
        """Whether live traffic can be used: "ready", "starting", or in words why not."""
        known = (self._last, *self._solvers)
        return next((one.traffic for one in known if one.warm), self._first.traffic)

    @property
    def working(self) -> int:
        """How many calls can be advised on at the same time."""
        return sum(one.warm for one in self._solvers)

    @property
    def restarts(self) -> int:
        """How often a solver was lost."""
        return sum(one.restarts for one in self._solvers)

    async def advise(
        self, call: "Call", units: "KnownUnits", weather: "KnownWeather", due: float, slot: "Slot"
    ) -> dict[str, Any]:
        """The advice, with the checksums of what made it as ``versions``.

        ``due`` is a moment of :func:`time.monotonic`: LateError from then on. A
        solver that is late goes on meanwhile, and keeps the call's slot.
        """
        kept = slot.moved()
        try:
            solver = await self._free_solver(kept.holder, due)
        except BaseException:
            kept.release()
            raise
        answer = solver.ask("advise", (call, units, weather, due), due)

        def ended(answer: "asyncio.Future[Any]") -> None:
            kept.release()
            if answer.exception() is None:
                self._last = solver  # a live router is known by the calls it was asked about
            self._free.append(solver)
            self._hand_out()

        answer.add_done_callback(ended)
        await asyncio.wait([answer], timeout=max(due - time.monotonic(), 0.0))
        # the event loop may have been held up: then it was made in time, but is seen too late
        if not answer.done() or time.monotonic() >= due:
            raise LateError("the solver did not answer in time")
        return {**answer.result(), "versions": solver.facts.checksums}

    async def _free_solver(self, holder: str, due: float) -> SolverProcess:
        """A solver that is free, once this holder is next."""
        if not self.working:
            raise SolverLostError("no solver is at work")
        if holder not in self._waiting:
            self._waiting[holder] = deque()
            self._waiting.move_to_end(holder, last=False)
        waiter: asyncio.Future[SolverProcess] = asyncio.get_running_loop().create_future()
        self._waiting[holder].append(waiter)
        self._hand_out()
        try:
            if not waiter.done():
                await asyncio.wait([waiter], timeout=max(due - time.monotonic(), 0.0))
            if not waiter.done() or time.monotonic() >= due:
                raise LateError("no solver was free in time")
            return waiter.result()
        except BaseException:
            # nobody takes what was handed out
            if not waiter.cancel() and waiter.exception() is None:
                self._free.append(waiter.result())
                self._hand_out()
            raise

    def _hand_out(self) -> None:
        """Give the free solvers to those who wait."""
        for solver in [one for one in reversed(self._free) if one.warm and one.alive()]:
            waiter = self._next()
            if waiter is None:
                return
            self._free.remove(solver)
            waiter.set_result(solver)

    def _next(self) -> "asyncio.Future[SolverProcess] | None":
        """Who waits, and was served longest ago."""
        for holder, waiters in self._waiting.items():
            while waiters:
                waiter = waiters.popleft()
                if not waiter.done():
                    self._waiting.move_to_end(holder)
                    return waiter
        return None

    async def ask(self, name: str, *given: Any) -> Any:
        """Anything else that a solver can be asked, beside the advice."""
        for solver in self._solvers:
            if solver.warm:
                try:
                    async with asyncio.timeout(self._hangs_s):
                        return await solver.ask(name, given)
                except TimeoutError:
                    raise SolverLostError("the solver hung") from None
        raise SolverLostError("no solver is at work")

    def close(self) -> None:
        """End them; what runs is given up."""
        self._missing = 0
        for solver in self._solvers:
            solver.close()

    def _changed(self) -> None:
        """One of the solvers can advise, or no longer can."""
        if self.working:
            more = [self._process(early=False) for _ in range(self._missing)]
            self._missing = 0
            self._solvers += more
            self._free += more
            for solver in more:
                solver.begin(*self._given)
                solver.start()
            self._hand_out()
        else:
            while (waiter := self._next()) is not None:
                waiter.set_exception(SolverLostError("no solver is at work"))
