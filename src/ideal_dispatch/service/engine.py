"""Advice off the event loop: due in time, with a bounded queue and a fast refusal beyond it."""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ideal_dispatch.errors import IdealError

RETRY_AFTER_S = 1


class BusyError(IdealError):
    """More calls wait than can be answered in time."""


class Late:
    """An answer that did not come in time."""


LATE = Late()


class Engine:
    """Runs work in ``solvers`` threads; at most ``queue`` more wait.

    Threads are enough: the kernels run without the interpreter's lock.
    """

    def __init__(self, solvers: int, queue: int) -> None:
        self._most = solvers + queue
        self._pool = ThreadPoolExecutor(solvers, "solver")
        self._lock = threading.Lock()
        self._inside = 0

    @property
    def inside(self) -> int:
        """Calls that are being answered or wait, those given up but still running included."""
        return self._inside

    def admit(self) -> None:
        """Take a place, or refuse at once; :meth:`run` or :meth:`leave` gives it back."""
        with self._lock:
            if self._inside >= self._most:
                raise BusyError(
                    f"{self._inside} calls are being answered or wait; ask again in a moment"
                )
            self._inside += 1

    async def run(
        self, work: Callable[[float], dict[str, Any]], until: float
    ) -> dict[str, Any] | Late:
        """What ``work`` gives by the moment ``until`` of :func:`time.monotonic`, else LATE.

        It is called with ``until``, in a thread; its place is free once it has ended.
        """

        def step() -> dict[str, Any] | Late:
            try:
                return LATE if time.monotonic() >= until else work(until)
            finally:
                self.leave()

        future = self._pool.submit(step)
        wrapped = asyncio.wrap_future(future)
        done, _ = await asyncio.wait([wrapped], timeout=max(until - time.monotonic(), 0.0))
        if done:
            return wrapped.result()
        if future.cancel():  # it had not begun
            self.leave()
        return LATE

    def leave(self) -> None:
        """Give back a place that was not used."""
        with self._lock:
            self._inside -= 1

    def close(self) -> None:
        """Begin nothing new; what runs has a time limit of its own."""
        self._pool.shutdown(wait=False, cancel_futures=True)
