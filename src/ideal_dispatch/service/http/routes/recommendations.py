"""Advice, and what dispatchers do with it."""

import re
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Header, Path, Query, Request
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.http.access import Caller, Dispatcher, Reader, Serving, still_there
from ideal_dispatch.service.http.answer_schemas import Recommendation
from ideal_dispatch.service.http.eido import request_of
from ideal_dispatch.service.http.protection import SLOT
from ideal_dispatch.service.http.refusals import BODY, documented
from ideal_dispatch.service.http.schemas import HumanResponse, RecommendationRequest

ASK, EIDO = "/v1/recommendations", "/v1/incidents/eido"

router = APIRouter(tags=["recommendations"])

Id = Annotated[str, Path(min_length=1, max_length=64, pattern=r"^[0-9a-z]+$")]
Key = Annotated[str | None, Header(alias="Idempotency-Key", max_length=200)]

_PRINTABLE = re.compile(r"[ -~]{1,200}")


class Json(Response):
    """JSON, written quickly: an advice has hundreds of coordinates."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return to_json(content)


@router.post(ASK, responses=documented(403, *BODY, 409, 503, model=Recommendation))
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
    key, slot = _one_key(key, request.idempotency_key), asked.scope[SLOT]
    call, content = request.call(), request.content()
    return Json(await service.recommender.recommend(call, content, key, caller.name, slot))


@router.post(EIDO, responses=documented(403, *BODY, 409, 503, model=Recommendation))
async def eido(
    document: Annotated[dict[str, Any], Body()],  # no example: tools would follow the `$ref` in it
    asked: Request,
    service: Serving,
    caller: Caller,
    key: Key = None,
) -> Json:
    """Advice for a NENA EIDO (NENA-STA-021.1): its incident and its location by value.

    The primary is the first dispatched resource that is of a depot of ours; where there is none,
    the router chooses one. Free units are those of PUT /v1/units.
    """
    request = request_of(document, service.recommender.names.knows)
    return await recommend(request, asked, service, caller, key)


def _one_key(header: str | None, body: str | None) -> str | None:
    """The idempotency key, from wherever it was given."""
    if header is not None and body is not None and header != body:
        raise InputError("Idempotency-Key and idempotency_key differ; give one of them")
    key = header if header is not None else body
    if key is not None and _PRINTABLE.fullmatch(key) is None:
        raise InputError("idempotency key: 1 to 200 printable ASCII characters are needed")
    return key


@router.get(ASK, responses=documented(403, 422, 503, model=list[Recommendation]))
async def recent(
    service: Serving, reader: Reader, limit: Annotated[int, Query(ge=1, le=500)] = 50
) -> Json:
    """The latest recommendations, newest first."""
    return Json(await service.ledger.recent(limit))


@router.get(f"{ASK}/{{id}}", responses=documented(403, 404, 422, 503, model=Recommendation))
async def one(id: Id, service: Serving, reader: Reader) -> Json:  # noqa: A002
    """One recommendation, with the response to it."""
    found = await service.ledger.get(id)
    if found is None:
        raise HTTPException(404)
    return Json(found)


@router.post(
    f"{ASK}/{{id}}/response",
    dependencies=[Depends(still_there)],
    responses=documented(403, 404, 409, *BODY, 503, model=Recommendation),
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
    found = await service.respond(id, response.model_dump(), dispatcher.name)
    if found is None:
        raise HTTPException(404)
    return Json(found)
