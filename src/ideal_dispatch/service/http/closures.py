"""Roads that the centre closes: told, listed and opened again."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.config import JsonDict
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from ideal_dispatch.service.http.access import Caller, Reader, Serving, still_there
from ideal_dispatch.service.http.refusals import BODY, documented
from ideal_dispatch.service.http.schemas import Id, In, Moment, Name, Number
from ideal_dispatch.service.solver.messages import MOST_CLOSED

CLOSURES = "/v1/closures"

router = APIRouter(tags=["closures"])

_Point = Annotated[list[Number], Field(min_length=2, max_length=2)]
_MOST_POINTS = 500

EXAMPLE: JsonDict = {
    "reason": "parade",
    "until": "2026-03-01T12:00:00+08:00",
    "line": [[114.1502, 22.2801], [114.1531, 22.2809]],
}


class ClosureIn(In):
    """A road or an area that is closed, now or ``from`` a moment, for good or ``until`` another.

    It is named by exactly one of three: ``edges`` of the network, a ``line`` along the road, which
    closes both of its directions, or a ``polygon`` (points of longitude and latitude).
    """

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    since: Moment | None = Field(default=None, alias="from")
    until: Moment | None = None
    reason: Name | None = None
    edges: Annotated[list[int], Field(min_length=1, max_length=MOST_CLOSED)] | None = None
    line: Annotated[list[_Point], Field(min_length=2, max_length=_MOST_POINTS)] | None = None
    polygon: Annotated[list[_Point], Field(min_length=3, max_length=_MOST_POINTS)] | None = None

    @model_validator(mode="after")
    def _one_shape(self) -> "ClosureIn":
        shapes = [one for one in (self.edges, self.line, self.polygon) if one is not None]
        if len(shapes) != 1:
            raise ValueError("give exactly one of edges, line and polygon")
        for lon, lat in (*(self.line or ()), *(self.polygon or ())):
            if not (abs(lon) <= 180 and abs(lat) <= 90):
                raise ValueError(f"longitude {lon}, latitude {lat} are not on Earth; swapped?")
        if self.since is not None and self.until is not None and self.until <= self.since:
            raise ValueError("until is not after from")
        return self

    def drawn(self) -> tuple[str, Any]:
        """Which of the three it is."""
        kinds = {"edges": self.edges, "line": self.line, "polygon": self.polygon}
        return next((kind, shape) for kind, shape in kinds.items() if shape is not None)


class ClosureOut(BaseModel):
    """A closure: ``edges`` are closed while it is ``active``.

    It has no edges, and is not active, where the network changed and its roads are not known any
    more.
    """

    id: str
    since: datetime | None = Field(alias="from")
    until: datetime | None
    reason: str
    by: str
    at: datetime
    edges: list[int]
    line: list[tuple[float, float]] | None
    polygon: list[tuple[float, float]] | None
    active: bool


def _made(status: int, answers: dict[int | str, dict[str, Any]]) -> dict[int | str, dict[str, Any]]:
    """The same answers, of which the good one has another status."""
    good = answers.pop(200)
    return {status: good if status != 204 else {"description": "As asked."}, **answers}


@router.get(CLOSURES, responses=documented(403, model=list[ClosureOut]))
async def listed(service: Serving, reader: Reader) -> JSONResponse:
    """Closures that are in force or will be, in the order in which they were told."""
    return JSONResponse(service.closures.rows())


@router.post(
    CLOSURES,
    status_code=201,
    dependencies=[Depends(still_there)],
    responses=_made(201, documented(403, *BODY, 503, model=ClosureOut)),
)
async def close(told: ClosureIn, service: Serving, caller: Caller) -> JSONResponse:
    """Close a road or an area: no route of an advice drives there while it is closed.

    It ends by itself at `until`, or when it is deleted.
    """
    kind, drawn = told.drawn()
    made = await service.closures.close(
        kind, drawn, caller.name, since=told.since, until=told.until, reason=told.reason or ""
    )
    return JSONResponse(made, 201)


@router.delete(
    f"{CLOSURES}/{{id}}",
    status_code=204,
    response_class=Response,
    dependencies=[Depends(still_there)],
    responses=_made(204, documented(403, 404, 408, 422, 503)),
)
async def end(id: Id, service: Serving, caller: Caller) -> Response:  # noqa: A002
    """Open it again, before its time is over or before it began."""
    if not await service.closures.end(id, caller.name):
        raise HTTPException(404)
    return Response(status_code=204)
