"""Where the token of a request comes from."""

from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request

from ideal_dispatch.service.http.access import COOKIE, token_of


@pytest.mark.parametrize(
    ("method", "authorization", "cookie", "site", "token"),
    [
        ("GET", "Bearer abc", None, None, "abc"),
        ("POST", "bearer  abc ", "other", "cross-site", "abc"),
        ("GET", "Basic abc", "cookie", None, ""),
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
    presented: list[Any] = []

    def authenticate(token: str | None, address: str) -> str:
        presented.append((token, address))
        return "somebody"

    service = SimpleNamespace(authenticator=SimpleNamespace(authenticate=authenticate))
    scope = {
        "type": "http", "method": method, "headers": headers, "client": ("192.0.2.1", 5),
        "app": SimpleNamespace(state=SimpleNamespace(service=service)),
    }  # fmt: skip
    for _ in range(2):  # looked at once
        assert str(token_of(Request(scope))) == "somebody"
    assert presented == [(token, "192.0.2.1")]
