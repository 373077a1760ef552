"""Tokens: long, random, stored as their hashes, and recognised."""

import pytest

from ideal_dispatch.service.errors import UnauthorizedError
from ideal_dispatch.service.settings import Token, authenticate, digest, new_token


def test_a_new_token_is_long_random_and_stored_as_its_hash() -> None:
    token, hashed = new_token()
    assert len(token) >= 43  # 256 bits
    assert hashed == digest(token)
    assert token not in hashed
    assert new_token()[0] != token


def test_tokens_are_recognised() -> None:
    known = [Token("a", "cad", digest("one")), Token("b", "admin", digest("two"))]
    assert authenticate("one", known).role == "cad"
    assert authenticate("two", known).name == "b"
    for wrong in (None, "", "One", "one ", digest("one"), "\ud800"):
        with pytest.raises(UnauthorizedError):
            authenticate(wrong, known)
