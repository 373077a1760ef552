"""Advice off the event loop: due in time, with a bounded queue and a fast refusal beyond it."""

import asyncio
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from typing import Any

from ideal_dispatch.errors import IdealError

RETRY_AFTER_S = 1
_SHARE = 3  # times what is free: what one holder may have


class BusyError(IdealError):
    """More calls wait than can be answered in time."""


class Late:
    """An answer that did not come in time."""


LATE = Late()


class Place:
    """The place of a holder's call inside, of one owner at a time; given back once."""

    def __init__(self, holder: str, leave: Callable[[str], None] | None) -> None:
        self.holder, self._leave = holder, leave

    def moved(self) -> "Place":
        """The place for another owner; nothing is left to give back here."""
        leave, self._leave = self._leave, None
        return Place(self.holder, leave)

    def release(self) -> None:
        """Give it back, unless that was done or it was moved."""
        leave, self._leave = self._leave, None
        if leave is not None:
            leave(self.holder)


_Job = tuple[Future[dict[str, Any] | Late], Callable[[], dict[str, Any] | Late]]


class Engine:
    """Runs work in ``solvers`` threads; at most ``queue`` more wait.

    Places are shared: nobody holds more than three times what is left free, so
    one who storms leaves a quarter to others. Of those who wait, the one who was
    served longest ago is next, however many calls each has. Threads are enough:
    the kernels run without the interpreter's lock.
    """

    def __init__(self, solvers: int, queue: int) -> None:
        self._most = solvers + queue
        self._pool = ThreadPoolExecutor(solvers, "solver")
        self._lock = threading.Lock()
        self._held: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[_Job]] = OrderedDict()  # the next holder first

    @property
    def inside(self) -> int:
        """Calls that are being answered or wait, those given up but still running included."""
        return self._held.total()

    def check(self, holder: str) -> None:
        """Refuse at once where there is no place for this holder now."""
        if self._held[holder] >= _SHARE * (self._most - self.inside):
            raise BusyError("more calls wait than can be answered in time; ask again in a moment")

    def admit(self, holder: str) -> Place:
        """A place, or the refusal at once."""
        with self._lock:
            self.check(holder)
            self._held[holder] += 1
        return Place(holder, self._leave)

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

        future: Future[dict[str, Any] | Late] = Future()
        with self._lock:
            if place.holder not in self._waiting:
                self._waiting[place.holder] = deque()
                self._waiting.move_to_end(place.holder, last=False)
            self._waiting[place.holder].append((future, step))
        self._pool.submit(self._next)
        wrapped = asyncio.wrap_future(future)
        done: set[asyncio.Future[Any]] = set()
        try:
            done, _ = await asyncio.wait([wrapped], timeout=max(until - time.monotonic(), 0.0))
        finally:
            if not done and future.cancel():  # it had not begun, and nobody waits any more
                place.release()
        # the event loop may have been held up: then it was made in time, but is seen too late
        return wrapped.result() if done and time.monotonic() < until else LATE

    def _next(self) -> None:
        """Do what is next; each job was submitted once, so there is one."""
        with self._lock:
            holder = next(holder for holder, jobs in self._waiting.items() if jobs)
            self._waiting.move_to_end(holder)
            future, step = self._waiting[holder].popleft()
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(step())
        except BaseException as error:
            future.set_exception(error)

    def _leave(self, holder: str) -> None:
        with self._lock:
            self._held[holder] -= 1

    def close(self) -> None:
        """Begin nothing new; what runs has a time limit of its own."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            for future, _ in chain.from_iterable(self._waiting.values()):
                future.cancel()
