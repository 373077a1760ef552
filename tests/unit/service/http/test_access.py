"""Where the token of a request comes from."""

from types import SimpleNamespace

import pytest
from starlette.requests import Request

from ideal_dispatch.service.errors import UnauthorizedError
from ideal_dispatch.service.http.access import COOKIE, token_of
from ideal_dispatch.service.settings import Token, digest


@pytest.mark.parametrize(
    ("method", "authorization", "cookie", "site", "token"),
    [
        ("GET", "Bearer abc", None, None, "abc"),
        ("POST", "bearer  abc ", "other", "cross-site", "abc"),
        ("GET", "Basic abc", "cookie", None, None),
        ("GET", None, "cookie", "cross-site", "cookie"),
        ("POST", None, "cookie", "same-origin", "cookie"),
        ("POST", None, "cookie", None, "cookie"),
        ("POST", None, "cookie", "cross-site", None),
        ("PUT", None, "cookie", "same-site", None),
        ("GET", None, None, None, None),
    ],
)
def test_where_a_token_may_come_from(
    method: str, authorization: str | None, cookie: str | None, site: str | None, token: str | None
) -> None:
    given = {"authorization": authorization, "sec-fetch-site": site}
    headers = [(k.encode(), v.encode()) for k, v in given.items() if v is not None]
    if cookie is not None:
        headers.append((b"cookie", f"{COOKIE}={cookie}".encode()))
    known = tuple(Token(one, "cad", digest(one)) for one in ("abc", "cookie"))
    service = SimpleNamespace(settings=SimpleNamespace(tokens=known))
    scope = {
        "type": "http", "method": method, "headers": headers,
        "app": SimpleNamespace(state=SimpleNamespace(service=service)),
    }  # fmt: skip
    if token is None:
        with pytest.raises(UnauthorizedError):
            token_of(Request(scope))
    else:
        assert token_of(Request(scope)).name == token
