"""Which calls are let in, and the thread that decides: it is replaced at once where it hangs.

Python holds the interpreter's lock: two threads decided no more than one. More calls at once need
more workers.
"""

import asyncio
import logging
import os
import queue
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import TypeVar

from ideal_dispatch.errors import IdealError
from ideal_dispatch.service.errors import BusyError, RecordUnavailableError, StartingError
from ideal_dispatch.service.record.database import Job

log = logging.getLogger(__name__)

MOST_HUNG = 2
"""Threads that hang while they decide, after which the worker ends; another one is started."""

_MOST_STUCK = 8  # threads that wait for a database that does not answer
_LEAST = 0.15  # of a task's time: one begun with less would be taken for one that hangs
_SHARE = 3  # times what is free: what one client may have
_GRACE_S = 0.02  # for a thread that was given up to come back by itself

_Found = TypeVar("_Found")


class LateError(IdealError):
    """No decision in time."""


class Decider:
    """Runs one task after another, each within its deadline.

    ``hung`` is called with the number of threads that hang, ``end`` where there are too many.
    """

    def __init__(
        self,
        hung: Callable[[int], None] = lambda _: None,
        end: Callable[[], None] = lambda: os._exit(70),
    ) -> None:
        self._hung, self._end = hung, end
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._task: Callable[[], None] | None = None  # that the thread works on
        self._given_up: list[tuple[threading.Thread, str]] = []
        self._start()

    async def run(self, work: Callable[[Job], _Found], job: Job) -> _Found:
        """What the work finds by the job's ``due``; work that was not begun by then never is."""
        self._given_up = [one for one in self._given_up if one[0].is_alive()]
        if sum(phase == "database" for _, phase in self._given_up) >= _MOST_STUCK:
            raise RecordUnavailableError("the database does not answer")
        done: Future[_Found] = Future()
        least_s = max(_LEAST * job.left_s, 0.0)

        def task() -> None:
            try:
                if job.given_up or job.left_s <= least_s:
                    raise LateError("no decision in time")
                done.set_result(work(job))
            except BaseException as error:  # a plug-in may also try to end the thread
                done.set_exception(error)

        self._tasks.put(task)
        waiting = asyncio.wrap_future(done)
        waiting.add_done_callback(lambda one: one.cancelled() or one.exception())
        await asyncio.wait([waiting], timeout=max(job.left_s, 0.0))
        if waiting.done():
            return waiting.result()
        phase = job.phase
        job.give_up()
        await asyncio.wait([waiting], timeout=_GRACE_S)
        if not waiting.done() and self._task is task:
            self._replace(phase)
        if phase != "database":
            raise LateError("no decision in time")
        with suppress(asyncio.InvalidStateError):
            return waiting.result()  # it was committed in the last moment
        raise RecordUnavailableError("the database does not answer in time")

    def close(self) -> None:
        """Begin nothing new; what hangs is left behind."""
        self._tasks.put(None)

    def _replace(self, phase: str) -> None:
        self._given_up.append((self._thread, phase))
        hanging = sum(one == "deciding" for _, one in self._given_up)
        if phase == "deciding":
            self._hung(hanging)
            log.error("a decision hangs; its thread is replaced (%d hang)", hanging)
        if hanging >= MOST_HUNG:
            log.critical("%d decisions hang; this worker ends", hanging)
            self._end()
        self._start()

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._work, name="decisions", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        me = threading.current_thread()
        while self._thread is me and (task := self._tasks.get()) is not None:
            self._task = task
            task()


class Admission:
    """Lets calls in while the worker is ``ready`` and places are left.

    A client has at most three times as many places as are free: a quarter is left to others.
    """

    def __init__(self, places: int, ready: Callable[[], bool]) -> None:
        self._places, self._ready = places, ready
        self._held: Counter[str] = Counter()

    @property
    def inside(self) -> int:
        """Calls that are being answered or wait."""
        return self._held.total()

    def check(self, client: str) -> None:
        """Refuse at once where there is no place for this client now."""
        if not self._ready():
            raise StartingError("this worker is starting; ask again in a moment")
        if self._held[client] >= _SHARE * (self._places - self.inside):
            raise BusyError("more calls wait than can be answered in time; ask again in a moment")

    @contextmanager
    def admit(self, client: str) -> Iterator[None]:
        """A place for a call, or the refusal at once."""
        self.check(client)
        self._held[client] += 1
        try:
            yield
        finally:
            self._held[client] -= 1
