"""The process of a solver: ``python -m ideal_dispatch.service.solver.main FD [awaited]``.

Over the pipe FD it is told the settings, then asked: (number, name, given). It tells
(number, kind, value): answers by their number, and news of itself. When the pipe ends, so
does the process. One that is ``awaited`` loads at full priority, for nobody is served before.
"""

import gc
import logging
import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from multiprocessing import connection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ideal_dispatch.service.solver.solver import Solver

log = logging.getLogger(__name__)

_BLAS = "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"
_NICE = 5  # answering and recording go first: they are short, and everybody waits for them

_Tell = Callable[[int | None, str, Any], None]


def main(descriptor: int, awaited: bool) -> None:
    """Load, tell, and answer until the service ends."""
    for ending in (signal.SIGINT, signal.SIGTERM):  # the service is told, and ends its solver
        signal.signal(ending, signal.SIG_IGN)
    gc.disable()  # until it is ready: loading makes no garbage
    for name in _BLAS:  # before it is loaded: there are as many solvers as are wanted
        os.putenv(name, "1")
    if not awaited:
        _step_back()
    service: connection.Connection[Any, Any] = connection.Connection(descriptor)

    from ideal_dispatch.service import clock, logs

    import_module("ideal_dispatch.service.solver.solver")  # while the settings are still read
    telling = threading.Lock()

    def tell(number: int | None, kind: str, value: Any) -> None:
        with telling:
            service.send((number, kind, value))

    try:
        settings, calendar = service.recv()
        clock.use(settings.clock)
        logs.configure(settings.server.log_level)
        solvers: list[Solver] = []
        threading.Thread(target=_load, args=(settings, calendar, tell, solvers)).start()
        threading.Thread(target=_end_with, args=(descriptor,)).start()
        _step_back()
        aside = ThreadPoolExecutor(1, "aside")
        while True:
            number, name, given = service.recv()
            if name == "advise":
                _tell_answer(solvers[0], number, name, given, tell)
            else:  # it may take longer than calls can wait
                answer = aside.submit(_tell_answer, solvers[0], number, name, given, tell)
                answer.add_done_callback(_check_told)
    except (EOFError, OSError):  # the service ended
        os._exit(0)
    except Exception:
        log.exception("a question or its answer makes no sense")
        os._exit(1)


def _end_with(descriptor: int) -> None:
    """End the process with the service, whatever is still being loaded, compiled or solved."""
    waiting = select.poll()
    waiting.register(descriptor, 0)  # for the end of the pipe alone
    waiting.poll()
    os._exit(0)


def _load(settings: Any, calendar: Any, tell: _Tell, solvers: "list[Solver]") -> None:
    """The solver, which prepares itself in a thread of its own, or why there is none."""
    from ideal_dispatch.errors import IdealError, in_one_line
    from ideal_dispatch.service.solver.assets import load_assets
    from ideal_dispatch.service.solver.solver import Solver

    def changed() -> None:
        tell(None, "status", (solver.warm, solver.traffic))
        _step_back()  # the thread that prepared it: it goes on with what nobody waits for

    try:
        solver = Solver(settings, load_assets(settings, calendar), changed)
        solvers.append(solver)
        tell(None, "facts", solver.facts)
        solver.start()
    except (IdealError, OSError) as error:
        tell(None, "failed to load", in_one_line(error))
        os._exit(1)
    except BaseException as error:  # a plug-in may also try to end the program
        log.exception("the solver cannot be loaded")
        tell(None, "failed to load", f"the solver cannot be loaded ({error!r}); it was logged")
        os._exit(1)


def _step_back() -> None:
    """Lower the priority of this thread, and of those that it starts."""
    with suppress(OSError):  # a service manager may forbid it
        now = os.getpriority(os.PRIO_PROCESS, 0)
        os.setpriority(os.PRIO_PROCESS, 0, max(now, _NICE))


def _tell_answer(
    solver: "Solver", number: int, name: str, given: tuple[Any, ...], tell: _Tell
) -> None:
    """Tell the answer to one question; a surprise must not leave who asks waiting."""
    from pydantic_core import to_json

    from ideal_dispatch.errors import IdealError
    from ideal_dispatch.service import logs

    logs.call_id.set(given[0].call_id if name == "advise" else "")
    try:
        kind, value = "answered", solver.method(name)(*given)
        if name == "advise":  # as JSON: the service may not know what a plug-in put into it
            kind, value = "advised", to_json(value, inf_nan_mode="null")
    except IdealError as error:
        kind, value = "refused", str(error)
    except BaseException as error:
        log.exception("%s: unexpected", name)
        kind, value = "failed", f"a fault of this program ({type(error).__name__}); it was logged"
    tell(number, kind, value)
    solver.tell_traffic()  # a live router is known by the calls it was asked about


def _check_told(answer: "Future[None]") -> None:
    """End the process where an answer could not be told: who asks then learns that it is lost."""
    error = answer.exception()
    if error is not None and not isinstance(error, OSError):  # that one: the service ended
        log.error("an answer could not be told", exc_info=error)
        os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]), "awaited" in sys.argv)
