"""Who asks: bearer tokens of 256 random bits, of which only hashes are stored."""

import hashlib
import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

from ideal_dispatch.errors import IdealError
from ideal_dispatch.service.settings import Token

COOKIE = "ideal_session"
SESSION_S = 12 * 3600
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_MANY = 10_000  # addresses whose failures are remembered


class NotKnownError(IdealError):
    """No token, or one that nobody has."""


class TooManyFailuresError(IdealError):
    """An address that has tried too many wrong tokens."""


def new_token() -> tuple[str, str]:
    """A token and its hash for the settings."""
    token = secrets.token_urlsafe(32)
    return token, digest(token)


def digest(token: str) -> str:
    """What is stored of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


class Doorkeeper:
    """Recognises tokens in constant time; slows down who guesses.

    A valid token is always let in, also from an address that failed before:
    nobody can lock a dispatch centre out by guessing from its network.
    """

    def __init__(
        self,
        tokens: Sequence[Token],
        *,
        failures: int = 10,
        within_s: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tokens = tuple(tokens)
        self._most, self._within_s, self._clock = failures, within_s, clock
        self._failed: OrderedDict[str, list[float]] = OrderedDict()
        self._lock = threading.Lock()

    def who(self, token: str | None, address: str) -> Token:
        """Whose token it is, or the error to answer with."""
        found = None
        if token is not None:
            presented = digest(token)
            for known in self._tokens:  # all of them, so that time tells nothing
                if hmac.compare_digest(presented, known.sha256):
                    found = known
        if found is not None:
            return found
        if token is not None:
            self._count(address)
        what = "no token" if token is None else "this token is not known"
        raise NotKnownError(f"{what}; send `Authorization: Bearer …` with one that is configured")

    def _count(self, address: str) -> None:
        now = self._clock()
        with self._lock:
            failed = self._failed.pop(address, [])
            failed = [at for at in failed if now - at < self._within_s][-self._most :]
            failed.append(now)
            self._failed[address] = failed
            while len(self._failed) > _MANY:
                self._failed.popitem(last=False)
        if len(failed) > self._most:
            raise TooManyFailuresError(
                f"more than {self._most} wrong tokens in {self._within_s:.0f} s; wait"
            )


def presented(
    method: str, authorization: str | None, cookie: str | None, fetch_site: str | None
) -> str | None:
    """The token of a request: from its header, or from a cookie where no other site sent it."""
    if authorization is not None:
        scheme, _, token = authorization.partition(" ")
        return token.strip() if scheme.lower() == "bearer" else ""
    if cookie is None:
        return None
    own = fetch_site in (None, "same-origin", "none")
    return cookie if method in _SAFE or own else None
