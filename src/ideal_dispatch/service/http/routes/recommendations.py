"""Advice, and what dispatchers do with it."""

import json
import re
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.http.access import (
    CALLERS,
    Caller,
    Dispatcher,
    Reader,
    Serving,
    service_of,
    still_there,
    token_of,
)
from ideal_dispatch.service.http.answer_schemas import Recommendation
from ideal_dispatch.service.http.json_response import Json
from ideal_dispatch.service.http.refusals import BODY, documented
from ideal_dispatch.service.http.schemas import HumanResponse, RecommendationRequest

ASK = "/v1/recommendations"

router = APIRouter(prefix=ASK, tags=["recommendations"])

Id = Annotated[str, Path(min_length=1, max_length=64, pattern=r"^[0-9a-z]+$")]
Key = Annotated[str | None, Header(alias="Idempotency-Key", max_length=200)]

_PRINTABLE = re.compile(r"[ -~]{1,200}")
_JSON = "application/json", "application/json; charset=utf-8"


class _CallRoute(APIRoute):
    """Hands a sound request to :func:`recommend` at once, any other to the framework.

    That one says what is wrong with it, and describes the endpoint; but its reading of
    parameters takes as long as all that a worker does with a call beside advice and audit.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        usual = super().get_route_handler()

        async def handle(asked: Request) -> Response:
            caller, body = token_of(asked), await asked.body()
            try:
                sound = caller.role in CALLERS and asked.headers["content-type"] in _JSON
                request = RecommendationRequest.model_validate(json.loads(body)) if sound else None
            except (KeyError, ValueError, RecursionError):
                request = None
            if request is None:
                return await usual(asked)
            key = asked.headers.get("idempotency-key")
            return await recommend(request, asked, await service_of(asked), caller, key)

        return handle


async def recommend(
    request: RecommendationRequest,
    asked: Request,
    service: Serving,
    caller: Caller,
    key: Key = None,
) -> Json:
    """Whether a second ambulance is worth sending to this call, and from where.

    The same call, key and body give the same answer and one row in the audit. A new body with
    a new key is a new revision. Without a key the body itself is the key.
    """
    key = one_key(key, request.idempotency_key)
    admitted = service.gate.admitted(asked.scope)
    return Json(await service.recommender.recommend(request, key, caller.name, admitted))


router.add_api_route(
    "",
    recommend,
    methods=["POST"],
    responses=documented(401, 403, *BODY, 409, 429, 503, model=Recommendation),
    route_class_override=_CallRoute,
)


def one_key(header: str | None, body: str | None) -> str | None:
    """The idempotency key, from wherever it was given."""
    if header is not None and body is not None and header != body:
        raise InputError("Idempotency-Key and idempotency_key differ; give one of them")
    key = header if header is not None else body
    if key is not None and _PRINTABLE.fullmatch(key) is None:
        raise InputError("idempotency key: 1 to 200 printable ASCII characters are needed")
    return key


@router.get(
    "",
    responses=documented(401, 403, 422, 429, 503, model=list[Recommendation]),
)
async def recent(
    service: Serving, reader: Reader, limit: Annotated[int, Query(ge=1, le=500)] = 50
) -> Json:
    """The latest recommendations, newest first."""
    return Json(await service.ledger.recent(limit))


@router.get(
    "/{id}",
    responses=documented(401, 403, 404, 422, 429, 503, model=Recommendation),
)
async def one(id: Id, service: Serving, reader: Reader) -> Json:  # noqa: A002
    """One recommendation, with the response to it."""
    found = await service.ledger.get(id)
    if found is None:
        raise HTTPException(404)
    return Json(found)


@router.post(
    "/{id}/response",
    dependencies=[Depends(still_there)],
    responses=documented(401, 403, 404, 409, *BODY, 429, 503, model=Recommendation),
)
async def respond(
    id: Id,  # noqa: A002
    response: HumanResponse,
    service: Serving,
    dispatcher: Dispatcher,
) -> Json:
    """What the dispatcher did: accept, or override with a reason. The last one counts.

    An advice that expired or that a newer one replaced is not answered any more: 409 with the
    code `advice_expired` or `advice_superseded`.
    """
    found = await service.respond(id, response, dispatcher.name)
    if found is None:
        raise HTTPException(404)
    return Json(found)
