"""Every refusal in one form, and which error becomes which status."""

import json
import logging
from collections.abc import Mapping
from typing import Any, TypeVar

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ideal_dispatch.errors import IdealError, InputError
from ideal_dispatch.service.admission import RETRY_AFTER_S, BusyError, StartingError
from ideal_dispatch.service.audit.record import (
    NotRecordedError,
    OutdatedUnits,
    PromisedUnits,
    StoreError,
    UncheckedPromises,
)
from ideal_dispatch.service.http.answer_schemas import ErrorAnswer
from ideal_dispatch.service.http.schemas import first_fault
from ideal_dispatch.service.recommender import KeyUsedError
from ideal_dispatch.service.recorded_answers import ExpiredError, SupersededError
from ideal_dispatch.service.solver.process import SolverLostError
from ideal_dispatch.service.tokens import NotKnownError, TooManyFailuresError

log = logging.getLogger(__name__)

_Found = TypeVar("_Found")


class ToldOneByOneError(IdealError):
    """Counts of depots, where the centre tells of its units."""


_RETRY = {"Retry-After": str(RETRY_AFTER_S)}
_STATUS: Mapping[type[Exception], tuple[int, str, Mapping[str, str]]] = {
    NotKnownError: (401, "unauthorized", {"WWW-Authenticate": "Bearer"}),
    TooManyFailuresError: (429, "too_many_failures", {"Retry-After": "60"}),
    KeyUsedError: (409, "key_used", {}),
    ExpiredError: (409, "advice_expired", {}),
    SupersededError: (409, "advice_superseded", {}),
    OutdatedUnits: (409, "count_outdated", {}),
    PromisedUnits: (409, "unit_promised", {}),
    ToldOneByOneError: (409, "units_told_one_by_one", {}),
    BusyError: (503, "busy", _RETRY),
    StartingError: (503, "starting", _RETRY),
    SolverLostError: (503, "solver_lost", _RETRY),
    NotRecordedError: (503, "not_recorded", _RETRY),
    UncheckedPromises: (503, "audit_unavailable", _RETRY),
    StoreError: (503, "audit_unavailable", _RETRY),
    InputError: (422, "invalid", {}),
}
_INSTEAD: Mapping[type[Exception], str] = {  # of words that name hosts and paths
    NotRecordedError: "it could not be recorded in time; ask again",
    StoreError: "the audit's database does not answer; ask again",
}
_CODES = {422: "invalid", 403: "forbidden", 404: "not_found", 405: "method_not_allowed"}
_WORDS = {404: "there is nothing here", 405: "this cannot be asked in that way"}

_MEANINGS = {
    401: "no token, or one that is not known",
    403: "the token's role may not do this",
    404: "there is none",
    408: "the body came too slowly",
    409: "the key came with another body for this call, the advice no longer stands, a newer "
    "count of units is known, units are told one by one, or a unit is promised to another call",
    413: "the body is too large",
    415: "the body is not in UTF-8",
    422: "the request makes no sense; `where` names the field",
    429: "too many wrong tokens",
    503: "no solver at work, too many calls at once, or nothing can be recorded; ask again after "
    "Retry-After",
}

BODY = (408, 413, 415, 422)
"""Refusals of what came with a request."""


class RefusedError(Exception):
    """A refusal: what programs, people and browsers are told."""

    def __init__(
        self,
        status: int,
        code: str,
        words: str,
        where: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(words)
        self.status, self.code, self.headers = status, code, headers or {}
        error = {"code": code, "message": words, "where": where}
        self.body = json.dumps({"error": error}).encode()

    def response(self) -> Response:
        return Response(self.body, self.status, self.headers, "application/json")


def refusal_of(error: Exception) -> RefusedError:
    """The refusal that an error becomes; a surprise is logged, and no word of it told."""
    if isinstance(error, RefusedError):
        return error
    if isinstance(error, RequestValidationError):
        where, words = first_fault(error.errors())
        return RefusedError(422, "invalid", f"{where}: {words}", where)
    if isinstance(error, HTTPException):
        status = 422 if error.status_code == 400 else error.status_code  # a body that is no JSON
        code, words = _CODES.get(status, "refused"), _WORDS.get(status, str(error.detail))
        return RefusedError(status, code, words, headers=error.headers)
    for kind in type(error).__mro__:
        if kind in _STATUS:
            status, code, headers = _STATUS[kind]
            if kind in _INSTEAD:
                log.warning("%s: %s", code, error)
            return RefusedError(status, code, _INSTEAD.get(kind, str(error)), headers=headers)
    log.error("unexpected", exc_info=error)
    return RefusedError(500, "internal_error", "a fault of this program; it was logged")


def there(found: _Found | None) -> _Found:
    """What was asked for, or the refusal that there is none."""
    if found is None:
        raise HTTPException(404)
    return found


def documented(
    *statuses: int, model: Any = None, content: str = ""
) -> dict[int | str, dict[str, Any]]:
    """A good answer of a route, JSON of a ``model`` or another ``content``, and its refusals.

    Those of a wrong token are always among them.
    """
    good = {"content": {content: {}}} if content else {"model": model}
    answers: dict[int | str, dict[str, Any]] = {200: {"description": "As asked.", **good}}
    for status in (401, 429, *statuses):
        answers[status] = {"model": ErrorAnswer, "description": _MEANINGS[status]}
    return answers


def install(app: FastAPI) -> None:
    """Let the application answer errors this way."""

    async def answered(request: Request, error: Exception) -> Response:
        refused = refusal_of(error)
        request.app.state.service.observations.refused.labels(refused.code).inc()
        return refused.response()

    for kind in (IdealError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, answered)
