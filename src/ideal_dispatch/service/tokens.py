"""Bearer tokens of 256 random bits, of which only hashes are stored."""

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Sequence

from ideal_dispatch.errors import IdealError
from ideal_dispatch.service.settings import Token

_FAILURES, _WITHIN_S = 10, 60  # wrong tokens of an address, before it has to wait
_MANY = 10_000  # addresses whose failures are remembered


class NotKnownError(IdealError):
    """No token, or one that is not configured."""


class TooManyFailuresError(IdealError):
    """An address that has tried too many wrong tokens."""


def new_token() -> tuple[str, str]:
    """A token and its hash for the settings."""
    token = secrets.token_urlsafe(32)
    return token, digest(token)


def digest(token: str) -> str:
    """What is stored of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


class TokenAuthenticator:
    """Recognises tokens in constant time; slows down clients that guess.

    A valid token is always accepted, also from an address that failed before: guessing from a
    dispatch centre's network cannot lock the centre out.
    """

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tuple(tokens)
        self._failed: OrderedDict[str, list[float]] = OrderedDict()

    def authenticate(self, token: str | None, address: str) -> Token:
        """The configured token that was presented, or the error to answer with."""
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
        now = time.monotonic()
        failed = [at for at in self._failed.pop(address, []) if now - at < _WITHIN_S]
        self._failed[address] = failed = [*failed[-_FAILURES:], now]
        while len(self._failed) > _MANY:
            self._failed.popitem(last=False)
        if len(failed) > _FAILURES:
            raise TooManyFailuresError(f"more than {_FAILURES} wrong tokens in {_WITHIN_S} s; wait")
