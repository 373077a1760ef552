"""Tokens: hashed, recognised, and slow to guess."""

import pytest

from ideal_dispatch.service.settings import Token
from ideal_dispatch.service.tokens import (
    NotKnownError,
    TokenAuthenticator,
    TooManyFailuresError,
    digest,
    new_token,
)


@pytest.fixture
def known() -> TokenAuthenticator:
    return TokenAuthenticator(
        [Token("a", "cad", digest("one")), Token("b", "admin", digest("two"))]
    )


def test_a_new_token_is_long_random_and_stored_as_its_hash() -> None:
    token, hashed = new_token()
    assert len(token) >= 43  # 256 bits
    assert hashed == digest(token)
    assert token not in hashed
    assert new_token()[0] != token


def test_tokens_are_recognised(known: TokenAuthenticator) -> None:
    assert known.authenticate("one", "1.2.3.4").role == "cad"
    assert known.authenticate("two", "1.2.3.4").name == "b"
    for wrong in (None, "", "One", "one ", digest("one"), "\ud800"):
        with pytest.raises(NotKnownError):
            known.authenticate(wrong, f"address of {wrong!r}")


def test_guesses_are_slowed_down_and_valid_tokens_are_not(
    known: TokenAuthenticator, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    for _ in range(10):
        with pytest.raises(NotKnownError):
            known.authenticate("guess", "6.6.6.6")
    with pytest.raises(TooManyFailuresError):
        known.authenticate("guess", "6.6.6.6")
    assert known.authenticate("one", "6.6.6.6").name == "a"
    with pytest.raises(NotKnownError):
        known.authenticate("guess", "7.7.7.7")
    now[0] = 61.0
    with pytest.raises(NotKnownError):
        known.authenticate("guess", "6.6.6.6")


def test_a_request_without_token_is_no_guess(known: TokenAuthenticator) -> None:
    for _ in range(20):
        with pytest.raises(NotKnownError):
            known.authenticate(None, "1.1.1.1")
