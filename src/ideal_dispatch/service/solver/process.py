"""A solver in a process of its own.

The service then answers, records and shows while the solver computes; both
start at the same time; and a solver that dies or hangs takes nothing with it
but the call it works on, which gets an honest ``no_advice``.
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

from ideal_dispatch.errors import IdealError, InputError
from ideal_dispatch.service.solver.solving import CityFacts, SolverLostError

if TYPE_CHECKING:  # little is imported: the process is to begin before anything else
    from ideal_dispatch.context import Calendar
    from ideal_dispatch.service.settings import ServiceSettings

log = logging.getLogger(__name__)

HANGS_S = 60.0
"""Without an answer so long after it was due, the solver is ended: nothing takes as long."""

_MAIN = "ideal_dispatch.service.solver.main"
_OVERDUE_S = 1.0  # after which calls go elsewhere, if there is another one
_SHORT_LIFE_S = 30.0  # whoever died sooner is started again after a pause
_PAUSES_S = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0)
_END_S = 2.0


class _Lane:
    """A connection on which one thing at a time is asked."""

    def __init__(self) -> None:
        self._here, self.there = Pipe()
        self._lock = threading.Lock()

    def ask(
        self,
        name: str,
        given: tuple[Any, ...],
        waits_s: tuple[float, ...],
        late: Callable[[], None],
    ) -> Any:
        """What the solver answers; ``late`` is called whenever one of the waits is over."""
        if not self._lock.acquire(timeout=sum(waits_s)):
            raise SolverLostError("the solver is busy")
        try:
            self._here.send((name, given))
            if not any(self._came(wait_s, late) for wait_s in waits_s):
                raise SolverLostError("the solver hung")
            kind, value = self._here.recv()
        except (EOFError, OSError):
            raise SolverLostError("the solver ended while it was asked") from None
        finally:
            self._lock.release()
        if kind == "answered":
            return value
        raise InputError(value) if kind == "refused" else IdealError(value)

    def _came(self, wait_s: float, late: Callable[[], None]) -> bool:
        if self._here.poll(wait_s):
            return True
        late()
        return False


class _Child:
    """One process, and the connections to it."""

    def __init__(self, awaited: bool = False) -> None:
        self.control: Connection[Any, Any]
        self.control, there = Pipe()
        words = [str(there.fileno()), *(["awaited"] if awaited else [])]
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", _MAIN, *words],  # -P: nothing of this folder
            stdin=subprocess.DEVNULL, pass_fds=[there.fileno()],
            process_group=0,  # Ctrl-C is for the service, which ends its solver
        )  # fmt: skip
        there.close()
        self.advice, self.aside = _Lane(), _Lane()
        self._told = False

    def begin(self, settings: "ServiceSettings", calendar: "Calendar") -> None:
        """Tell it what to solve."""
        self._told = True
        lanes = self.advice, self.aside
        with suppress(OSError):  # it ended at once: seen by whoever listens
            self.control.send((settings, calendar, len(lanes)))
            for lane in lanes:
                send_handle(self.control, lane.there.fileno(), self.process.pid)
        for lane in lanes:
            lane.there.close()

    def end(self) -> None:
        if self._told:  # else it is just being loaded, and has nothing to end
            with suppress(OSError, subprocess.TimeoutExpired):
                self.control.send(None)
                self.process.wait(_END_S)
        self.process.kill()
        self.process.wait()


class SolverProcess:
    """A process that solves, and another one whenever it ends.

    It ends with this process, however that ends. ``changed`` is called when
    it has become warm, and when it is so no more. An ``early`` one begins at
    once and loads the program before it knows its settings; its first failure
    is what is wrong with them, and final.
    """

    def __init__(self, changed: Callable[[], None], hangs_s: float, early: bool) -> None:
        self._changed, self._hangs_s, self._early = changed, hangs_s, early
        self.traffic = "starting"
        self.restarts = 0
        self._warm = self._overdue = False
        self._facts: Future[CityFacts] = Future()
        self._lock, self._closing = threading.Lock(), threading.Event()
        self._child = _Child(awaited=True) if early else None
        self._given: tuple[ServiceSettings, Calendar]
        self._watching = threading.Thread(target=self._watch, name="solver", daemon=True)

    def begin(self, settings: "ServiceSettings", calendar: "Calendar") -> None:
        """Load the city, and go on whatever becomes of the process."""
        self._given = settings, calendar
        self._watching.start()

    @property
    def warm(self) -> bool:
        """Whether it can advise, as far as is known."""
        return self._warm and not self._overdue

    @property
    def facts(self) -> CityFacts:
        """The city; waits until it is loaded, or raises what is wrong with the settings."""
        return self._facts.result()

    def alive(self) -> bool:
        """Whether the process runs; seen before anybody is told that it ended."""
        child = self._child
        return child is not None and child.process.poll() is None

    def advise(self, given: tuple[Any, ...], until: float) -> dict[str, Any]:
        """One advice at a time; who asks meanwhile waits."""
        child = self._known()
        waits_s = max(until - time.monotonic(), 0.0) + _OVERDUE_S, self._hangs_s
        try:
            made: dict[str, Any] = child.advice.ask("advise", (*given, until), waits_s, self._late)
        except SolverLostError:
            if self._overdue:
                log.error("the solver hangs; it is ended")
            self._warm = False  # at once: it may take the kernel a moment to end it
            child.process.kill()
            raise
        finally:
            if self._overdue:
                self._overdue = False
                self._changed()
        return made

    def ask(self, name: str, *given: Any) -> Any:
        """Anything else, beside the advice."""
        return self._known().aside.ask(name, given, (self._hangs_s,), lambda: None)

    def close(self) -> None:
        """End it; what runs is given up."""
        with self._lock:
            self._closing.set()
            child = self._child
        if child is not None:
            child.end()
        if self._watching.is_alive():
            self._watching.join(_END_S)

    def _known(self) -> _Child:
        child = self._child
        if child is None:
            raise SolverLostError("the solver is being started")
        return child

    def _late(self) -> None:
        self._overdue = True
        self._changed()

    # --- the life of the process ------------------------------------------------

    def _watch(self) -> None:
        """One life after another."""
        short_lives = 0
        while True:
            began = time.monotonic()
            why = self._live()
            if self._closing.is_set():
                return
            if self._early and not self._facts.done():
                self._facts.set_exception(InputError(why))
                return
            short_lives = short_lives + 1 if time.monotonic() - began < _SHORT_LIFE_S else 0
            pause_s = _PAUSES_S[min(short_lives, len(_PAUSES_S) - 1)]
            log.error("%s; another one is started in %.0f s", why, pause_s)
            if self._closing.wait(pause_s):
                return
            self.restarts += 1

    def _live(self) -> str:
        """From the start of a process to its end; why it ended."""
        try:
            with self._lock:
                if self._closing.is_set():
                    return ""
                child = self._child = self._child or _Child(awaited=self._early)
                child.begin(*self._given)
        except OSError as error:
            return f"no solver could be started ({error.strerror or error})"
        failure = ""
        try:
            failure = self._listen(child)
        except Exception:  # without an ear for it, it is as good as lost
            log.exception("the solver was not understood")
            child.process.kill()
        code = child.process.wait()
        self._child = None
        self._tell(False, "starting")
        return failure or f"the solver ended (code {code})"

    def _listen(self, child: _Child) -> str:
        """Until it ends; what was wrong with what it loaded."""
        failure = ""
        while True:
            try:
                kind, told = child.control.recv()
            except (EOFError, OSError):
                return failure
            if kind == "facts":
                known: Future[CityFacts] = Future() if self._facts.done() else self._facts
                known.set_result(told)
                self._facts = known
            elif kind == "failed":
                failure = told
            else:
                self._tell(*told)

    def _tell(self, warm: bool, traffic: str) -> None:
        self._warm, self.traffic = warm, traffic
        self._changed()
