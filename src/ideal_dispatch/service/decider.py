"""The thread that decides: one at a time, and replaced at once where it hangs.

Python holds the interpreter's lock: two threads decided no more than one. More calls at once need
more workers.
"""

import asyncio
import logging
import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Generic, TypeVar

from ideal_dispatch.errors import IdealError
from ideal_dispatch.service.errors import RecordUnavailableError
from ideal_dispatch.service.record.database import Job

log = logging.getLogger(__name__)

MOST_HUNG = 2
"""Threads that hang while they decide, after which the worker ends; another one is started."""

_MOST_STUCK = 8  # threads that wait for a database that does not answer
_LEAST = 0.15  # of a task's time: one begun with less would be taken for one that hangs
_GRACE_S = 0.02  # for a thread that was given up to come back by itself

_Found = TypeVar("_Found")


class LateError(IdealError):
    """No decision in time."""


class _Task(Generic[_Found]):
    def __init__(self, work: Callable[[Job], _Found], job: Job) -> None:
        self.work, self.job = work, job
        self.least_s = max(_LEAST * job.left_s, 0.0)
        self.done: Future[_Found] = Future()
        self.thread: threading.Thread | None = None  # that works on it


class Decider:
    """Works on one task after another, for an event loop that waits no longer than it has time.

    ``hung`` is called with the number of threads that hang while they decide, at each that is
    found; ``end`` where there are too many.
    """

    def __init__(
        self,
        hung: Callable[[int], None] = lambda _: None,
        end: Callable[[], None] = lambda: os._exit(70),
    ) -> None:
        self._hung, self._end = hung, end
        self._tasks: queue.SimpleQueue[_Task[object] | None] = queue.SimpleQueue()
        self._given_up: list[tuple[threading.Thread, str]] = []
        self._start()

    async def run(self, work: Callable[[Job], _Found], job: Job) -> _Found:
        """What the work finds by the job's ``due``; work that was not begun by then never is."""
        self._given_up = [one for one in self._given_up if one[0].is_alive()]
        if sum(phase == "database" for _, phase in self._given_up) >= _MOST_STUCK:
            raise RecordUnavailableError("the database does not answer")
        task = _Task(work, job)
        self._tasks.put(task)  # type: ignore[arg-type]
        waiting = asyncio.wrap_future(task.done)
        try:
            return await asyncio.wait_for(asyncio.shield(waiting), max(job.left_s, 0.0))
        except TimeoutError:
            phase = job.phase
            job.give_up()
        with suppress(TimeoutError, RecordUnavailableError):
            found = await asyncio.wait_for(asyncio.shield(waiting), _GRACE_S)
            if phase == "database":  # it was committed in the last moment
                return found
        waiting.add_done_callback(lambda one: one.cancelled() or one.exception())
        if task.thread is self._thread and not task.done.done():
            self._replace(phase)
        if phase == "database":
            raise RecordUnavailableError("the database does not answer in time")
        raise LateError("no decision in time")

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
        while (task := self._tasks.get()) is not None:
            if task.job.given_up or task.job.left_s <= task.least_s:
                task.done.set_exception(LateError("no decision in time"))
                continue
            task.thread = me
            try:
                found = task.work(task.job)
            except BaseException as error:  # a plug-in may also try to end the thread
                task.done.set_exception(error)
            else:
                task.done.set_result(found)
            if self._thread is not me:  # it was given up: another one works
                return
