"""A solver in a process of its own.

The service then answers, records and shows while the solver computes; both
start at the same time; and a solver that dies or hangs takes nothing with it:
its call gets an honest ``no_advice``, and another one is started.
"""

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from multiprocessing.reduction import send_handle
from typing import TYPE_CHECKING, Any

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.solving import CityFacts, SolverLostError

if TYPE_CHECKING:  # little is imported: the process is to begin before anything else
    from ideal_dispatch.service.settings import ServiceSettings

log = logging.getLogger(__name__)

HANGS_S = 60.0
"""Without an answer so long after it was due, the solver is ended: nothing takes as long."""

_MAIN = "ideal_dispatch.service.solver_main"
_SHORT_LIFE_S = 30.0  # whoever died sooner is started again after a pause
_PAUSES_S = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0)
_END_S = 2.0


class _Child:
    """One process, and the connections to it."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.control, there = Pipe()
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", _MAIN, str(there.fileno())],  # nothing of this folder
            stdin=subprocess.DEVNULL, pass_fds=[there.fileno()],
            process_group=0,  # Ctrl-C is for the service, which ends its solver
        )  # fmt: skip
        there.close()
        self.lanes = [Pipe(), Pipe()]  # for advice, and for what may take longer
        self.locks = [threading.Lock() for _ in self.lanes]

    def begin(self, settings: "ServiceSettings") -> None:
        """Tell it what to solve."""
        with suppress(OSError):  # it ended at once: seen by whoever listens
            self.control.send((settings, len(self.lanes)))
            for _, there in self.lanes:
                send_handle(self.control, there.fileno(), self.process.pid)
        for _, there in self.lanes:
            there.close()

    def ask(self, number: int, name: str, given: tuple[Any, ...], wait_s: float) -> Any:
        """What the solver answers on one of the lanes."""
        lane: Connection[Any, Any] = self.lanes[number][0]
        try:
            with self.locks[number]:
                lane.send((name, given))
                if not lane.poll(wait_s):
                    log.error("the solver hangs; it is ended")
                    self.process.kill()
                    raise SolverLostError("the solver hung")
                answered, value = lane.recv()
        except (EOFError, OSError):
            raise SolverLostError("the solver ended while it was asked") from None
        if not answered:
            raise InputError(value)
        return value

    def end(self) -> None:
        with suppress(OSError):
            self.control.send(None)
        try:
            self.process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class SolverProcess:
    """A process that solves; it begins at once, and another one whenever it ends.

    It loads the program, and with :meth:`begin` the city. It ends with this
    process, however that ends. ``changed`` is called when it has become
    warm, and when it is so no more.
    """

    def __init__(
        self, changed: Callable[[], None] = lambda: None, hangs_s: float = HANGS_S
    ) -> None:
        self._changed, self._hangs_s = changed, hangs_s
        self.warm = False
        self.traffic = "starting"
        self.restarts = 0
        self._facts: Future[CityFacts] = Future()
        self._closing = threading.Event()
        self._child = _Child()
        self._settings: ServiceSettings
        self._watching = threading.Thread(target=self._watch, name="solver", daemon=True)

    def begin(self, settings: "ServiceSettings") -> None:
        """Load the city, and go on whatever becomes of the process."""
        self._settings = settings
        self._child.begin(settings)
        self._watching.start()

    @property
    def facts(self) -> CityFacts:
        """The city; waits until it is loaded, or raises what is wrong with the settings."""
        return self._facts.result()

    def advise(self, given: tuple[Any, ...], until: float) -> dict[str, Any]:
        """One advice at a time; who asks meanwhile waits."""
        wait_s = max(until - time.monotonic(), 0.0) + self._hangs_s
        made: dict[str, Any] = self._child.ask(0, "advise", (*given, until), wait_s)
        return made

    def ask(self, name: str, *given: Any) -> Any:
        """Anything else, beside the advice."""
        return self._child.ask(1, name, given, self._hangs_s)

    def close(self) -> None:
        """End it; what runs is given up."""
        self._closing.set()
        self._child.end()
        if self._watching.is_alive():
            self._watching.join(_END_S)

    # --- the life of the process ------------------------------------------------

    def _watch(self) -> None:
        """Take what the process tells; when it ends, start another one."""
        short_lives = 0
        while True:
            child = self._child
            failure = self._listen(child)
            self._tell(False, "starting")
            code = child.process.wait()
            if self._closing.is_set():
                return
            why = failure or f"the solver ended (code {code})"
            if not self._facts.done():
                self._facts.set_exception(InputError(why))
                return
            lived_s = time.monotonic() - child.began
            short_lives = short_lives + 1 if lived_s < _SHORT_LIFE_S else 0
            pause_s = _PAUSES_S[min(short_lives, len(_PAUSES_S) - 1)]
            log.error("%s; another one is started in %.0f s", why, pause_s)
            if self._closing.wait(pause_s):
                return
            self.restarts += 1
            self._child = _Child()
            self._child.begin(self._settings)
            if self._closing.is_set():  # just now: who closed it ended the one before
                self._child.end()
                return

    def _listen(self, child: _Child) -> str:
        """Until it ends; what was wrong with what it loaded."""
        failure = ""
        while True:
            try:
                kind, told = child.control.recv()
            except (EOFError, OSError):
                return failure
            if kind == "facts":
                if self._facts.done():
                    self._facts = Future()
                self._facts.set_result(told)
            elif kind == "failed":
                failure = told
            else:
                self._tell(*told)

    def _tell(self, warm: bool, traffic: str) -> None:
        self.warm, self.traffic = warm, traffic
        self._changed()
