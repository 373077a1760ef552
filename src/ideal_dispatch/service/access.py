"""Who may do what: the roles of each route."""

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.exceptions import HTTPException

from ideal_dispatch.service.auth import COOKIE, presented
from ideal_dispatch.service.settings import Token
from ideal_dispatch.service.state import Service

_BEARER = HTTPBearer(auto_error=False, description="A token of the configuration.")

READERS = ("cad", "dispatcher", "auditor", "admin")
CALLERS = ("cad", "dispatcher", "admin")
DISPATCHERS = ("dispatcher", "admin")


_TOKEN = "ideal_dispatch.token"


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


def only(*roles: str) -> Callable[..., Awaitable[Token]]:
    """A dependency that lets these roles in."""

    async def check(
        request: Request,
        _: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)] = None,
    ) -> Token:
        token = token_of(request)
        check_role(token, *roles)
        return token

    return check


Serving = Annotated[Service, Depends(service_of)]
Reader = Annotated[Token, Depends(only(*READERS))]
Caller = Annotated[Token, Depends(only(*CALLERS))]
Dispatcher = Annotated[Token, Depends(only(*DISPATCHERS))]
