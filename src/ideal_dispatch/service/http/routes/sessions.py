"""A browser's session: the token in a cookie that no script can read."""

from typing import Annotated

from fastapi import APIRouter, Body, Request
from starlette.responses import JSONResponse, Response

from ideal_dispatch.service.http.access import Reader, Serving
from ideal_dispatch.service.http.answer_schemas import SessionOut
from ideal_dispatch.service.http.auth import COOKIE, SESSION_S, presented
from ideal_dispatch.service.http.refusals import BODY, documented
from ideal_dispatch.service.http.schemas import SessionIn

router = APIRouter(prefix="/v1/session", tags=["session"])


@router.post("", responses=documented(401, *BODY, 429, model=SessionOut))
async def sign_in(
    request: Request, service: Serving, given: Annotated[SessionIn | None, Body()] = None
) -> JSONResponse:
    """Keep a token, of the body or of the Authorization header, in a cookie for this browser."""
    address = request.client.host if request.client else ""
    token = presented(request.method, request.headers.get("authorization"), None, None)
    if given is not None and given.token is not None:
        token = given.token.strip()
    who = service.doorkeeper.who(token, address)
    response = JSONResponse({"name": who.name, "role": who.role})
    response.set_cookie(
        COOKIE, token or "", max_age=SESSION_S, httponly=True, samesite="strict",
        secure=service.settings.server.secure_cookie or request.url.scheme == "https",
    )  # fmt: skip
    return response


@router.get("", responses=documented(401, 429, model=SessionOut))
async def who(reader: Reader) -> JSONResponse:
    """Whose session it is."""
    return JSONResponse({"name": reader.name, "role": reader.role})


@router.delete("", status_code=204, response_class=Response)
async def sign_out() -> Response:
    """Forget the cookie."""
    response = Response(status_code=204)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return response
