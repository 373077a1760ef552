"""Log lines: JSON, about a call, and without secrets."""

import json
import logging
import sys

import pytest

from ideal_dispatch.service import logs


def line(message: str, *given: object, **extra: object) -> dict[str, object]:
    record = logging.LogRecord("ideal_dispatch.x", 20, "f", 1, message, given, None)
    record.__dict__.update(extra)
    made: dict[str, object] = json.loads(logs.JsonLines().format(record))
    return made


def test_a_line_says_what_when_and_about_which_call() -> None:
    token = logs.call_id.set("c-7")
    try:
        made = line("said %s", "so", status=200, ms=1.5)
    finally:
        logs.call_id.reset(token)
    assert made["text"] == "said so"
    assert (made["level"], made["part"], made["call_id"]) == ("info", "x", "c-7")
    assert (made["status"], made["ms"]) == (200, 1.5)
    assert "call_id" not in line("nothing")


def test_secrets_are_hidden() -> None:
    made = line("Authorization: Bearer abc.def-1, postgresql+psycopg://me:pa:ss@host/db")
    assert made["text"] == (
        "Authorization: Bearer [hidden], postgresql+psycopg://me:[hidden]@host/db"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://api.example/v1?apikey=abc&x=1: HTTP 401", "https://api.example/v1?[hidden] HTTP"),
        ("'https://api.example/?token=abc' refused", "'https://api.example/?[hidden]' refused"),
        ('HTTP 400 "invalid api_key=abc"', 'HTTP 400 "invalid api_key=[hidden]"'),
        ("is it on the way? key: none", "is it on the way? key: none"),
    ],
)
def test_keys_in_addresses_are_hidden(text: str, shown: str) -> None:
    assert logs.without_secrets(text).startswith(shown)


def test_a_hostile_text_stays_one_line() -> None:
    record = logging.LogRecord("x", 20, "f", 1, 'a\n{"level": "error"}\u2028', (), None)
    assert "\n" not in logs.JsonLines().format(record)


def test_an_exception_comes_with_its_trace() -> None:
    try:
        raise ValueError("postgresql://me:secret@host/db")
    except ValueError:
        record = logging.LogRecord("x", 40, "f", 1, "failed", (), sys.exc_info())
    made = json.loads(logs.JsonLines().format(record))
    assert "ValueError" in made["trace"]
    assert "secret" not in made["trace"]
