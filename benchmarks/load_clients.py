"""Clients that ask too much of a service, and one beside them who asks as usual.

All of them end by themselves: after ``seconds``, or after so many bytes. They
speak to this machine alone. Each is a plain function with plain arguments, so
that it can run in a process of its own: callers that share an event loop would
wait for each other, and that would be taken for a slow service.
"""

import asyncio
import re
import select
import socket
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, cycle
from pathlib import Path
from typing import Literal

import uvloop

from benchmarks.callers import Outcome, answer_to, call_of

_PATIENCE_S = 30.0
_PIECE = 16_384  # bytes of an endless head that are sent at once

_Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True)
class Caller:
    """Who asks, where, and about which places; ``name`` begins the ids of the calls."""

    name: str
    port: int
    token: str
    places: Sequence[dict[str, float]]
    tls: bool = False

    async def connect(self) -> _Connection:
        """A new connection; over TLS any certificate will do."""
        context = ssl._create_unverified_context() if self.tls else None
        return await asyncio.open_connection("127.0.0.1", self.port, ssl=context)

    async def ask(self, connection: _Connection, number: int) -> tuple[str, bool, str]:
        """The kind of answer to a new call, whether the connection stays open, and its id."""
        place = self.places[number % len(self.places)]
        connection[1].write(call_of(f"{self.name}-{number}", self.token, place))
        return await answer_to(connection[0])


def storm(caller: Caller, connections: int = 200, seconds: float = 15.0) -> Outcome:
    """Many connections that ask a new call as soon as the one before is answered or refused."""

    async def run() -> Outcome:
        outcome, numbers, began = Outcome(), count(), time.perf_counter()
        await asyncio.gather(
            *(
                _again_and_again(caller, outcome, numbers, began + seconds)
                for _ in range(connections)
            )
        )
        outcome.elapsed_s = time.perf_counter() - began
        return outcome

    return uvloop.run(run())


async def _again_and_again(
    caller: Caller, outcome: Outcome, numbers: "count[int]", end: float
) -> None:
    connection: _Connection | None = None
    while (began := time.perf_counter()) < end:
        kind, stays_open, id_ = "failed", False, ""
        try:
            async with asyncio.timeout(_PATIENCE_S):
                connection = connection or await caller.connect()
                kind, stays_open, id_ = await caller.ask(connection, next(numbers))
        except (TimeoutError, OSError, asyncio.IncompleteReadError):
            await asyncio.sleep(0.01)
        outcome.add(kind, time.perf_counter() - began)
        outcome.ids += [id_] if id_ else []
        if connection is not None and not stays_open:
            connection[1].close()
            connection = None
    if connection is not None:
        connection[1].close()


def probe(
    caller: Caller, seconds: float = 15.0, every_s: float = 0.1, kept: bool = False
) -> Outcome:
    """One new call every ``every_s``, whatever became of those before.

    Each call has a connection of its own; with ``kept``, one that an earlier call has left.
    Seconds count from the moment a call was due.
    """

    async def run() -> Outcome:
        outcome, began = Outcome(), time.perf_counter()
        free: list[_Connection] = []
        async with asyncio.TaskGroup() as calls:
            for number in range(round(seconds / every_s)):
                due = began + number * every_s
                await asyncio.sleep(max(due - time.perf_counter(), 0.0))
                calls.create_task(_once(caller, outcome, number, due, free if kept else None))
        outcome.elapsed_s = time.perf_counter() - began
        for _, writer in free:
            writer.close()
        return outcome

    return uvloop.run(run())


async def _once(
    caller: Caller, outcome: Outcome, number: int, due: float, free: list[_Connection] | None
) -> None:
    kind = "failed"
    try:
        async with asyncio.timeout(_PATIENCE_S):
            connection = free.pop() if free else await caller.connect()
            kind, stays_open, _ = await caller.ask(connection, number)
            if free is not None and stays_open:
                free.append(connection)
            else:
                connection[1].close()
    except (TimeoutError, OSError, asyncio.IncompleteReadError):
        pass
    outcome.add(kind, time.perf_counter() - due)


@dataclass(frozen=True)
class Ended:
    """What became of an endless head: what the service took, said, and whether it hung up."""

    sent_bytes: int
    seconds: float
    answer: bytes
    hung_up: bool


Endless = Literal["headers", "value", "line", "slow"]

_BEGINNINGS: dict[Endless, bytes] = {
    "headers": b"POST /v1/recommendations HTTP/1.1\r\nHost: load\r\n",
    "value": b"POST /v1/recommendations HTTP/1.1\r\nHost: load\r\nx: ",
    "line": b"GET /",
    "slow": b"POST /v1/recommendations HTTP/1.1\r\nHost: load\r\n",
}


def endless_head(
    port: int, kind: Endless, seconds: float = 15.0, most_bytes: int = 2_000_000_000
) -> Ended:
    """A stranger whose request's head does not end: short headers, one long value, or a long line.

    A "slow" one sends a short header every tenth of a second.
    """
    piece = b"x: y\r\n" * (_PIECE // 6) if kind == "headers" else b"x" * _PIECE
    pieces = cycle([b"x: y\r\n"] if kind == "slow" else [piece])
    answer, sent, hung_up, began = b"", 0, False, time.perf_counter()
    with socket.create_connection(("127.0.0.1", port), _PATIENCE_S) as stream:
        try:
            stream.sendall(_BEGINNINGS[kind])
            stream.settimeout(0.1)
            while sent < most_bytes and time.perf_counter() - began < seconds:
                try:
                    sent += stream.send(next(pieces))
                    if kind == "slow":
                        time.sleep(0.1)
                except TimeoutError:
                    pass  # nobody reads; go on until the time is over
                answer, hung_up = _said(stream, answer)
                if hung_up:
                    break
        except OSError:
            hung_up = True
    return Ended(sent, time.perf_counter() - began, answer, hung_up)


def _said(stream: socket.socket, answer: bytes) -> tuple[bytes, bool]:
    """What has been answered so far, and whether that is all."""
    if not select.select([stream], [], [], 0)[0]:
        return answer, False
    piece = stream.recv(65_536)
    return answer + piece, not piece


def memory_mb(process: int, peak: bool = False) -> float:
    """What a process holds in memory, or held at most."""
    status = Path(f"/proc/{process}/status").read_text()
    found = re.search(rf"{'VmHWM' if peak else 'VmRSS'}:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) / 1000
