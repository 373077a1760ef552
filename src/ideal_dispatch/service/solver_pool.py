"""Several solver processes: calls go to one that is free, and on while another one is lost."""

import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from ideal_dispatch.service.solver_process import HANGS_S, SolverProcess
from ideal_dispatch.service.solving import CityFacts, RoadMap, SolverLostError

if TYPE_CHECKING:  # little is imported: a process is to begin before anything else
    from ideal_dispatch.service.known import KnownUnits, KnownWeather
    from ideal_dispatch.service.schemas import RecommendationRequest
    from ideal_dispatch.service.settings import ServiceSettings


class SolverPool:
    """See :class:`~ideal_dispatch.service.solving.Solving`; its first process begins at once.

    The others begin when that one can advise: so it can do so sooner.
    """

    def __init__(self, hangs_s: float = HANGS_S) -> None:
        self._hangs_s, self._missing = hangs_s, 0
        self.warm = threading.Event()
        self._free: deque[SolverProcess] = deque()
        self._lock = threading.Condition()
        self._first = self._new()
        self._solvers = [self._first]
        self._settings: ServiceSettings

    def _new(self) -> SolverProcess:
        made = SolverProcess(self._changed, self._hangs_s)
        self._free.append(made)
        return made

    def begin(self, settings: "ServiceSettings") -> None:
        """Load the city."""
        self._settings, self._missing = settings, settings.server.solvers - 1
        self._first.begin(settings)

    def start(self) -> None:
        """It prepares since it has its settings."""

    @property
    def facts(self) -> CityFacts:
        return self._first.facts

    @property
    def traffic(self) -> str:
        return next((one.traffic for one in self._solvers if one.warm), self._first.traffic)

    @property
    def restarts(self) -> int:
        return sum(one.restarts for one in self._solvers)

    def advise(
        self,
        request: "RecommendationRequest",
        units: "KnownUnits",
        weather: "KnownWeather",
        until: float,
    ) -> dict[str, Any]:
        solver = self._taken()
        try:
            return solver.advise((request, units, weather), until)
        finally:
            with self._lock:
                self._free.append(solver)  # the next call finds its caches warm
                self._lock.notify()

    def _taken(self) -> SolverProcess:
        """A solver that is free; waits for one while all are busy."""
        with self._lock:
            while any(one.warm for one in self._solvers):
                for number in range(len(self._free) - 1, -1, -1):
                    if self._free[number].warm:
                        taken = self._free[number]
                        del self._free[number]
                        return taken
                self._lock.wait()
        raise SolverLostError("no solver is at work")

    def road_map(self) -> RoadMap:
        found: RoadMap = self._ask("road_map")
        return found

    def model_card(self) -> str:
        return str(self._ask("model_card"))

    def invented_call(self, number: int) -> dict[str, Any]:
        found: dict[str, Any] = self._ask("invented_call", number)
        return found

    def _ask(self, name: str, *given: Any) -> Any:
        solver = next((one for one in self._solvers if one.warm), self._first)
        return solver.ask(name, *given)

    def close(self) -> None:
        with self._lock:
            self._missing = 0
        for solver in self._solvers:
            solver.close()

    def _changed(self) -> None:
        """One of the solvers has become warm, or was lost."""
        with self._lock:
            if any(one.warm for one in self._solvers):
                self.warm.set()
                for _ in range(self._missing):
                    self._solvers.append(self._new())
                    self._solvers[-1].begin(self._settings)
                self._missing = 0
            else:
                self.warm.clear()
            self._lock.notify_all()
