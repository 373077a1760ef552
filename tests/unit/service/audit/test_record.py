"""Entries say no to what cannot be kept, and hashes cover everything."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.audit.record import FIRST_HASH, Entry, Mark, Row, canonical
from tests.audit_entries import AT, entry

DEEP: list[Any] = []
for _ in range(100_000):
    DEEP = [DEEP]

ROW = Row.after(
    Mark(6, FIRST_HASH),
    Entry("recommendation", "call-1", {"b": [1, 2.5, None], "a": "香港"}, AT, "k", "a" * 32),
)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "gossip"}, "kind 'gossip'; choose one of recommendation, response"),
        ({"at": datetime(2025, 1, 1)}, "at 2025-01-01 00:00:00 has no zone"),
        ({"call_id": "a\x00b"}, "call_id 'a.x00b' cannot be kept"),
        ({"key": "\ud800"}, "key '.ud800' cannot be kept"),
        ({"call_id": "x" * 257}, "cannot be kept; at most 256 letters"),
        ({"body": {"x": float("nan")}}, "cannot be written as JSON .Out of range"),
        ({"body": {"x": float("inf")}}, "cannot be written as JSON"),
        ({"body": {"x": object()}}, "cannot be written as JSON .Object of type object"),
        ({"body": {"x": DEEP}}, "cannot be written as JSON .maximum recursion"),
        ({"body": {1: 1, "a": 1}}, "cannot be written as JSON"),
        ({"body": [1]}, "body is list; give a mapping"),
    ],
)
def test_what_cannot_be_kept_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(entry(), **change)


def test_the_same_contents_give_the_same_text() -> None:
    assert canonical({"b": 1, "a": [1.0, "é"]}) == '{"a":[1.0,"\\u00e9"],"b":1}'
    assert entry(body={"b": 1, "a": 2}).text == entry(body={"a": 2, "b": 1}).text


def test_later_changes_of_the_body_do_not_count() -> None:
    body = {"decision": "send_second"}
    made = entry(body=body)
    body["decision"] = "primary_only"
    assert made.text == '{"decision":"send_second"}'


def test_moments_are_kept_in_utc() -> None:
    at = AT.astimezone(timezone(timedelta(hours=8)))
    assert entry(at=at).at.tzinfo is UTC
    row = Row.after(Mark(0, FIRST_HASH), entry(at=at))
    assert row.at == "2025-01-01T00:00:00.000000+00:00"
    assert row.entry.at == AT


@pytest.mark.parametrize(
    "change",
    [
        {"number": 8},
        {"id": "b" * 32},
        {"kind": "response"},
        {"call_id": "call-2"},
        {"key": None},
        {"at": "2025-01-01T00:00:00.000001+00:00"},
        {"body": "{}"},
        {"duplicate_of": "c" * 32},
        {"previous_hash": "1" * 64},
    ],
)
def test_the_hash_covers_every_field(change: dict[str, Any]) -> None:
    assert ROW.expected_hash == ROW.hash
    assert replace(ROW, **change).expected_hash != ROW.hash


def test_hashes_stay_as_they_are() -> None:
    """Records of years ago are verified by programs of today."""
    assert ROW.hash == "4b942bb9c70001dc841763f17036da7faff18b6bfbd6030b758a96282d9090a2"
