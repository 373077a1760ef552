"""Several solver processes: calls go to one that is free, and on while another one is lost."""

import threading
import time
from datetime import date
from typing import TYPE_CHECKING, Any

from ideal_dispatch.service.solver.process import HANGS_S, SolverProcess
from ideal_dispatch.service.solver.solving import CityFacts, RoadMap, SolverLostError

if TYPE_CHECKING:  # little is imported: a process is to begin before anything else
    from ideal_dispatch.context import Calendar
    from ideal_dispatch.service.settings import ServiceSettings
    from ideal_dispatch.service.solver.call import Call
    from ideal_dispatch.service.solver.known import KnownUnits, KnownWeather


class SolverPool:
    """A :class:`~ideal_dispatch.service.solver.solving.Solving`; its first process starts at once.

    The others start when that one can advise: so it can do so sooner.
    """

    def __init__(self, hangs_s: float = HANGS_S) -> None:
        self._hangs_s, self._missing = hangs_s, 0
        self.warm = threading.Event()
        self._news = threading.Condition()
        self._first = SolverProcess(self._changed, hangs_s, early=True)
        self._solvers, self._last = [self._first], self._first
        self._free = [self._first]  # the one used last at the end: its caches are warm
        self._given: tuple[ServiceSettings, Calendar]

    def begin(self, settings: "ServiceSettings") -> None:
        """Load the city."""
        year = date.today().year
        self._given = settings, settings.city.calendar().looked_up(year - 1, year + 2)
        self._missing = settings.server.solvers - 1
        self._first.begin(*self._given)

    def start(self) -> None:
        """It prepares since it has its settings."""

    @property
    def facts(self) -> CityFacts:
        return self._first.facts

    @property
    def traffic(self) -> str:
        known = (self._last, *self._solvers)
        return next((one.traffic for one in known if one.warm), self._first.traffic)

    @property
    def working(self) -> int:
        return sum(one.warm for one in self._solvers)

    @property
    def restarts(self) -> int:
        return sum(one.restarts for one in self._solvers)

    def advise(
        self,
        call: "Call",
        units: "KnownUnits",
        weather: "KnownWeather",
        until: float,
    ) -> dict[str, Any]:
        solver = self._taken(until)
        try:
            made = solver.advise((call, units, weather), until)
            self._last = solver  # a live router is known by the calls it was asked about
            return made
        finally:
            with self._news:
                self._free.append(solver)
                self._news.notify()

    def _taken(self, until: float) -> SolverProcess:
        """A solver that is free; waits for one while all are busy."""
        with self._news:
            while self.working and (left_s := until - time.monotonic()) > 0:
                for solver in reversed(self._free):
                    if solver.warm and solver.alive():
                        self._free.remove(solver)
                        return solver
                self._news.wait(left_s)
        raise SolverLostError("no solver is at work" if not self.working else "all are busy")

    def road_map(self) -> RoadMap:
        found: RoadMap = self._ask("road_map")
        return found

    def model_card(self) -> str:
        return str(self._ask("model_card"))

    def invented_call(self, number: int) -> dict[str, Any]:
        found: dict[str, Any] = self._ask("invented_call", number)
        return found

    def _ask(self, name: str, *given: Any) -> Any:
        for solver in self._solvers:
            if solver.warm:
                return solver.ask(name, *given)
        raise SolverLostError("no solver is at work")

    def close(self) -> None:
        with self._news:
            self._missing = 0
        for solver in self._solvers:
            solver.close()

    def _changed(self) -> None:
        """One of the solvers has become warm, or is so no more."""
        with self._news:
            if self.working:
                self.warm.set()
                more = [
                    SolverProcess(self._changed, self._hangs_s, early=False)
                    for _ in range(self._missing)
                ]
                self._missing = 0
                self._solvers += more
                self._free += more
                for solver in more:
                    solver.begin(*self._given)
            else:
                self.warm.clear()
            self._news.notify_all()
