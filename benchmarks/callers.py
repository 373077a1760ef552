"""Callers of the service, as many and as often as wanted, and what they got.

Closed loop for capacity, open loop for latencies: there a latency counts from
the moment a call was due, so that waiting for a slow server is not left out.
"""

import asyncio
import gc
import json
import os
import re
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import numpy as np

from benchmarks.stack import children_of
from ideal_dispatch.arrays import FloatArray

ASK = "/v1/recommendations"
_CALLERS = 4  # for each worker, when capacity is measured
_CONNECTIONS = 400
_PATIENCE_S = 10.0


@dataclass
class Outcome:
    """What callers got: seconds by kind of answer."""

    elapsed_s: float = 0.0
    cpu_s: float = 0.0  # of the workers
    seconds: dict[str, list[float]] = field(default_factory=dict)
    ids: list[str] = field(default_factory=list)  # of answers on record

    def add(self, kind: str, seconds: float) -> None:
        self.seconds.setdefault(kind, []).append(seconds)

    def count(self, kind: str) -> int:
        return len(self.seconds.get(kind, ()))

    @property
    def cpu_each_s(self) -> float:
        """CPU seconds of the workers for one call, whatever became of it."""
        return self.cpu_s / sum(map(len, self.seconds.values()))

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.count("answered") / self.elapsed_s

    def quantiles(self, kind: str = "answered") -> FloatArray:
        """p50, p99 and p99.9."""
        got = self.seconds.get(kind) or [np.nan]
        return np.quantile(got, [0.5, 0.99, 0.999])


class Callers:
    """Requests over connections that are kept; workers (ports and processes) take turns."""

    def __init__(
        self, workers: Mapping[int, int], token: str, places: Sequence[dict[str, float]]
    ) -> None:
        self._ports, self.processes = list(workers), list(workers.values())
        self._token, self._places = token, places
        self._numbers = count()
        self._free: list[deque[tuple[asyncio.StreamReader, asyncio.StreamWriter]]] = []

    async def capacity(self, seconds: float) -> Outcome:
        """A few callers without pause."""
        with _untidied():
            return await self._measured(seconds, 0.0)

    async def offered(self, seconds: float, rate: float, seed: int = 0) -> Outcome:
        """So many calls a second, come what may."""
        with _untidied():
            return await self._measured(seconds, rate, seed)

    async def _measured(self, seconds: float, rate: float, seed: int = 0) -> Outcome:
        self._free = [deque() for _ in self._ports]
        outcome, cpu_s = Outcome(), sum(map(_cpu_s, self.processes))
        began = time.perf_counter()
        room = asyncio.Semaphore(_CONNECTIONS)
        if rate:
            gaps = np.random.default_rng(seed).exponential(1 / rate, round(seconds * rate))
            tasks = []
            for due in (began + np.cumsum(gaps)).tolist():
                await asyncio.sleep(max(due - time.perf_counter(), 0.0))
                tasks.append(asyncio.create_task(self._one(outcome, due, room)))
        else:
            tasks = [
                asyncio.create_task(self._on_and_on(outcome, began + seconds, room))
                for _ in range(_CALLERS * len(self._ports))
            ]
        await asyncio.gather(*tasks)
        outcome.elapsed_s = time.perf_counter() - began
        outcome.cpu_s = sum(map(_cpu_s, self.processes)) - cpu_s
        for kept in self._free:
            for _, writer in kept:
                writer.close()
        return outcome

    async def _on_and_on(self, outcome: Outcome, end: float, room: asyncio.Semaphore) -> None:
        while (now := time.perf_counter()) < end:
            await self._one(outcome, now, room)

    async def _one(self, outcome: Outcome, due: float, room: asyncio.Semaphore) -> None:
        number = next(self._numbers)
        which = number % len(self._ports)
        async with room:
            try:
                async with asyncio.timeout(_PATIENCE_S):
                    kind = await self._ask(which, self._request(number))
            except (TimeoutError, OSError, asyncio.IncompleteReadError):
                kind = "failed"
        outcome.add(kind, time.perf_counter() - due)

    async def _ask(self, which: int, request: bytes) -> str:
        kept = self._free[which]
        if kept:
            reader, writer = kept.popleft()
        else:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._ports[which])
        writer.write(request)
        kind, stays_open, _ = await answer_to(reader)
        if stays_open:
            kept.append((reader, writer))
        else:
            writer.close()
        return kind

    def _request(self, number: int) -> bytes:
        return call_of(f"load-{number}", self._token, self._places[number % len(self._places)])


def call_of(call_id: str, token: str, place: Mapping[str, float]) -> bytes:
    """A request about a call that came in now."""
    call = {"call_id": call_id, "received_at": datetime.now(UTC).isoformat(), "location": place}
    body = json.dumps(call).encode()
    head = (
        f"POST {ASK} HTTP/1.1\r\nHost: load\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def answer_to(reader: asyncio.StreamReader) -> tuple[str, bool, str]:
    """The kind of the next answer, whether the connection stays open, and the id on record."""
    head = await reader.readuntil(b"\r\n\r\n")
    fields = head.lower()
    length = int(fields.split(b"content-length: ")[1].split(b"\r\n")[0])
    body = await reader.readexactly(length)
    stays_open = b"\r\nconnection: close" not in fields
    found = re.search(rb'"id":"(\w+)"', body)
    recorded = found is not None and b'"state":"unrecorded"' not in body
    id_ = found[1].decode() if found is not None and recorded else ""
    if b'"decision":"no_advice"' in body:
        return "no advice", stays_open, id_
    return {b"200": "answered", b"503": "refused"}.get(head[9:12], "failed"), stays_open, id_


@contextmanager
def _untidied() -> Iterator[None]:
    """Callers that stop to collect garbage would be taken for a slow service."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _cpu_s(process: int) -> float:
    """Of a process and of those that it started."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    own_s = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own_s + sum(map(_cpu_s, children_of(process)))
