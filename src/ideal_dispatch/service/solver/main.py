"""The process of a solver: ``python -m ideal_dispatch.service.solver.main FD [awaited]``.

Over that connection it is told the settings, given more connections, on each
of which the service asks one thing at a time, and tells what becomes of it;
when the connection ends, so does the process. One that is ``awaited`` loads at
full priority, for nobody is served before it has.
"""

import gc
import logging
import os
import signal
import sys
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ideal_dispatch.service.solver.solver import Solver

log = logging.getLogger(__name__)

ASKED = frozenset({"advise", "road_map", "model_card", "invented_call"})
"""Methods of a solver that can be asked from another process."""

_BLAS = "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"
_NICE = 5  # answering and recording go first: they are short, and everybody waits for them


def main(number: int, awaited: bool) -> None:
    """Load, tell, and answer until the service ends."""
    for ending in (signal.SIGINT, signal.SIGTERM):  # the service is told, and ends its solver
        signal.signal(ending, signal.SIG_IGN)
    gc.disable()  # until it is ready: loading makes no garbage
    for name in _BLAS:  # before it is loaded: there are as many solvers as are wanted
        os.putenv(name, "1")
    if not awaited:
        _step_back()
    control = Connection(number)

    from ideal_dispatch.errors import IdealError, in_one_line
    from ideal_dispatch.service import logs
    from ideal_dispatch.service.solver.assets import load_assets
    from ideal_dispatch.service.solver.solver import Solver

    try:
        settings, calendar, count = control.recv()
        lanes = [Connection(recv_handle(control)) for _ in range(count)]
    except (EOFError, OSError):  # the service ended before it could tell
        return
    threading.Thread(target=_end_with, args=(control,), daemon=True).start()
    logs.configure(settings.server.log_level)
    telling = threading.Lock()

    def changed() -> None:
        with telling:
            control.send(("status", (solver.warm.is_set(), solver.traffic)))
        _step_back()  # the thread that prepared it: it goes on with what nobody waits for

    try:
        solver = Solver(settings, load_assets(settings, calendar), changed)
    except (IdealError, OSError) as error:
        control.send(("failed", in_one_line(error)))
        return
    control.send(("facts", solver.facts))
    solver.start()
    threads = [threading.Thread(target=_answer, args=(solver, lane)) for lane in lanes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _step_back() -> None:
    """Lower the priority of this thread, and of those that it starts."""
    with suppress(OSError):  # a service manager may forbid it
        now = os.getpriority(os.PRIO_PROCESS, 0)
        os.setpriority(os.PRIO_PROCESS, 0, max(now, _NICE))


def _end_with(control: "Connection[Any, Any]") -> None:
    with suppress(EOFError, OSError):
        control.recv()
    os._exit(0)  # whatever is still being loaded, compiled or solved


def _answer(solver: "Solver", lane: "Connection[Any, Any]") -> None:
    """What is asked there, one after another; who cannot be understood is not answered."""
    _step_back()
    try:
        while True:
            name, given = lane.recv()
            lane.send(_answered(solver, name, given))
    except (EOFError, OSError):
        return
    except Exception:
        log.exception("a question makes no sense")
        os._exit(1)


def _answered(solver: "Solver", name: str, given: tuple[Any, ...]) -> tuple[str, Any]:
    from ideal_dispatch.errors import IdealError

    if name not in ASKED:
        return "failed", f"{name}: nothing that can be asked"
    try:
        return "answered", getattr(solver, name)(*given)
    except IdealError as error:
        return "refused", str(error)
    except Exception as error:  # a surprise must not leave who asks waiting
        log.exception("%s: unexpected", name)
        return "failed", f"a fault of this program ({type(error).__name__}); it was logged"


if __name__ == "__main__":
    main(int(sys.argv[1]), "awaited" in sys.argv)
