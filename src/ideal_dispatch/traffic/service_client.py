"""Asking a routing service: retried, counted, recorded, and left alone when it is down."""

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, Protocol
from urllib.parse import urlsplit

import numpy as np

from ideal_dispatch.errors import IdealError, TrafficError, TrafficServiceError
from ideal_dispatch.http_client import HttpAnswer, HttpClient, NoAnswerError, one_line
from ideal_dispatch.ranges import Count, Positive, Range, ZeroOrMore, check_fields
from ideal_dispatch.traffic.answers import (
    MissingAnswerError,
    Question,
    RecordedAnswers,
    StoredAnswer,
)

_AGAIN = frozenset({429, 500, 502, 503, 504})


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

    attempts: Count = 4
    timeout_s: Positive = 5.0
    deadline_s: Positive = 15.0
    pause_s: ZeroOrMore = 0.5
    longest_pause_s: ZeroOrMore = 8.0
    max_bytes: Count = 8_000_000

    def __post_init__(self) -> None:
        check_fields(self, "patience: ")


class BudgetError(IdealError):
    """A run has used up the requests it was given."""


class RequestBudget:
    """How many requests may be sent, if there is a ``limit``, and how many were.

    A request counts when it is sent, whatever comes back: a retry counts again,
    a recorded answer does not count.
    """

    def __init__(self, limit: int | None = None) -> None:
        if limit is not None:
            Range(whole=True).check(limit, "request budget")
        self.limit = limit
        self._sent = self._earlier = 0
        self._lock = Lock()

    @property
    def spent(self) -> int:
        """Requests sent so far, those of earlier runs included."""
        return self._sent + self._earlier

    def resume(self, total: int) -> None:
        """Count ``total`` requests as sent, of which some may be this run's own."""
        with self._lock:
            self._earlier = max(0, total - self._sent)

    def spend(self, kind: str) -> None:
        """Count what is about to be sent, or refuse it with a :class:`BudgetError`."""
        with self._lock:
            if self.limit is not None and self.spent >= self.limit:
                raise BudgetError(
                    f"{kind}: 1 more would exceed the budget of {self.limit} requests "
                    f"({self.spent} sent); raise it to go on"
                )
            self._sent += 1


class Timer(Protocol):
    """How time passes, as in the module ``time``."""

    def monotonic(self) -> float: ...
    def sleep(self, seconds: float, /) -> None: ...


class CircuitBreaker:
    """Opens after ``FAILURES`` failed calls in a row, for ``REST_S``.

    Then one call is let through. Its success closes the circuit, its failure
    opens it again. An open circuit costs the caller no waiting.
    """

    FAILURES, REST_S = 5, 30.0

    def __init__(self, timer: Timer = time) -> None:
        self._timer = timer
        self._failures, self._closed_from, self._reason = 0, 0.0, ""
        self._lock = Lock()

    def resting(self) -> str:
        """Why the service is not asked now, or nothing: then the caller asks it."""
        with self._lock:
            now = self._timer.monotonic()
            if self._failures < self.FAILURES:
                return ""
            if now < self._closed_from:
                return (
                    f"left alone for another {self._closed_from - now:.0f} s after "
                    f"{self._failures} failures in a row; the last: {self._reason}"
                )
            self._closed_from = now + self.REST_S  # this call is the trial; others wait for it
            return ""

    def succeeded(self) -> None:
        """Note that the service answered, if only with a refusal."""
        with self._lock:
            self._failures = 0

    def failed(self, reason: str) -> None:
        """Note that the service did not answer, or answered nonsense."""
        with self._lock:
            self._failures += 1
            self._closed_from, self._reason = self._timer.monotonic() + self.REST_S, reason


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
        patience: Patience | None = None,
        budget: RequestBudget | None = None,
        answers: RecordedAnswers | None = None,
        timer: Timer = time,
    ) -> None:
        self.service, self.url = service, url.rstrip("/")
        self.live, self.server = bool(url), urlsplit(url).netloc.rpartition("@")[2]
        self.patience, self.budget = patience or Patience(), budget or RequestBudget()
        self._rng = np.random.default_rng() if rng is None else rng
        self._headers, self._answers, self._timer = dict(headers or {}), answers, timer
        self._breaker, self._lock = CircuitBreaker(timer), Lock()
        self._http = HttpClient(
            service, timeout_s=self.patience.timeout_s, max_bytes=self.patience.max_bytes
        )

    def close(self) -> None:
        """Close open connections."""
        self._http.close()

    def deadline(self) -> float:
        """The moment by which all questions of a quote begun now must be answered."""
        return self._timer.monotonic() + self.patience.deadline_s

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
            if self._answers is not None:
                self._answers.keep(question, stored)
        if stored.failure:
            raise TrafficServiceError(f"{self.service}: {stored.failure}")
        if stored.status != 200:
            raise RefusedError(
                f"{self.service}: refused with HTTP {stored.status}{_reason(stored.answer)}; "
                "check the request, the key and the address",
                stored.status,
                stored.answer,
            )
        return stored.answer

    def _asked(self, question: Question, deadline: float) -> StoredAnswer:
        if resting := self._breaker.resting():
            return StoredAnswer(0, None, resting)
        failure = "no time was left to ask"
        tries = 0
        while tries < self.patience.attempts and (left_s := deadline - self._timer.monotonic()) > 0:
            self.budget.spend(question.endpoint)
            tries += 1
            asked_s: float | None = None
            try:
                answer = self._posted(question, left_s)
                if answer.status not in _AGAIN:
                    stored = StoredAnswer(answer.status, _parsed(answer))
                    self._breaker.succeeded()
                    return stored
                failure = f"HTTP {answer.status}{_reason(_parsed(answer)) or answer.excerpt}"
                asked_s = answer.retry_after_s
            except (NoAnswerError, _NonsenseError) as error:
                failure = str(error)
            pause_s = self._pause_s(tries - 1) + (asked_s or 0.0)
            if tries == self.patience.attempts or self._timer.monotonic() + pause_s >= deadline:
                failure += f"; it asks to wait {asked_s:g} s" if asked_s else ""
                break
            self._timer.sleep(pause_s)
        failure = f"{failure}; given up after {tries} of {self.patience.attempts} tries"
        self._breaker.failed(failure)
        return StoredAnswer(0, None, failure)

    def _posted(self, question: Question, left_s: float) -> HttpAnswer:
        headers = {"Content-Type": "application/json", **self._headers}
        if question.fields:
            headers["X-Goog-FieldMask"] = question.fields
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
