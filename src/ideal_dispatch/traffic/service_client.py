"""Asking a routing service: retried, counted, recorded, and left alone when it is down."""

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from ideal_dispatch.errors import TrafficError, TrafficServiceError
from ideal_dispatch.http_client import HttpAnswer, HttpClient, NoAnswerError, one_line
from ideal_dispatch.ranges import COUNT, POSITIVE, ZERO_OR_MORE, check_numbers
from ideal_dispatch.traffic.answers import (
    MissingAnswerError,
    Question,
    RecordedAnswers,
    StoredAnswer,
)
from ideal_dispatch.traffic.budget import RequestBudget

_AGAIN = frozenset({429, 500, 502, 503, 504})
_PATIENCE = {
    "attempts": COUNT, "timeout_s": POSITIVE, "deadline_s": POSITIVE, "max_bytes": COUNT,
    "pause_s": ZERO_OR_MORE, "longest_pause_s": ZERO_OR_MORE,
}  # fmt: skip


class RefusedError(TrafficError):
    """A service understood a request and refuses it; ``body`` is the JSON it sent."""

    def __init__(self, text: str, status: int, body: Any) -> None:
        super().__init__(text)
        self.status, self.body = status, body


@dataclass(frozen=True, slots=True)
class Patience:
    """How long and how often to ask.

    One request may take ``timeout_s``; all requests of one quote together, with
    their retries and pauses, ``deadline_s``. Before retry k the pause is uniform
    in 0 … min(``longest_pause_s``, ``pause_s`` · 2^k) ("full jitter"), after
    what the server asks for in Retry-After.
    """

    attempts: int = 4
    timeout_s: float = 5.0
    deadline_s: float = 15.0
    pause_s: float = 0.5
    longest_pause_s: float = 8.0
    max_bytes: int = 8_000_000

    def __post_init__(self) -> None:
        check_numbers(self, _PATIENCE, "patience: ")


class CircuitBreaker:
    """Opens after ``failures`` failed calls in a row, for ``rest_s``.

    Then one call is let through. Its success closes the circuit, its failure
    opens it again. An open circuit costs the caller no waiting.
    """

    def __init__(
        self,
        failures: int = 5,
        rest_s: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        COUNT.check(failures, "circuit breaker: failures")
        POSITIVE.check(rest_s, "circuit breaker: rest_s")
        self._limit, self._rest_s, self._clock = failures, rest_s, clock
        self._failures, self._closed_from, self._reason = 0, 0.0, ""
        self._lock = Lock()

    def resting(self) -> str:
        """Why the service is not asked now, or nothing: then the caller asks it."""
        with self._lock:
            now = self._clock()
            if self._failures < self._limit:
                return ""
            if now < self._closed_from:
                return (
                    f"left alone for another {self._closed_from - now:.0f} s after "
                    f"{self._failures} failures in a row; the last: {self._reason}"
                )
            self._closed_from = now + self._rest_s  # this call is the trial; others wait for it
            return ""

    def succeeded(self) -> None:
        """Note that the service answered, if only with a refusal."""
        with self._lock:
            self._failures = 0

    def failed(self, reason: str) -> None:
        """Note that the service did not answer, or answered nonsense."""
        with self._lock:
            self._failures += 1
            self._closed_from, self._reason = self._clock() + self._rest_s, reason


class ServiceClient:
    """Posts questions to a service at ``url``; without one it only repeats recorded answers.

    ``headers`` may hold a key: they are in no message, representation or
    recording, not even where the server repeats them. Answers go to ``answers``
    where given, and good ones recorded there are not asked again. ``rng`` draws
    the pauses between tries.
    """

    def __init__(
        self,
        service: str,
        url: str = "",
        rng: np.random.Generator | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        fields_header: str | None = None,
        patience: Patience | None = None,
        budget: RequestBudget | None = None,
        breaker: CircuitBreaker | None = None,
        answers: RecordedAnswers | None = None,
        proxy: str | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.service, self.url = service, url.rstrip("/")
        self.patience = patience or Patience()
        self.budget = budget or RequestBudget()
        self.breaker = breaker or CircuitBreaker()
        self.live, self.server = bool(url), urlsplit(url).netloc.rpartition("@")[2]
        self._rng = np.random.default_rng() if rng is None else rng
        self._headers, self._fields_header = dict(headers or {}), fields_header
        self._answers, self._clock, self._sleep = answers, clock, sleep
        self._http = HttpClient(
            service,
            timeout_s=self.patience.timeout_s,
            max_bytes=self.patience.max_bytes,
            proxy=proxy,
        )
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"ServiceClient({self.service}, {self.url}, {self.budget})"

    def close(self) -> None:
        """Close open connections."""
        self._http.close()

    def deadline(self) -> float:
        """The moment by which all questions of a quote begun now must be answered."""
        return self._clock() + self.patience.deadline_s

    def ask(self, question: Question, deadline: float) -> Any:
        """The JSON of a good answer.

        :class:`RefusedError` where the service says no, :class:`TrafficServiceError`
        where it says nothing useful until ``deadline``, :class:`MissingAnswerError`
        where answers come from a recording that has none.
        """
        stored = self._answers.get(question) if self._answers is not None else None
        if not self.live and stored is None:
            raise MissingAnswerError(
                f"{self._answers and self._answers.folder}: no recorded answer to this "
                f"{question.endpoint} of {question.asked_at.isoformat()} (key {question.key}); "
                "record it with a live run"
            )
        if stored is None or (self.live and stored.status != 200):
            stored = self._asked(question, deadline)
            if self._answers is not None:  # an empty folder is false
                self._answers.keep(question, stored)
        return _judged(self.service, stored)

    def _asked(self, question: Question, deadline: float) -> StoredAnswer:
        if resting := self.breaker.resting():
            return StoredAnswer(0, None, resting)
        failure = "no time was left to ask"
        tries = 0
        while tries < self.patience.attempts and (left_s := deadline - self._clock()) > 0:
            self.budget.spend(question.endpoint)
            tries += 1
            asked_s: float | None = None
            try:
                answer = self._posted(question, left_s)
                if answer.status not in _AGAIN:
                    stored = StoredAnswer(answer.status, _parsed(answer))
                    self.breaker.succeeded()
                    return stored
                failure = f"HTTP {answer.status}{_told(answer)}"
                asked_s = answer.retry_after_s
            except (NoAnswerError, _NonsenseError) as error:
                failure = str(error)
            pause_s = self._pause_s(tries - 1) + (asked_s or 0.0)
            if tries == self.patience.attempts or self._clock() + pause_s >= deadline:
                failure += f"; it asks to wait {asked_s:g} s" if asked_s else ""
                break
            self._sleep(pause_s)
        failure = f"{failure}; given up after {tries} of {self.patience.attempts} tries"
        self.breaker.failed(failure)
        return StoredAnswer(0, None, failure)

    def _posted(self, question: Question, left_s: float) -> HttpAnswer:
        headers = {"Content-Type": "application/json", **self._headers}
        if self._fields_header:
            headers[self._fields_header] = question.fields
        content = json.dumps(question.body, allow_nan=False).encode()
        answer = self._http.exchange(
            "POST", f"{self.url}/{question.endpoint}", headers=headers, body=content,
            timeout_s=left_s,
        )  # fmt: skip
        body = answer.body
        for secret in filter(None, self._headers.values()):  # a server may repeat what it was told
            body = body.replace(secret.encode(), b"[key]")
        return HttpAnswer(answer.status, answer.headers, body)

    def _pause_s(self, retry: int) -> float:
        longest_s = min(self.patience.longest_pause_s, self.patience.pause_s * 2.0**retry)
        with self._lock:
            return float(self._rng.uniform(0.0, longest_s))


def _judged(service: str, stored: StoredAnswer) -> Any:
    """The JSON of a good answer; a bad one as its error."""
    if stored.failure:
        raise TrafficServiceError(f"{service}: {stored.failure}")
    if stored.status != 200:
        raise RefusedError(
            f"{service}: refused with HTTP {stored.status}{_reason(stored.body)}; "
            "check the request, the key and the address",
            stored.status,
            stored.body,
        )
    return stored.body


class _NonsenseError(ValueError):
    """A body that is not usable JSON."""


def _parsed(answer: HttpAnswer) -> Any:
    """The body as JSON; a refusal may come as anything."""
    try:
        return json.loads(answer.body, parse_constant=_real, parse_float=_real)
    except (ValueError, RecursionError) as error:
        if answer.status != 200:
            return {"error": answer.excerpt.strip()}
        what = str(error) if isinstance(error, _NonsenseError) else "not whole JSON"
        raise _NonsenseError(f"the answer is {what}:{answer.excerpt}") from None


def _real(text: str) -> float:
    """A finite number; JSON has no other, but Python reads them."""
    number = float(text)
    if not math.isfinite(number):
        raise _NonsenseError(f"no valid JSON ({text} is not a finite number)")
    return number


def _told(answer: HttpAnswer) -> str:
    try:
        return _reason(json.loads(answer.body)) or answer.excerpt
    except (ValueError, RecursionError):
        return answer.excerpt


def _reason(body: Any) -> str:
    """Why, in the service's own words: Google's error object, Valhalla's error fields."""
    if isinstance(body, list) and body:
        body = body[0]
    error = body.get("error") if isinstance(body, dict) else None
    if isinstance(error, dict):
        words = [error.get("status"), error.get("message")]
    else:
        code = body.get("error_code") if isinstance(body, dict) else None
        words = [f"error {code}" if code is not None else None, error]
    text = ": ".join(one_line(str(word)) for word in words if word)
    return f" {text}" if text else ""
