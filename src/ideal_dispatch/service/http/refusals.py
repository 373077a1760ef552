"""Every refusal in one form, and which error becomes which status."""

import json
import logging
from typing import Any, TypeVar

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ideal_dispatch.errors import IdealError, InputError
from ideal_dispatch.service.errors import RecordUnavailableError, ServiceError
from ideal_dispatch.service.http.answer_schemas import ErrorAnswer
from ideal_dispatch.service.requests import first_fault

log = logging.getLogger(__name__)

_Found = TypeVar("_Found")

_CODES = {422: "invalid", 403: "forbidden", 404: "not_found", 405: "method_not_allowed"}
_HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "1"}}

REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer} for status in (401, 403, 404, 408, 409, 413, 415, 422, 503)
}
"""What any route may answer instead, as the description of the API shows it."""


class RefusedError(Exception):
    """A refusal in words for people and a code for programs; ``more`` are fields beside these."""

    def __init__(
        self, status: int, code: str, words: str, where: str | None = None, **more: Any
    ) -> None:
        super().__init__(words)
        self.status, self.code = status, code
        self.headers = dict(_HEADERS.get(status, {}))
        error = {"code": code, "message": words, "where": where, **more}
        self.body = json.dumps({"error": error}).encode()

    def response(self) -> Response:
        return Response(self.body, self.status, self.headers, "application/json")


def refusal_of(error: Exception) -> RefusedError:
    """The refusal that an error becomes; an unexpected one is logged, and its words are kept."""
    match error:
        case RefusedError():
            return error
        case RequestValidationError():
            where, words = first_fault(error.errors())
            return RefusedError(422, "invalid", f"{where}: {words}", where)
        case HTTPException():
            status = {400: 422}.get(error.status_code, error.status_code)  # 400: it is no JSON
            refused = RefusedError(status, _CODES.get(status, "refused"), error.detail.lower())
            refused.headers |= error.headers or {}
            return refused
        case ServiceError():
            return RefusedError(error.status, error.code, str(error), **error.extra)
        case InputError():
            return RefusedError(422, "invalid", str(error))
        case RecordUnavailableError():  # its words name hosts and paths
            log.warning("record_unavailable: %s", error)
            words = "the database does not answer; nothing was changed, ask again"
            return RefusedError(503, "record_unavailable", words)
    log.error("unexpected", exc_info=error)
    return RefusedError(500, "internal_error", "a fault of this program; it was logged")


def or_404(found: _Found | None) -> _Found:
    """What was asked for, or the refusal that it does not exist."""
    if found is None:
        raise HTTPException(404)
    return found


def install(app: FastAPI) -> None:
    """Let the application answer errors this way."""

    async def answered(request: Request, error: Exception) -> Response:
        refused = refusal_of(error)
        request.app.state.service.metrics.refused.labels(refused.code).inc()
        return refused.response()

    for kind in (IdealError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, answered)
