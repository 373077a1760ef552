"""What every request passes before anything reads it: limits, headers, a line in the log.

Pure ASGI, so that streams stay streams.
"""

import asyncio
import codecs
import logging
import random
import re
import time
from collections.abc import Collection, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ideal_dispatch.errors import IdealError
from ideal_dispatch.service import logs
from ideal_dispatch.service.http.access import token_of
from ideal_dispatch.service.http.refusals import RefusedError, refusal_of

if TYPE_CHECKING:
    from ideal_dispatch.service.service import Service

log = logging.getLogger(__name__)

BEGAN = "ideal_dispatch.began"
"""Where in a request's scope stands when it began, by :func:`time.monotonic`."""

_CONTENT_SECURITY_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    b"font-src 'self'; connect-src 'self'; worker-src 'self' blob:; manifest-src 'self'; "
    b"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_HEADERS = (
    (b"content-security-policy", _CONTENT_SECURITY_POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"geolocation=(), camera=(), microphone=()"),
)
_QUIET = ("/healthz", "/readyz", "/metrics")  # asked every few seconds
_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_NOT_BEGINNINGS = bytes(set(range(256)) - set(b"[{,:"))
_MOST_ELEMENTS = 20_000  # each may become an error to be described
_CHARSET = re.compile(rb"""charset\s*=\s*["']?([^"';\s]*)""")
_NOT_UTF8 = "send the body in UTF-8, without a byte order mark"
_GIVEN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def depth(body: bytes) -> int:
    """How deeply brackets are nested outside strings."""
    brackets = _STRINGS.sub(b"", body).translate(None, _NOT_BRACKETS)
    return max(accumulate((1 if one in b"[{" else -1 for one in brackets), initial=0))


def elements(body: bytes) -> int:
    """How many brackets open, and commas and colons stand, outside strings."""
    return len(_STRINGS.sub(b"", body).translate(None, _NOT_BEGINNINGS))


class Protection:
    """Caps a body's size, nesting and time, adds security headers, and logs the request.

    The token is checked before a body is read, except at the paths of ``strangers``. Where no
    place is free, what is posted to ``calls`` is not read either. A body may have as many
    ``bytes`` as are said of its path; elsewhere the settings say it.
    """

    def __init__(
        self,
        app: ASGIApp,
        service: "Service",
        bytes: Mapping[str, int],  # noqa: A002
        calls: Collection[str],
        strangers: Collection[str],
    ) -> None:
        self._app, self._service = app, service
        self._bytes, self._calls, self._strangers = bytes, calls, strangers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, headers = time.monotonic(), dict(scope["headers"])
        scope[BEGAN] = began
        given = headers.get(b"x-request-id", b"").decode("latin-1")
        name = given if _GIVEN_ID.fullmatch(given) else f"{random.getrandbits(128):032x}"
        logs.request_id.set(name)
        status = 0

        async def answering(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = list(message.get("headers", ()))
                extra = [*_HEADERS, (b"x-request-id", name.encode())]
                if not any(header == b"cache-control" for header, _ in own):
                    # advice is never to be shown from a cache, and a desk is to be the newest
                    fresh = b"no-store" if scope["path"].startswith("/v1/") else b"no-cache"
                    extra.append((b"cache-control", fresh))
                message["headers"] = [*own, *extra]
            await send(message)

        serve: ASGIApp = self._app
        try:
            try:
                receive = await self._checked(scope, receive, headers)
            except (IdealError, RefusedError) as error:
                refusal = refusal_of(error)
                self._service.metrics.refused.labels(refusal.code).inc()
                serve = response = refusal.response()
                if refusal.status != 503:  # a client that asks again keeps the connection
                    response.headers["connection"] = "close"  # the rest of the body is not read
            await serve(scope, receive, answering)
        finally:
            level = logging.DEBUG if scope["path"] in _QUIET else logging.INFO
            client = scope.get("client") or ("", 0)
            log.log(level, "request", extra={
                "method": scope["method"], "path": scope["path"][:200], "status": status,
                "ms": round(1000 * (time.monotonic() - began), 1), "client": client[0],
            })  # fmt: skip

    async def _checked(
        self, scope: Scope, receive: Receive, headers: dict[bytes, bytes]
    ) -> Receive:
        """What the application is to receive, once that is known to be harmless."""
        length, path = headers.get(b"content-length", b"0"), scope["path"]
        if length == b"0" and b"transfer-encoding" not in headers:
            return receive
        client = "" if path in self._strangers else token_of(Request(scope)).name
        if scope["method"] == "POST" and path in self._calls:
            self._service.admission.check(client)
        charset = _CHARSET.search(headers.get(b"content-type", b"").lower())
        if charset and charset[1] not in (b"utf-8", b"utf8"):
            raise RefusedError(415, "not_utf8", _NOT_UTF8, "body")
        limits = self._service.settings.server
        most = self._bytes.get(path, limits.body_bytes)
        too_large = RefusedError(
            413, "too_large", f"the body is larger than {most:,} bytes", "body"
        )
        if not length.isdigit() or int(length) > most:
            raise too_large
        read, more = bytearray(), True
        try:
            async with asyncio.timeout(limits.body_timeout_s):
                while more and len(read) <= most:
                    message = await receive()  # of another type where the client hung up
                    read += message.get("body", b"")
                    more = message.get("more_body", False)
        except TimeoutError:
            words = f"the body did not arrive within {limits.body_timeout_s:g} s"
            raise RefusedError(408, "too_slow", words, "body") from None
        if len(read) > most:
            raise too_large
        body = bytes(read)
        if not _is_utf8(body):
            raise RefusedError(415, "not_utf8", _NOT_UTF8, "body")
        if elements(body) > _MOST_ELEMENTS:  # first: how deep many are takes longer
            words = f"the body has more than {_MOST_ELEMENTS:,} elements"
            raise RefusedError(422, "too_many_elements", words, "body")
        if depth(body) > limits.nesting:
            words = f"the body is nested more than {limits.nesting} deep"
            raise RefusedError(422, "too_deep", words, "body")
        whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replayed() -> Message:
            return whole.pop() if whole else await receive()

        return replayed


def _is_utf8(body: bytes) -> bool:
    """Whether it is UTF-8 and no reader of JSON takes it for anything else.

    Such a reader finds UTF-16 and UTF-32 by their NULs; the limits here would not see a bracket.
    """
    try:
        return "\0" not in body.decode() and not body.startswith(codecs.BOM_UTF8)
    except UnicodeDecodeError:
        return False
