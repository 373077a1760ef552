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


class Place:
    """A call's place inside, of one owner at a time; given back once."""

    def __init__(self, leave: Callable[[], None] | None) -> None:
        self._leave = leave

    def moved(self) -> "Place":
        """The place for another owner; nothing is left to give back here."""
        leave, self._leave = self._leave, None
        return Place(leave)

    def release(self) -> None:
        """Give it back, unless that was done or it was moved."""
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()


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

    def check(self) -> None:
        """Refuse at once where there is no place now."""
        if self._inside >= self._most:
            raise BusyError("more calls wait than can be answered in time; ask again in a moment")

    def admit(self) -> Place:
        """A place, or the refusal at once."""
        with self._lock:
            self.check()
            self._inside += 1
        return Place(self._leave)

    async def run(
        self, work: Callable[[float], dict[str, Any]], until: float, place: Place
    ) -> dict[str, Any] | Late:
        """What ``work`` gives by the moment ``until`` of :func:`time.monotonic`, else LATE.

        It is called with ``until``, in a thread; the place is free once it has ended.
        """
        place = place.moved()

        def step() -> dict[str, Any] | Late:
            try:
                return LATE if time.monotonic() >= until else work(until)
            finally:
                place.release()

        future = self._pool.submit(step)
        wrapped = asyncio.wrap_future(future)
        done: set[asyncio.Future[Any]] = set()
        try:
            done, _ = await asyncio.wait([wrapped], timeout=max(until - time.monotonic(), 0.0))
        finally:
            if not done and future.cancel():  # it had not begun, and nobody waits any more
                place.release()
        return wrapped.result() if done else LATE

    def _leave(self) -> None:
        with self._lock:
            self._inside -= 1

    def close(self) -> None:
        """Begin nothing new; what runs has a time limit of its own."""
        self._pool.shutdown(wait=False, cancel_futures=True)
