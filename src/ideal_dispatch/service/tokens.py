"""Bearer tokens of 256 random bits, of which only hashes are stored."""

import hashlib
import hmac
import secrets
from collections.abc import Sequence

from ideal_dispatch.errors import IdealError
from ideal_dispatch.service.settings import Token


class UnauthorizedError(IdealError):
    """No token, or one that is not configured."""


def new_token() -> tuple[str, str]:
    """A token and its hash for the settings."""
    token = secrets.token_urlsafe(32)
    return token, digest(token)


def digest(token: str) -> str:
    """What is stored of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def authenticate(token: str | None, configured: Sequence[Token]) -> Token:
    """The configured token that was presented, found in constant time, or the refusal."""
    how = "send `Authorization: Bearer …` with one that is configured"
    if token is None:
        raise UnauthorizedError(f"no token; {how}")
    presented, found = digest(token), None
    for known in configured:  # all of them, so that time says nothing
        if hmac.compare_digest(presented, known.sha256):
            found = known
    if found is None:
        raise UnauthorizedError(f"unknown token; {how}")
    return found
