"""What every request passes before anything reads it: limits, headers, a line in the log.

Pure ASGI, so that streams stay streams.
"""

import asyncio
import codecs
import logging
import random
import re
import time
from itertools import accumulate
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ideal_dispatch.errors import IdealError
from ideal_dispatch.service import logs
from ideal_dispatch.service.http.access import token_of
from ideal_dispatch.service.http.refusals import RefusedError, refusal_of

if TYPE_CHECKING:
    from ideal_dispatch.service.service import Service

log = logging.getLogger(__name__)

ASK, EIDO = "/v1/recommendations", "/v1/incidents/eido"
UNITS, SESSION = "/v1/units", "/v1/session"

BEGAN = "ideal_dispatch.began"
"""Where in a request's scope stands when it began, by :func:`time.monotonic`."""

_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; worker-src 'self' blob:; "
    "manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "geolocation=(), camera=(), microphone=()",
}
_QUIET = ("/healthz", "/readyz", "/metrics")  # asked every few seconds
_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_NOT_BEGINNINGS = bytes(set(range(256)) - set(b"[{,:"))
_SESSION_BYTES = 1024
_MOST_ELEMENTS = 20_000  # each may become an error to be described
_CHARSET = re.compile(r"""(?i)charset\s*=\s*["']?([^"';\s]*)""")
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

    No body is read without a token, except where a session begins, or without a free place.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope[BEGAN] = began = time.monotonic()
        given = Headers(scope=scope).get("x-request-id", "")
        name = given if _GIVEN_ID.fullmatch(given) else f"{random.getrandbits(128):032x}"
        logs.request_id.set(name)
        status = 0

        async def answering(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status, headers = message["status"], MutableHeaders(scope=message)
                headers.update({**_HEADERS, "x-request-id": name})
                # advice is never to be shown from a cache, and a desk is to be the newest
                fresh = "no-store" if scope["path"].startswith("/v1/") else "no-cache"
                headers.setdefault("cache-control", fresh)
            await send(message)

        serve: ASGIApp = self._app
        try:
            try:
                receive = await self._checked(scope, receive)
            except (IdealError, RefusedError) as error:
                refusal = refusal_of(error)
                scope["app"].state.service.metrics.refused.labels(refusal.code).inc()
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

    async def _checked(self, scope: Scope, receive: Receive) -> Receive:
        """What the application is to receive, once that is known to be harmless."""
        headers, path = Headers(scope=scope), scope["path"]
        length = headers.get("content-length", "0")
        if length == "0" and "transfer-encoding" not in headers:
            return receive
        service: Service = scope["app"].state.service
        client = "" if path == SESSION else token_of(Request(scope)).name
        if scope["method"] == "POST" and path in (ASK, EIDO):
            service.admission.check(client)
        limits = service.settings.server
        most = limits.eido_bytes if path in (EIDO, UNITS) else limits.body_bytes
        most = _SESSION_BYTES if path == SESSION else most
        too_large = RefusedError(413, "too_large", f"the body exceeds {most:,} bytes", "body")
        if not length.isdecimal() or int(length) > most:
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
        if not _is_utf8(body, headers.get("content-type", "")):
            words = "send the body in UTF-8, without a byte order mark"
            raise RefusedError(415, "not_utf8", words, "body")
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


def _is_utf8(body: bytes, kind: str) -> bool:
    """Whether it is UTF-8; readers of JSON find UTF-16 and UTF-32 by their NULs."""
    charset = _CHARSET.search(kind)
    if charset and charset[1].lower() not in ("utf-8", "utf8"):
        return False
    try:
        return "\0" not in body.decode() and not body.startswith(codecs.BOM_UTF8)
    except UnicodeDecodeError:
        return False
