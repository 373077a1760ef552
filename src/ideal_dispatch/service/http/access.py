"""Who may do what: the token of a request, and the roles of each route."""

import asyncio
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException

from ideal_dispatch.service.settings import Token, authenticate

COOKIE = "ideal_session"

_SAFE = ("GET", "HEAD", "OPTIONS")
_LOOKS = 5  # of the event loop, which then notices that a connection ended


def token_of(request: Request) -> Token:
    """Whose request it is, or the refusal."""
    token = bearer(request)
    if token is None:  # a cookie counts where no other site sent it
        own = request.headers.get("sec-fetch-site", "none") in ("same-origin", "none")
        token = request.cookies.get(COOKIE) if own or request.method in _SAFE else None
    return authenticate(token, request.app.state.service.settings.tokens)


def bearer(request: Request) -> str | None:
    """The token in a request's header; empty where that is of another kind."""
    authorization = request.headers.get("authorization")
    if authorization is None:
        return None
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def check_role(token: Token, *roles: str) -> None:
    """Refuse a token of any other role."""
    if token.role not in roles:
        raise HTTPException(403, f"role {token.role} may not do this; {' or '.join(roles)} may")


class Only(HTTPBearer):
    """A dependency that lets these roles in.

    A ``change`` is refused where its client has hung up, as it finds a worker that was frozen: it
    may have made a newer one elsewhere since.
    """

    def __init__(self, *roles: str, change: bool = False) -> None:
        super().__init__(scheme_name="HTTPBearer", description="A token of the configuration.")
        self._roles, self._change = roles, change

    async def __call__(self, request: Request) -> Token:  # type: ignore[override]
        token = token_of(request)
        check_role(token, *self._roles)
        if self._change:
            for _ in range(_LOOKS):
                await asyncio.sleep(0)
            if await request.is_disconnected():
                raise HTTPException(408, "the client hung up; nothing was changed")
        return token


_CALLERS = ("cad", "dispatcher", "admin")
Reader = Annotated[Token, Depends(Only("auditor", *_CALLERS))]
Changer = Annotated[Token, Depends(Only(*_CALLERS, change=True))]
Dispatcher = Annotated[Token, Depends(Only("dispatcher", "admin", change=True))]
Admin = Annotated[Token, Depends(Only("admin"))]
