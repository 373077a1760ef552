"""A solver in a process of its own.

The service then answers, records and shows while the solver computes. Both
start at the same time. A solver that dies or hangs takes nothing with it but
the call it works on, which gets an honest ``no_advice``.
"""

import asyncio
import logging
import os
import pickle
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from multiprocessing import connection
from typing import TYPE_CHECKING, Any

from ideal_dispatch.errors import IdealError, InputError

if TYPE_CHECKING:  # little is imported: the process is to start before anything else
    from ideal_dispatch.context import Calendar
    from ideal_dispatch.service.settings import ServiceSettings
    from ideal_dispatch.service.solver.messages import CityFacts

log = logging.getLogger(__name__)

HANGS_S = 60.0
"""A solver that has not answered so long after an advice was due is ended."""

_MAIN = "ideal_dispatch.service.solver.main"
_OVERDUE_S = 1.0  # after which calls go to another solver, if there is one
_SHORT_LIFE_S = 30.0  # after a shorter life the next process starts after a pause
_PAUSES_S = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0)
_SIZE = struct.Struct("!i")  # before each message, as multiprocessing writes them


class SolverLostError(IdealError):
    """The solver ended or hangs; it is started again."""


class _Child:
    """One process, and the pipe to it."""

    def __init__(self, awaited: bool) -> None:
        self.pipe, there = connection.Pipe()
        words = [str(there.fileno()), *(["awaited"] if awaited else [])]
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", _MAIN, *words],  # -P: nothing of this folder
            stdin=subprocess.DEVNULL, pass_fds=[there.fileno()],
            process_group=0,  # Ctrl-C is for the service, which ends its solver
        )  # fmt: skip
        there.close()

    def tell(self, given: "tuple[ServiceSettings, Calendar]") -> None:
        """Say what to solve."""
        with suppress(OSError):  # it ended at once: whoever listens to it sees that
            self.pipe.send(given)

    async def streams(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """The pipe, from now on for the event loop alone."""
        here = socket.socket(fileno=os.dup(self.pipe.fileno()))
        self.pipe.close()
        return await asyncio.open_unix_connection(sock=here)

    def end(self) -> None:
        """Kill it: a solver has nothing to save."""
        self.process.kill()
        self.process.wait()
        self.pipe.close()


class SolverProcess:
    """A process that solves, and another one whenever it ends.

    It ends with this process, however that ends. ``changed`` is called when
    it can advise, and when it no longer can. An ``early`` one starts at once
    and loads the program before it knows its settings. Its first failure says
    what is wrong with them, and is final.
    """

    def __init__(self, changed: Callable[[], None], hangs_s: float, early: bool) -> None:
        self._changed, self._hangs_s, self._early = changed, hangs_s, early
        self.traffic, self.restarts = "starting", 0
        self._warm = self._overdue = False
        self._facts: CityFacts | None = None
        self._failure = ""  # what was wrong with what it loaded
        self._given: tuple[ServiceSettings, Calendar]
        self._child = _Child(awaited=True) if early else None
        self._writer: asyncio.StreamWriter | None = None
        self._numbers, self._answers = count(), dict[int, asyncio.Future[Any]]()
        self._following: asyncio.Task[None] | None = None

    def begin(self, settings: "ServiceSettings", calendar: "Calendar") -> None:
        """Say what to solve; an early process loads it now."""
        self._given = settings, calendar
        if self._child is not None:
            self._child.tell(self._given)

    def start(self) -> None:
        """Go on whatever becomes of the process, on the event loop that runs."""
        self._following = asyncio.create_task(self._follow())

    @property
    def warm(self) -> bool:
        """Whether it can advise, as far as is known."""
        return self._warm and not self._overdue

    @property
    def facts(self) -> "CityFacts":
        """The city; an early process is waited for, or what is wrong with its settings raised."""
        while self._facts is None:
            assert self._child is not None
            try:
                self._take(*self._child.pipe.recv())
            except (EOFError, OSError):
                code = self._child.process.wait()
                raise InputError(self._failure or f"the solver ended (code {code})") from None
        return self._facts

    def alive(self) -> bool:
        """Whether the process runs; seen before anybody is told that it ended."""
        return self._child is not None and self._child.process.poll() is None

    def ask(
        self, name: str, given: tuple[Any, ...], due: float | None = None
    ) -> "asyncio.Future[Any]":
        """What the solver will answer, or the SolverLostError if it ends before; nothing is raised.

        With ``due``, a moment of :func:`time.monotonic`, a solver that does not answer by then gets
        no more calls, and is ended after a while.
        """
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        if self._writer is None:
            answer.set_exception(SolverLostError("the solver is being started"))
            return answer
        number = next(self._numbers)
        try:
            message = pickle.dumps((number, name, given))
        except Exception as error:
            answer.set_exception(IdealError(f"the solver cannot be asked ({error!r})"))
            return answer
        self._answers[number] = answer
        self._writer.write(_SIZE.pack(len(message)) + message)
        if due is not None:
            left_s = max(due - time.monotonic(), 0.0) + _OVERDUE_S
            late = loop.call_later(left_s, self._set_overdue, True)
            hung = loop.call_later(left_s + self._hangs_s, self._end_hung)

            def ended(_: "asyncio.Future[Any]") -> None:
                late.cancel()
                hung.cancel()
                self._set_overdue(False)

            answer.add_done_callback(ended)
        return answer

    def _set_overdue(self, overdue: bool) -> None:
        if overdue != self._overdue:
            self._overdue = overdue
            self._changed()

    def _end_hung(self) -> None:
        log.error("the solver hangs; it is ended")
        self._warm = False  # at once: it may take the kernel a moment to end it
        if self._child is not None:
            self._child.process.kill()

    def close(self) -> None:
        """End it; what runs is given up."""
        if self._following is not None:
            self._following.cancel()
            self._following = None
        if self._child is not None:
            self._child.end()
        self._lose()

    # --- the life of the process ------------------------------------------------

    async def _follow(self) -> None:
        """One life after another."""
        short_lives = 0
        while True:
            began = time.monotonic()
            why = await self._life()
            short_lives = short_lives + 1 if time.monotonic() - began < _SHORT_LIFE_S else 0
            pause_s = _PAUSES_S[min(short_lives, len(_PAUSES_S) - 1)]
            log.error("%s; another one is started in %.0f s", why, pause_s)
            await asyncio.sleep(pause_s)
            self.restarts += 1
            self._failure = ""

    async def _life(self) -> str:
        """From the start of a process to its end; why it ended."""
        try:
            child = self._child
            if child is None:
                child = self._child = _Child(self._early)
                child.tell(self._given)
            reader, self._writer = await child.streams()
        except OSError as error:
            return f"no solver could be started ({error.strerror or error})"
        try:
            while True:
                (size,) = _SIZE.unpack(await reader.readexactly(_SIZE.size))
                self._take(*pickle.loads(await reader.readexactly(size)))
        except (EOFError, OSError):
            pass
        except Exception:
            log.exception("the solver was not understood")
        child.process.kill()
        code = await asyncio.to_thread(child.process.wait)
        self._lose()
        return self._failure or f"the solver ended (code {code})"

    def _take(self, number: int | None, kind: str, value: Any) -> None:
        """Take an answer, or news of the solver."""
        if kind == "facts":
            self._facts = value
        elif kind == "failed to load":
            self._failure = value
        elif kind == "status":
            self._warm, self.traffic = value
            self._changed()
        elif number is not None and not (answer := self._answers.pop(number)).done():
            if kind == "advised":
                from pydantic_core import from_json

                answer.set_result(from_json(value))
            elif kind == "answered":
                answer.set_result(value)
            else:
                answer.set_exception(InputError(value) if kind == "refused" else IdealError(value))

    def _lose(self) -> None:
        """Nothing more comes from this process."""
        if self._writer is not None:
            self._writer.close()
        self._child = self._writer = None
        self._warm, self.traffic = False, "starting"
        answers, self._answers = self._answers, {}
        for answer in answers.values():
            if not answer.done():
                answer.set_exception(SolverLostError("the solver ended while it was asked"))
        self._changed()
