"""A circuit breaker: a service that keeps failing is left alone for a while."""

import time
from collections.abc import Callable
from threading import Lock

from ideal_dispatch.errors import IdealError, InputError


class TrafficError(IdealError):
    """A traffic source cannot answer."""


class TrafficServiceError(TrafficError):
    """A traffic service does not answer, or answers nonsense: ask again later."""


class CircuitBreaker:
    """Opens after ``failures`` failed calls in a row, for ``rest_s``.

    Then one call is let through: its success closes the circuit, its failure
    opens it again. An open circuit costs the caller no waiting.
    """

    def __init__(
        self,
        failures: int = 5,
        rest_s: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if failures < 1 or not rest_s > 0:
            raise InputError("circuit breaker: one failure or more and a rest of some seconds")
        self._limit, self._rest_s, self._clock = failures, rest_s, clock
        self._failures, self._closed_from, self._reason = 0, 0.0, ""
        self._lock = Lock()

    def check(self, service: str) -> None:
        """Refuse the call while the service rests."""
        with self._lock:
            if self._failures < self._limit:
                return
            now = self._clock()
            if now < self._closed_from:
                raise TrafficServiceError(
                    f"{service}: left alone for another {self._closed_from - now:.0f} s after "
                    f"{self._failures} failures in a row; the last: {self._reason}"
                )
            self._closed_from = now + self._rest_s  # this call is the trial; others wait for it

    def succeeded(self) -> None:
        """The service answered, if only with a refusal."""
        with self._lock:
            self._failures = 0

    def failed(self, reason: str) -> None:
        """The service did not answer, or with nonsense."""
        with self._lock:
            self._failures += 1
            self._closed_from, self._reason = self._clock() + self._rest_s, reason
