"""Who may do what: the token of a request, and the roles of each route."""

import asyncio
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException

from ideal_dispatch.service.settings import Token
from ideal_dispatch.service.state import Service

COOKIE = "ideal_session"

_TOKEN = "ideal_dispatch.token"
_SAFE = ("GET", "HEAD", "OPTIONS")
_LOOKS = 5  # of the event loop, which then notices that a connection ended


async def service_of(request: Request) -> Service:
    """The state that all requests share."""
    service: Service = request.app.state.service
    return service


def token_of(request: Request) -> Token:
    """Whose request it is, or the refusal; looked at once."""
    if _TOKEN not in request.scope:
        request.scope[_TOKEN] = owner(request, presented(request))
    found: Token = request.scope[_TOKEN]
    return found


def owner(request: Request, token: str | None) -> Token:
    """Whose token it is, or the refusal."""
    service: Service = request.app.state.service
    return service.doorkeeper.who(token, request.client.host if request.client else "")


def bearer(request: Request) -> str | None:
    """The token in a request's header; empty where that is of another kind."""
    authorization = request.headers.get("authorization")
    if authorization is None:
        return None
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def presented(request: Request) -> str | None:
    """The token of a request: from its header, or from a cookie where no other site sent it."""
    token = bearer(request)
    if token is None:
        own = request.headers.get("sec-fetch-site", "none") in ("same-origin", "none")
        token = request.cookies.get(COOKIE) if own or request.method in _SAFE else None
    return token


def check_role(token: Token, *roles: str) -> None:
    """Refuse who has none of these roles."""
    if token.role not in roles:
        raise HTTPException(403, f"role {token.role} may not do this; {' or '.join(roles)} may")


class Only(HTTPBearer):
    """A dependency that lets these roles in; the description of the API shows it as a token."""

    def __init__(self, *roles: str) -> None:
        super().__init__(scheme_name="HTTPBearer", description="A token of the configuration.")
        self._roles = roles

    async def __call__(self, request: Request) -> Token:  # type: ignore[override]
        token = token_of(request)
        check_role(token, *self._roles)
        return token


async def still_there(request: Request) -> None:
    """Refuse a change whose client has hung up: it may have made a newer one elsewhere since.

    A worker that was frozen finds such requests when it goes on, and the end of their connections
    right behind them.
    """
    for _ in range(_LOOKS):
        await asyncio.sleep(0)
    if await request.is_disconnected():
        raise HTTPException(408, "the client hung up before the change was made; nothing was done")


Serving = Annotated[Service, Depends(service_of)]
Reader = Annotated[Token, Depends(Only("cad", "dispatcher", "auditor", "admin"))]
Caller = Annotated[Token, Depends(Only("cad", "dispatcher", "admin"))]
Dispatcher = Annotated[Token, Depends(Only("dispatcher", "admin"))]
