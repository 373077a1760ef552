"""An outside service over HTTP: bounded in time and size, retried, and left alone when it is down.

Messages never hold headers, parameters or passwords.
"""

import json
import math
import os
import random
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ideal_dispatch.errors import IdealError, InputError
from ideal_dispatch.ranges import Count, Positive, Range, ZeroOrMore, check_fields

if TYPE_CHECKING:
    import httpx
    import numpy as np

_Found = TypeVar("_Found")


class NoAnswerError(IdealError):
    """A server did not answer, was too slow, or sent too much or what cannot be used."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What a server sent back, whatever its status."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def retry_after_s(self) -> float | None:
        """Seconds to wait as the server asks, by number or date, or None."""
        text = self.headers.get("retry-after", "").strip()
        if text.isascii() and text.isdigit():
            return float(text)
        try:
            moment = parsedate_to_datetime(text)
        except ValueError:
            return None
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return max(0.0, (moment - datetime.now(UTC)).total_seconds())

    @property
    def excerpt(self) -> str:
        """The start of the body in one line, quoted, or nothing."""
        words = one_line(self.body[:400].decode("utf-8", "replace"))
        return f" {words!r}" if words else ""


def one_line(text: str, limit: int = 160) -> str:
    """Foreign text fit for a message: one line, printable, not long."""
    words = " ".join(text.split())
    return "".join(letter for letter in words if letter.isprintable())[:limit]


def public(url: str) -> str:
    """An address fit for a message: without the name and the password that it may hold."""
    return re.sub(r"(?<=//)[^/?#]*@", "", url)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long and how often to ask.

    One request may take ``timeout_s`` and its answer ``max_bytes``; all requests of
    one question together, with their retries and pauses, ``deadline_s``. Before
    retry k the pause is uniform in 0 … min(``longest_pause_s``, ``pause_s`` · 2^k)
    ("full jitter"), after what the server asks for in Retry-After. After
    ``failures`` questions in a row without an answer the service is left alone for
    ``rest_s``.
    """

    attempts: Count = 4
    timeout_s: Positive = 5.0
    deadline_s: Positive = 15.0
    pause_s: ZeroOrMore = 0.5
    longest_pause_s: ZeroOrMore = 8.0
    max_bytes: Count = 8_000_000
    failures: Count = 5
    rest_s: ZeroOrMore = 30.0

    def __post_init__(self) -> None:
        check_fields(self, "patience: ")


class BudgetError(IdealError):
    """A run has used up the requests it was given."""


class RequestBudget:
    """How many requests may be sent, if there is a ``limit``, and how many were.

    A request counts when it is sent, whatever comes back: a retry counts again, a recorded answer
    does not count. With a ``file`` the budget outlives a crash: the file gets a byte for every
    request before it is sent.
    """

    def __init__(
        self, limit: int | None = None, file: str | os.PathLike[str] | None = None
    ) -> None:
        if limit is not None:
            Range(whole=True).check(limit, "request budget")
        self.limit, self._lock = limit, Lock()
        self._file = None if file is None else open(file, "ab", buffering=0)  # noqa: SIM115
        self.spent = 0 if self._file is None else self._file.tell()

    def spend(self, kind: str) -> None:
        """Count a request that is about to be sent, or refuse it with a :class:`BudgetError`."""
        with self._lock:
            if self.limit is not None and self.spent >= self.limit:
                raise BudgetError(
                    f"{kind}: 1 more would exceed the budget of {self.limit} requests "
                    f"({self.spent} sent); raise it to go on"
                )
            self.spent += 1
            if self._file is not None:
                self._file.write(b".")
                os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


class Timer(Protocol):
    """How time passes, as in the module ``time``."""

    def monotonic(self) -> float: ...
    def sleep(self, seconds: float, /) -> None: ...


class OutsideService:
    """A service that may be slow, down or overloaded.

    ``name`` stands for it in messages. ``secrets`` are taken out of its answers, because a
    server may repeat them. ``rng`` draws the pauses between tries. The environment is not read: a
    ``proxy`` is named here. Connections are kept until :meth:`close`.
    """

    def __init__(
        self,
        name: str,
        rng: "np.random.Generator | random.Random | None" = None,
        *,
        patience: Patience | None = None,
        budget: RequestBudget | None = None,
        secrets: Iterable[str] = (),
        proxy: str | None = None,
        timer: Timer = time,
    ) -> None:
        self.name, self.patience = name, patience or Patience()
        self.budget = budget or RequestBudget()
        self._rng, self._timer, self._proxy = rng or random.Random(), timer, proxy
        self._secrets = [secret.encode() for secret in secrets if secret]
        self._idle: deque[httpx.Client] = deque()  # one for every exchange at a time
        self._failures, self._rests_until, self._reason = 0, 0.0, ""
        self._lock = Lock()

    def close(self) -> None:
        """Close open connections; the next request opens new ones."""
        while self._idle:
            self._idle.pop().close()

    def deadline(self) -> float:
        """The moment by which all requests from now on must be answered."""
        return self._timer.monotonic() + self.patience.deadline_s

    def ask(
        self,
        read: Callable[[HttpAnswer], _Found],
        method: str,
        url: str,
        *,
        deadline: float | None = None,
        **request: Any,
    ) -> _Found:
        """What ``read`` makes of the answer; ``request`` is as in :meth:`_exchange`.

        A request is repeated where the service is overloaded (429, 5xx), does not answer, or
        where ``read`` raises a :class:`NoAnswerError`. ``read`` gets answers of any other
        status. In the end a :class:`NoAnswerError` says what came last.
        """
        self._check_rest()
        until = self.deadline() if deadline is None else deadline
        where = public(url)
        failure, tries = f"{where}: no time was left to ask", 0
        while tries < self.patience.attempts and (left_s := until - self._timer.monotonic()) > 0:
            self.budget.spend(self.name)
            tries += 1
            asked_s: float | None = None
            try:
                answer = self._exchange(method, url, min(left_s, self.patience.timeout_s), request)
                if answer.status != 429 and answer.status < 500:
                    found = read(answer)
                    self._note("")
                    return found
                said = reason(refusal(answer)) or answer.excerpt
                failure, asked_s = f"{where}: HTTP {answer.status}{said}", answer.retry_after_s
            except NoAnswerError as error:
                failure = str(error)
            except IdealError:  # a refusal is an answer
                self._note("")
                raise
            doubled_s = self.patience.pause_s * 2.0 ** (tries - 1)
            longest_s = min(self.patience.longest_pause_s, doubled_s)
            with self._lock:
                pause_s = float(self._rng.uniform(0.0, longest_s)) + (asked_s or 0.0)
            if tries == self.patience.attempts or self._timer.monotonic() + pause_s >= until:
                failure += f"; it asks to wait {asked_s:g} s" if asked_s else ""
                break
            self._timer.sleep(pause_s)
        failure = f"{failure}; given up after {tries} of {self.patience.attempts} tries"
        self._note(failure)
        raise NoAnswerError(failure)

    def _exchange(
        self, method: str, url: str, limit_s: float, request: Mapping[str, Any]
    ) -> HttpAnswer:
        """One request with its ``params``, ``headers`` and ``content``.

        The limits of a socket are between two of its bytes: a server that drips headers would
        hold its caller for as long as it drips. So a thread asks, and at the limit the
        connection is closed, which ends the thread.
        """
        import httpx

        where = public(url)
        try:
            client = self._idle.pop()
        except IndexError:
            try:
                client = httpx.Client(proxy=self._proxy, trust_env=False, follow_redirects=False)
            except (httpx.InvalidURL, ValueError):
                raise InputError(f"{self.name} client: the proxy cannot be used") from None
        result: Future[HttpAnswer] = Future()

        def ask() -> HttpAnswer:
            with client.stream(method, url, timeout=limit_s, **request) as response:
                content = bytearray()
                for chunk in response.iter_bytes():  # as it arrives, not in full blocks
                    content += chunk
                    if len(content) > self.patience.max_bytes:
                        raise NoAnswerError(
                            f"{where}: the answer is larger than {self.patience.max_bytes:,} bytes"
                        )
            body = bytes(content)
            for secret in self._secrets:
                body = body.replace(secret, b"[key]")
            return HttpAnswer(response.status_code, response.headers, body)

        def run() -> None:
            finish: Callable[[], None]
            try:
                finish = partial(result.set_result, ask())
            except BaseException as error:
                finish = partial(result.set_exception, error)
            if not result.set_running_or_notify_cancel():
                finish = client.close  # the caller has stopped waiting
            finish()

        Thread(target=run, name="http exchange", daemon=True).start()
        try:
            return result.result(limit_s)
        except (TimeoutError, httpx.TimeoutException):
            raise NoAnswerError(f"{where}: no whole answer within {limit_s:g} s") from None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise InputError(f"{self.name} address {where!r} cannot be used: {error}") from None
        except httpx.HTTPError as error:
            words = one_line(str(error)) or type(error).__name__
            raise NoAnswerError(f"{where}: no answer ({words}); check the network") from None
        finally:
            if result.cancel():  # still waiting for the server
                client.close()
            if not client.is_closed:
                self._idle.append(client)

    def _check_rest(self) -> None:
        """Refuse to ask a service that is left alone; after its rest one question is a trial."""
        with self._lock:
            now = self._timer.monotonic()
            if self._failures < self.patience.failures:
                return
            if now < self._rests_until:
                raise NoAnswerError(
                    f"left alone for {self.patience.rest_s:g} s after {self._failures} failures "
                    f"in a row; the last: {self._reason}"  # the same words all the while
                )
            self._rests_until = now + self.patience.rest_s  # others wait for the trial

    def _note(self, failure: str) -> None:
        """Note how a question ended; a refusal is an answer."""
        with self._lock:
            self._failures = self._failures + 1 if failure else 0
            self._rests_until = self._timer.monotonic() + self.patience.rest_s
            self._reason = failure


# --- answers in JSON -------------------------------------------------------------------


def parsed(answer: HttpAnswer) -> Any:
    """The body as JSON, in which all numbers are finite, or a :class:`NoAnswerError`."""
    try:
        return json.loads(answer.body, parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise NoAnswerError(f"the answer is not whole JSON:{answer.excerpt}") from error


def refusal(answer: HttpAnswer) -> Any:
    """The body of a refusal, which may be anything, as JSON."""
    try:
        return parsed(answer)
    except NoAnswerError:
        return {"error": answer.excerpt.strip()}


def reason(body: Any) -> str:
    """Why, in a service's own words: Google's error object, Valhalla's and Open-Meteo's fields."""
    if isinstance(body, list) and body:
        body = body[0]
    said = body if isinstance(body, dict) else {}
    error, code = said.get("error"), said.get("error_code")
    if isinstance(error, dict):
        words = [error.get("status"), error.get("message")]
    else:
        number = f"error {code}" if code is not None else None
        words = [number, said.get("reason") if error is True else error]
    text = ": ".join(one_line(str(word)) for word in words if word)
    return f" {text}" if text else ""


def _finite(text: str) -> float:
    """JSON has no other numbers, but Python reads them."""
    number = float(text)
    if not math.isfinite(number):
        raise NoAnswerError(f"the answer is no valid JSON ({text} is not a finite number)")
    return number
