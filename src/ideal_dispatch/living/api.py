"""The service as a client sees it: requests, events, and its clock."""

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import IO, Any
from zoneinfo import ZoneInfo

import httpx

from ideal_dispatch.errors import InputError
from ideal_dispatch.http_client import one_line, public

_ANSWER_S = 30.0
_SILENCE_S = 15.0  # of the stream of events, which has a ping every 5 s
_PAUSES_S = (0.1, 0.25, 0.5, 1.0, 2.0)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the service said; status 0 means that it did not answer, and the content why."""

    status: int
    content: Any
    ms: float

    @property
    def good(self) -> bool:
        return 200 <= self.status < 300

    @property
    def passing(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status in (0, 408, 429) or self.status >= 500

    @property
    def why(self) -> str:
        """The code of a refusal, or its status."""
        try:
            return str(self.content["error"]["code"])
        except (KeyError, TypeError):
            return str(self.status or "no_answer")


class ServiceClock:
    """The clock of the service, by its word and the time since; never ahead of it.

    A city counts its seconds from the local midnight before it began.
    """

    def __init__(self) -> None:
        self._now, self._at, self.speed = datetime.now(UTC), time.monotonic(), 1.0
        self._midnight = self._now

    def follow(self, told: dict[str, Any] | None, asked: float) -> None:
        """Go by what the service tells of its clock; ``asked`` is when that was sent for.

        The word is from somewhere between then and now. Where this clock is within, it stays:
        a slow answer must not set it back. A service that tells none runs by the wall's clock.
        """
        told = told or {"now": datetime.now(UTC).isoformat(), "speed": 1.0}
        least, speed = datetime.fromisoformat(told["now"]).astimezone(UTC), float(told["speed"])
        most = least + timedelta(seconds=speed * (time.monotonic() - asked))
        if speed != self.speed or not least <= self.now() <= most:
            self._now, self._at, self.speed = least, time.monotonic(), speed

    def begin(self, time_zone: str) -> None:
        """Count from the last midnight there."""
        local = self.now().astimezone(ZoneInfo(time_zone))
        midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
        self._midnight = midnight.astimezone(UTC)

    def now(self) -> datetime:
        return self._now + timedelta(seconds=self.speed * (time.monotonic() - self._at))

    def now_s(self) -> float:
        """Seconds since the midnight."""
        return (self.now() - self._midnight).total_seconds()

    def text(self, at_s: float) -> str:
        """A moment as the API writes it, not later than it is."""
        at = self._midnight + timedelta(milliseconds=math.floor(1000.0 * at_s))
        return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Log:
    """JSON lines of all that was asked and acted on; without a file they are let go."""

    def __init__(self, path: Path | None, clock: ServiceClock) -> None:
        self._file: IO[str] | None = None if path is None else path.open("w", encoding="utf-8")
        self._clock = clock

    def write(self, kind: str, **facts: Any) -> None:
        if self._file is not None:
            at = self._clock.now().isoformat(timespec="milliseconds")
            self._file.write(json.dumps({"at": at, "kind": kind, **facts}) + "\n")
            self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class Api:
    """One service at an address, with one token. Requests never raise for what it answers.

    Once it is ``ending``, nothing is asked again.
    """

    def __init__(self, url: str, token: str, log: Log) -> None:
        self.url, self.log, self.ending = url.rstrip("/"), log, False
        if not (token.isascii() and token.isprintable()):
            raise InputError("the token has characters that no token has; check it")
        headers = {"Authorization": f"Bearer {token}"}
        self._client = httpx.AsyncClient(headers=headers, timeout=_ANSWER_S, trust_env=False)

    async def aclose(self) -> None:
        """Close open connections."""
        await self._client.aclose()

    async def ask(self, method: str, path: str, body: Any = None, **facts: Any) -> Answer:
        """One request; ``facts`` go to the log with its outcome."""
        began = time.monotonic()
        try:
            given = {} if body is None else {"json": body}
            response = await self._client.request(method, self.url + path, **given)
            status, content = response.status_code, _content(response)
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise InputError(
                f"{public(self.url)!r} cannot be used: {one_line(str(error))}"
            ) from None
        except httpx.HTTPError as error:
            status, content = 0, one_line(str(error)) or type(error).__name__
        answer = Answer(status, content, 1000.0 * (time.monotonic() - began))
        more = {} if answer.good else {"why": answer.why, "said": one_line(str(content))}
        ms = round(answer.ms, 1)
        self.log.write("request", method=method, path=path, status=status, ms=ms, **more, **facts)
        return answer

    async def insist(
        self, method: str, path: str, body: Any, still: Callable[[], bool], **facts: Any
    ) -> Answer:
        """The same request until it is taken or refused, as long as it is ``still`` of use."""
        for turn in count():
            answer = await self.ask(method, path, body, **facts)
            if not answer.passing or self.ending or not still():
                break
            await asyncio.sleep(_pause_s(turn))
        return answer

    async def fetch(self, path: str) -> Any:
        """What is needed to begin; waits for a service that is away, and says why it refuses."""
        answer = await self.insist("GET", path, None, lambda: True)
        if not answer.good:
            raise InputError(f"{public(self.url)}{path}: {answer.why}; check address and token")
        return answer.content

    async def events(self, *wanted: str) -> AsyncIterator[tuple[str, Any]]:
        """Some server-sent events, without end; "connected" whenever a stream begins.

        What happened while there was none is not told: ask for it then.
        """
        turn = 0
        while True:
            try:
                timeout = httpx.Timeout(_ANSWER_S, read=_SILENCE_S)
                where = f"{self.url}/v1/events"
                async with self._client.stream("GET", where, timeout=timeout) as stream:
                    self.log.write("events", status=stream.status_code)
                    if stream.status_code == 200:
                        turn = 0
                        yield "connected", None
                        async for event in _parsed(stream.aiter_lines(), wanted):
                            yield event
            except httpx.HTTPError as error:
                self.log.write("events", status=0, why=one_line(str(error)))
            await asyncio.sleep(_pause_s(turn))
            turn += 1


async def _parsed(
    lines: AsyncIterator[str], wanted: Collection[str]
) -> AsyncIterator[tuple[str, Any]]:
    name, data = "message", list[str]()
    async for line in lines:
        if line.startswith("event:"):
            name = line[6:].strip()
        elif line.startswith("data:"):
            data.append(line[5:])
        elif not line:
            if data and name in wanted:
                yield name, json.loads("\n".join(data))
            name, data = "message", []


def _content(response: httpx.Response) -> Any:
    """JSON as such, anything else as a line."""
    try:
        return response.json()
    except ValueError:
        return one_line(response.text[:400])


def _pause_s(turn: int) -> float:
    return _PAUSES_S[min(turn, len(_PAUSES_S) - 1)]
