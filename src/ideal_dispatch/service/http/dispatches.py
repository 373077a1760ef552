"""The API of running dispatches: what is expected of both units, and what is advised of them."""

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field
from starlette.responses import JSONResponse

from ideal_dispatch.service.http.access import Dispatcher, Reader, Serving, still_there
from ideal_dispatch.service.http.answer_schemas import ResponseOut
from ideal_dispatch.service.http.refusals import BODY, documented, there
from ideal_dispatch.service.http.schemas import HumanResponse, Id

DISPATCHES = "/v1/dispatches"

router = APIRouter(tags=["dispatches"])


class DispatchReply(HumanResponse):
    """What the dispatcher did with the advice ``advice_id`` on a running dispatch."""

    advice_id: Annotated[str, Field(min_length=1, max_length=64)]


class GoingOut(BaseModel):
    """A unit of a dispatch: what it does, and in how many seconds it is expected.

    Those are null where nobody knows when, or no open road leads there.
    """

    unit: str
    depot: str
    status: str | None
    expected_s: float | None


class ProposedOut(BaseModel):
    """The unit that is to be sent now."""

    unit: str
    depot: str


class WhyOut(BaseModel):
    """A reason of the advice as a code, with its numbers."""

    code: str
    values: dict[str, float]


class DispatchOut(BaseModel):
    """Two units on their way to one call, as of ``updated_at``; figures that nobody knows are null.

    ``proposed`` is the unit of an advice to send one, until somebody replies; null where nobody is
    free who gets there.
    ``second_first`` is the chance that the second arrives first. It still ``saves`` so many lives,
    and keeping it costs the others ``cost`` lives. ``advice`` is never an order; ``advice_id`` is
    null until something other than "keep" was advised. ``reason`` says the ``reasons`` in words.
    """

    id: str
    call_id: str
    started_at: datetime
    state: Literal["running", "stood_down", "ended"]
    primary: GoingOut
    second: GoingOut
    proposed: ProposedOut | None
    second_first: float | None
    saves: float | None
    cost: float | None
    advice: Literal["keep", "stand_down", "send_one"]
    advice_id: str | None
    reason: str
    reasons: list[WhyOut]
    advised_at: datetime | None
    changes: int
    response: ResponseOut | None
    updated_at: datetime


@router.get(DISPATCHES, responses=documented(403, model=list[DispatchOut]))
async def running(service: Serving, reader: Reader) -> JSONResponse:
    """Dispatches with a second unit that are not over, newest first."""
    return JSONResponse(service.dispatches.running())


@router.get(f"{DISPATCHES}/{{id}}", responses=documented(403, 404, 422, model=DispatchOut))
async def one(id: Id, service: Serving, reader: Reader) -> JSONResponse:  # noqa: A002
    """One dispatch; its id is that of the recommendation."""
    return JSONResponse(there(service.dispatches.get(id)))


@router.post(
    f"{DISPATCHES}/{{id}}/response",
    dependencies=[Depends(still_there)],
    responses=documented(403, 404, 409, *BODY, 503, model=DispatchOut),
)
async def respond(
    id: Id,  # noqa: A002
    reply: DispatchReply,
    service: Serving,
    dispatcher: Dispatcher,
) -> JSONResponse:
    """What the dispatcher did: accept, or override with a reason.

    An advice that a newer one replaced, or whose dispatch is over, is not answered any more: 409.
    """
    said = reply.model_dump(exclude={"advice_id"})
    found = await service.dispatches.respond(id, reply.advice_id, said, dispatcher.name)
    return JSONResponse(there(found))
