"""Asking weather services over HTTP: bounded in time and size, and not again at once."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

from ideal_dispatch.errors import InputError, WeatherError, WeatherServiceError

if TYPE_CHECKING:
    import httpx

Answer = TypeVar("Answer")


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

    def __post_init__(self) -> None:
        for name in ("timeout_s", "max_bytes"):
            if not getattr(self, name) > 0:
                raise InputError(f"weather client: {name} must be more than zero")

    def get(self, url: str, params: Mapping[str, str] | None = None) -> bytes:
        """The body of a good answer, or a :class:`WeatherError` of one line."""
        import httpx

        try:
            with httpx.Client(
                timeout=self.timeout_s, proxy=self.proxy, trust_env=False, follow_redirects=False
            ) as client:
                answer = self._ask(client, url, params)
                pause_s = self._pause(answer)
                if pause_s is not None:
                    time.sleep(pause_s)
                    answer = self._ask(client, url, params)
        except httpx.TimeoutException:
            raise self._too_slow(url) from None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise InputError(f"weather address {url!r} cannot be used: {error}") from None
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise WeatherServiceError(f"{url}: no answer ({reason}); check the network") from None
        return self._body(url, answer)

    def _ask(
        self, client: "httpx.Client", url: str, params: Mapping[str, str] | None
    ) -> tuple["httpx.Response", bytes]:
        deadline = time.monotonic() + self.timeout_s
        body = bytearray()
        with client.stream("GET", url, params=params) as response:
            for chunk in response.iter_bytes():  # as it arrives, not in full blocks
                body += chunk
                if len(body) > self.max_bytes:
                    raise WeatherServiceError(
                        f"{url}: the answer is larger than {self.max_bytes:,} bytes; not read"
                    )
                if time.monotonic() > deadline:  # a server may drip for ever
                    raise self._too_slow(url)
        return response, bytes(body)

    def _too_slow(self, url: str) -> WeatherServiceError:
        return WeatherServiceError(f"{url}: no whole answer within {self.timeout_s:g} s")

    def _pause(self, answer: tuple["httpx.Response", bytes]) -> float | None:
        """Seconds until a second try, or None when none is due."""
        response, _ = answer
        if response.status_code != 429 and response.status_code < 500:
            return None
        asked_s = _retry_after_s(response.headers.get("retry-after", ""))
        pause_s = self.pause_s if asked_s is None else asked_s
        return pause_s if pause_s <= self.longest_pause_s else None

    def _body(self, url: str, answer: tuple["httpx.Response", bytes]) -> bytes:
        response, body = answer
        status = response.status_code
        if status == 200:
            return body
        if 300 <= status < 400:
            where = response.headers.get("location", "nowhere")
            raise WeatherError(f"{url}: moved to {where} (HTTP {status}); use that address")
        said = _excerpt(body)
        if status == 429 or status >= 500:
            later = response.headers.get("retry-after", "")
            wait = f"; it asks to wait {later}" if later else "; try again later"
            raise WeatherServiceError(f"{url}: HTTP {status}{said}{wait}")
        raise WeatherError(f"{url}: HTTP {status}{said}; check the address and the request")


def _retry_after_s(text: str) -> float | None:
    """Seconds, or an HTTP date, or neither."""
    if text.strip().isdigit():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def _excerpt(body: bytes) -> str:
    """The start of what a server said, in one line."""
    words = " ".join(body[:400].decode("utf-8", "replace").split())
    printable = "".join(letter for letter in words if letter.isprintable())[:160]
    return f" {printable!r}" if printable else ""


class AnswerCache(Generic[Answer]):
    """Answers kept while fresh, the most recent ``capacity`` of them.

    After a failure the service is left alone for ``patience``: a dead server
    costs one timeout, not one a record. Calls are answered one at a time.
    """

    def __init__(
        self,
        now: Callable[[], datetime],
        patience: timedelta = timedelta(seconds=60),
        capacity: int = 512,
    ) -> None:
        self._now = now
        self._patience = patience
        self._capacity = capacity
        self._answers: OrderedDict[Hashable, tuple[datetime, timedelta, Answer]] = OrderedDict()
        self._failure: tuple[datetime, WeatherServiceError] | None = None
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
        if self._failure is not None:
            failed_at, failure = self._failure
            if timedelta() <= now - failed_at < self._patience:
                raise WeatherServiceError(*failure.args)
        try:
            answer = ask()
        except WeatherServiceError as error:
            self._failure = (self._now(), error)
            raise
        self._failure = None
        return answer
