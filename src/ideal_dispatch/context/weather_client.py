"""Asking weather services over HTTP: bounded in time and size, and not again at once."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock
from typing import Generic, TypeVar

from ideal_dispatch.errors import WeatherError, WeatherServiceError
from ideal_dispatch.http_client import HttpClient, NoAnswerError

Answer = TypeVar("Answer")
PATIENCE = timedelta(seconds=60)
"""How long a service is left alone after a failure."""


@dataclass(frozen=True, slots=True)
class WeatherClient:
    """Gets documents: at most ``timeout_s`` and ``max_bytes`` each.

    An overloaded server (429, 5xx) is asked once more, after the time it names
    or ``pause_s``, but never later than ``longest_pause_s``. The environment
    is not read; a proxy is named here.
    """

    timeout_s: float = 5.0
    max_bytes: int = 8_000_000
    pause_s: float = 0.5
    longest_pause_s: float = 5.0
    proxy: str | None = None

    def get(self, url: str, params: Mapping[str, str] | None = None) -> bytes:
        """The body of a good answer, or a :class:`WeatherError` of one line."""
        with HttpClient(
            "weather", timeout_s=self.timeout_s, max_bytes=self.max_bytes, proxy=self.proxy
        ) as client:
            try:
                answer = client.exchange("GET", url, params=params)
                asked_s = answer.retry_after_s
                pause_s = self.pause_s if asked_s is None else asked_s
                if answer.overloaded and pause_s <= self.longest_pause_s:
                    time.sleep(pause_s)
                    answer = client.exchange("GET", url, params=params)
            except NoAnswerError as error:
                raise WeatherServiceError(str(error)) from None
        status = answer.status
        if status == 200:
            return answer.body
        if 300 <= status < 400:
            where = answer.headers.get("location", "nowhere")
            raise WeatherError(f"{url}: moved to {where} (HTTP {status}); use that address")
        said = f"{url}: HTTP {status}{answer.excerpt}"
        if answer.overloaded:
            later = answer.headers.get("retry-after", "")
            wait = f"it asks to wait {later}" if later else "try again later"
            raise WeatherServiceError(f"{said}; {wait}")
        raise WeatherError(f"{said}; check the address and the request")


class AnswerCache(Generic[Answer]):
    """Answers kept while fresh, the most recent ``capacity`` of them.

    After a failure the service is left alone for ``patience``: a dead server
    costs one timeout, not one a record. Calls are answered one at a time.
    """

    def __init__(
        self, now: Callable[[], datetime], patience: timedelta = PATIENCE, capacity: int = 512
    ) -> None:
        self._now, self._patience, self._capacity = now, patience, capacity
        self._answers: OrderedDict[Hashable, tuple[datetime, timedelta, Answer]] = OrderedDict()
        self._failure: tuple[datetime, WeatherServiceError | None] = now(), None
        self._lock = Lock()

    def get(
        self, key: Hashable, fresh: timedelta, ask: Callable[[], Answer]
    ) -> tuple[Answer, WeatherError | None]:
        """The answer; an outdated one comes with the error that kept it from being renewed."""
        with self._lock:
            now = self._now()
            asked_at, lasts, answer = self._answers.get(key, (now, timedelta(), None))
            if answer is not None and timedelta() <= now - asked_at < lasts:  # clocks may jump back
                self._answers.move_to_end(key)
                return answer, None
            try:
                new = self._ask(ask, now)
            except WeatherError as error:
                if answer is None:
                    raise
                return answer, error
            self._answers[key] = (now, fresh, new)
            self._answers.move_to_end(key)
            while len(self._answers) > self._capacity:
                self._answers.popitem(last=False)
            return new, None

    def _ask(self, ask: Callable[[], Answer], now: datetime) -> Answer:
        failed_at, failure = self._failure
        if failure is not None and timedelta() <= now - failed_at < self._patience:
            raise WeatherServiceError(*failure.args)
        try:
            answer = ask()
        except WeatherServiceError as error:
            self._failure = self._now(), error
            raise
        self._failure = now, None
        return answer
