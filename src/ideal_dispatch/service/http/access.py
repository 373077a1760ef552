"""Who may do what: the roles of each route."""

import asyncio
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException

from ideal_dispatch.service.http.auth import COOKIE, presented
from ideal_dispatch.service.settings import Token
from ideal_dispatch.service.state import Service

READERS = ("cad", "dispatcher", "auditor", "admin")
CALLERS = ("cad", "dispatcher", "admin")
DISPATCHERS = ("dispatcher", "admin")


_TOKEN = "ideal_dispatch.token"
_TURNS = 5  # of the event loop, in which it notices that a connection ended


async def service_of(request: Request) -> Service:
    """The state that all requests share."""
    service: Service = request.app.state.service
    return service


def token_of(request: Request) -> Token:
    """Whose request it is, or the refusal; looked at once."""
    known = request.scope.get(_TOKEN)
    if isinstance(known, Token):
        return known
    headers = request.headers
    token = presented(
        request.method, headers.get("authorization"), request.cookies.get(COOKIE),
        headers.get("sec-fetch-site"),
    )  # fmt: skip
    address = request.client.host if request.client else ""
    found: Token = request.app.state.service.doorkeeper.who(token, address)
    request.scope[_TOKEN] = found
    return found


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
    for _ in range(_TURNS):
        await asyncio.sleep(0)
    if await request.is_disconnected():
        raise HTTPException(408, "the client hung up before the change was made; nothing was done")


Serving = Annotated[Service, Depends(service_of)]
Reader = Annotated[Token, Depends(Only(*READERS))]
Caller = Annotated[Token, Depends(Only(*CALLERS))]
Dispatcher = Annotated[Token, Depends(Only(*DISPATCHERS))]
