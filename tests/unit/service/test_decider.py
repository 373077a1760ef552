"""The thread that decides: in order, in time, and replaced where it hangs."""

import asyncio
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.decider import Decider, LateError
from ideal_dispatch.service.errors import RecordUnavailableError
from ideal_dispatch.service.record.database import Job

Work = Callable[[Job], Any]


def soon(seconds: float = 60.0) -> Job:
    return Job(time.monotonic() + seconds)


def hang(phase: str, until: threading.Event, job: Job) -> str:
    """Work that takes as long as the test wants."""
    with job.doing(phase):
        until.wait(60)
    return "late"


def test_one_after_another_in_the_order_of_coming() -> None:
    async def run() -> tuple[list[int], set[int]]:
        decider, threads = Decider(), set[int]()

        def work(number: int, job: Job) -> int:
            threads.add(threading.get_ident())
            return number

        found = await asyncio.gather(*(decider.run(partial(work, n), soon()) for n in range(50)))
        decider.close()
        return found, threads

    found, threads = asyncio.run(run())
    assert found == [*range(50)]
    assert len(threads) == 1


def test_an_error_reaches_who_asked_and_the_next_is_answered() -> None:
    def refuse(job: Job) -> None:
        raise InputError("no")

    async def run() -> str:
        decider = Decider()
        with pytest.raises(InputError):
            await decider.run(refuse, soon())
        found: str = await decider.run(lambda job: "yes", soon())
        decider.close()
        return found

    assert asyncio.run(run()) == "yes"


def test_work_that_waited_too_long_is_never_begun() -> None:
    begun = []

    async def run() -> None:
        decider, until = Decider(), threading.Event()
        first = asyncio.create_task(decider.run(partial(hang, "deciding", until), soon()))
        await asyncio.sleep(0)
        with pytest.raises(LateError):
            await decider.run(lambda job: begun.append(1), soon(0.05))
        until.set()
        assert await first == "late"
        await decider.run(lambda job: None, soon())
        decider.close()

    asyncio.run(run())
    assert begun == []


def test_a_thread_that_hangs_is_replaced_and_two_end_the_worker() -> None:
    hung: list[int] = []
    ended = []

    async def run() -> None:
        decider, until = Decider(hung.append, lambda: ended.append(1)), threading.Event()
        for _ in range(2):
            with pytest.raises(LateError):
                await decider.run(partial(hang, "deciding", until), soon(0.05))
            assert await decider.run(lambda job: "answered", soon()) == "answered"
        until.set()
        decider.close()

    asyncio.run(run())
    assert hung == [1, 2]
    assert ended == [1]


def test_a_thread_that_comes_back_hangs_no_more() -> None:
    hung: list[int] = []
    ended = []

    async def run() -> None:
        decider = Decider(hung.append, lambda: ended.append(1))
        for _ in range(3):
            until, thread = threading.Event(), list[threading.Thread]()

            def work(job: Job, until: threading.Event = until, thread: Any = thread) -> str:
                thread.append(threading.current_thread())
                return hang("deciding", until, job)

            with pytest.raises(LateError):
                await decider.run(work, soon(0.05))
            until.set()
            thread[0].join(60)
        decider.close()

    asyncio.run(run())
    assert hung == [1, 1, 1]
    assert ended == []


def test_a_database_that_hangs_ends_no_worker() -> None:
    """It is no fault of the worker; and when many threads wait for it, no more are begun."""
    ended, before = [], threading.active_count()

    async def run() -> None:
        decider, until = Decider(end=lambda: ended.append(1)), threading.Event()
        for _ in range(12):
            with pytest.raises(RecordUnavailableError):
                await decider.run(partial(hang, "database", until), soon(0.05))
        assert threading.active_count() <= before + 8 + 1
        until.set()
        decider.close()

    asyncio.run(run())
    assert ended == []


def test_who_gives_up_lets_the_work_know() -> None:
    async def run() -> bool:
        decider, until, job = Decider(), threading.Event(), soon(0.05)
        with pytest.raises(LateError):
            await decider.run(partial(hang, "deciding", until), job)
        until.set()
        decider.close()
        return job.given_up

    assert asyncio.run(run())
