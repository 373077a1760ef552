"""Tokens: hashed, recognised, and slow to guess."""

import pytest

from ideal_dispatch.service.settings import Token
from ideal_dispatch.service.tokens import (
    Doorkeeper,
    NotKnownError,
    TooManyFailuresError,
    digest,
    new_token,
)


def keeper() -> Doorkeeper:
    return Doorkeeper([Token("a", "cad", digest("one")), Token("b", "admin", digest("two"))])


def test_a_new_token_is_long_random_and_stored_as_its_hash() -> None:
    token, hashed = new_token()
    assert len(token) >= 43  # 256 bits
    assert hashed == digest(token)
    assert token not in hashed
    assert new_token()[0] != token


def test_tokens_are_recognised() -> None:
    door = keeper()
    assert door.who("one", "1.2.3.4").role == "cad"
    assert door.who("two", "1.2.3.4").name == "b"
    for wrong in ("", "One", "one ", digest("one"), "\ud800"):
        with pytest.raises((NotKnownError, TooManyFailuresError)):
            door.who(wrong, f"address of {wrong!r}")
    with pytest.raises(NotKnownError, match="no token; send `Authorization: Bearer"):
        door.who(None, "1.2.3.4")


def test_who_guesses_is_slowed_down_and_who_knows_is_let_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, door = [0.0], keeper()
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    for _ in range(10):
        with pytest.raises(NotKnownError):
            door.who("guess", "6.6.6.6")
    with pytest.raises(TooManyFailuresError, match="more than 10 wrong tokens in 60 s"):
        door.who("guess", "6.6.6.6")
    assert door.who("one", "6.6.6.6").name == "a"  # nobody can lock a centre out
    with pytest.raises(NotKnownError):
        door.who("guess", "7.7.7.7")
    now[0] = 61.0
    with pytest.raises(NotKnownError):
        door.who("guess", "6.6.6.6")


def test_a_request_without_token_is_no_guess() -> None:
    door = keeper()
    for _ in range(20):
        with pytest.raises(NotKnownError):
            door.who(None, "1.1.1.1")
