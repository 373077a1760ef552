"""What clients hear of faults: enough to act on, nothing about the machines behind."""

import json
from typing import Any

import pytest
from starlette.exceptions import HTTPException

from ideal_dispatch.errors import InputError, OffNetworkError
from ideal_dispatch.service.errors import (
    BusyError,
    ConflictError,
    RecordUnavailableError,
    StartingError,
    UnauthorizedError,
)
from ideal_dispatch.service.http.refusals import refusal_of


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (UnauthorizedError("who?"), 401, "unauthorized"),
        (BusyError("full"), 503, "busy"),
        (StartingError("soon"), 503, "starting"),
        (RecordUnavailableError("database postgresql://h/d: refused"), 503, "record_unavailable"),
        (InputError("no"), 422, "invalid"),
        (OffNetworkError("far away"), 422, "invalid"),
        (ConflictError("expired", "too late"), 409, "expired"),
        (HTTPException(404), 404, "not_found"),
        (HTTPException(403, "role cad may not"), 403, "forbidden"),
        (HTTPException(400), 422, "invalid"),
        (ZeroDivisionError("secret"), 500, "internal_error"),
    ],
)
def test_which_error_becomes_which_status(error: Exception, status: int, code: str) -> None:
    refused = refusal_of(error)
    assert (refused.status, refused.code) == (status, code)
    said = json.loads(refused.body)["error"]
    assert said.keys() == {"code", "message", "where"}
    assert said["code"] == code
    assert ("Retry-After" in refused.headers) == (status == 503)


@pytest.mark.parametrize(
    "error", [RecordUnavailableError("postgresql://host/d is away"), RuntimeError("host")]
)
def test_machines_are_not_named(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    assert b"host" not in refusal_of(error).body
    assert "host" in caplog.text  # the log says which


def test_a_second_answer_learns_the_first() -> None:
    first: dict[str, Any] = {"action": "accept", "by": "desk 1"}
    refused = refusal_of(ConflictError("answered", "answered already", reply=first))
    assert json.loads(refused.body)["error"]["reply"] == first
