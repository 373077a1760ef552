"""Who asks: bearer tokens of 256 random bits, of which only hashes are stored."""

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

from ideal_dispatch.errors import IdealError
from ideal_dispatch.service.settings import Token

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

    def who(self, token: str | None, address: str) -> Token:
        """Whose token it is, or the error to answer with."""
        how = "send `Authorization: Bearer …` with one that is configured"
        if token is None:
            raise NotKnownError(f"no token; {how}")
        presented, found = digest(token), None
        for known in self._tokens:  # all of them, so that time tells nothing
            if hmac.compare_digest(presented, known.sha256):
                found = known
        if found is None:
            self._count(address)
            raise NotKnownError(f"this token is not known; {how}")
        return found

    def _count(self, address: str) -> None:
        now = self._clock()
        failed = [at for at in self._failed.pop(address, []) if now - at < self._within_s]
        self._failed[address] = failed = [*failed[-self._most :], now]
        while len(self._failed) > _MANY:
            self._failed.popitem(last=False)
        if len(failed) > self._most:
            raise TooManyFailuresError(
                f"more than {self._most} wrong tokens in {self._within_s:.0f} s; wait"
            )
