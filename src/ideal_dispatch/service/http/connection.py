"""A client's connection: how long a request's head may be and take, and when the next one is read.

uvicorn with httptools bounds none of that: one endless head or thousands of
requests at once would fill the memory, and one client that asks again at once
would keep all others waiting.
"""

import asyncio
import logging
import time
from collections import deque
from http import HTTPStatus
from typing import Any, cast

from httptools import HttpParserError, HttpParserUpgrade
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from ideal_dispatch.service.admission import RETRY_AFTER_S, BusyError
from ideal_dispatch.service.http.protection import BEGAN, REFUSED
from ideal_dispatch.service.http.refusals import RefusedError, refusal_of

HEADERS_S = 10.0
"""How long a client may take, from the start or from an answer, to the end of its headers."""

HEAD_BYTES = 16_384
"""Of a request's address and headers; each header counts 32 bytes more, as in HTTP/2."""

MOST_WAITING = 8
"""Requests of one connection that wait for the answer before them."""

MOST_CONNECTIONS = 1000
"""Below the usual limit of file descriptors."""

log = logging.getLogger(__name__)

_EACH_HEADER = 32
_FIRST_REST_S = 0.05
_LINGER_S = 1.0  # for the client to read the refusal while what it still sends is not read
_TOO_LARGE = f"the head is larger than {HEAD_BYTES:,} bytes"
_TOO_MANY = f"more than {MOST_WAITING} requests wait on this connection; send one after another"
_CONNECT = "CONNECT is not served; send requests directly"
_CROWDED = f"more than {MOST_CONNECTIONS:,} connections are open; ask again in a moment"


class ClientConnection(HttpToolsProtocol):
    """HTTP/1.1, with bounds on what is read and a rest after each refusal for want of a slot.

    The first rest is short, each further one twice as long, at most what
    ``Retry-After`` says; an answer ends the series. What a trusted proxy passes
    on has no rest: other clients' requests come the same way.
    """

    _late: asyncio.TimerHandle | None = None
    _rest: asyncio.TimerHandle | None = None
    _rests = 0  # one after another
    _running: RequestResponseCycle | None = None  # the request that is or was answered last
    _refusal: RefusedError | None = None  # why nothing more is read
    _head_bytes = 0  # of the address and the whole headers so far
    _head_complete = False  # headers that follow are trailers
    _unparsed_bytes = 0  # since the parser told of anything
    _arrived_at = 0.0  # the bytes that are being parsed
    _early: tuple[bytes, float] | None = None  # what came during a rest, and when

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._refused: list[Any] = []
        if len(self.connections) > MOST_CONNECTIONS:
            self._hang_up(refusal_of(BusyError(_CROWDED)))
        else:
            self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        self._in_time()
        if self._rest is not None:
            self._rest.cancel()
        self.cycle = self._running or self.cycle  # uvicorn would tell only the last that waits
        super().connection_lost(exc)

    # --- the head of a request ------------------------------------------------------

    def data_received(self, data: bytes, arrived_at: float | None = None) -> None:
        """Parse it in pieces: what follows the last whole header of a piece is not counted."""
        arrived_at = arrived_at or time.monotonic()
        if self._rest is not None:
            self._early = data, arrived_at
            self.flow.pause_reading()
            return
        self._unset_keepalive_if_required()
        self._arrived_at = arrived_at
        pieces = deque(data[at : at + HEAD_BYTES] for at in range(0, len(data), HEAD_BYTES))
        while pieces and self._refusal is None:
            piece = pieces.popleft()
            self._unparsed_bytes += len(piece)
            try:
                self.parser.feed_data(piece)
            except HttpParserUpgrade as upgrade:
                pieces.appendleft(self._head_without_upgrade() + piece[upgrade.args[0] :])
            except HttpParserError as error:
                ours = error.__context__  # what one of the functions below raised
                if not isinstance(ours, RefusedError):
                    ours = RefusedError(400, "bad_request", "this is no HTTP request", "head")
                self._hang_up(ours)
            else:
                if self._unparsed_bytes > HEAD_BYTES:
                    self._hang_up(RefusedError(431, "head_too_large", _TOO_LARGE, "head"))

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= MOST_WAITING:
            raise RefusedError(429, "too_many_requests_at_once", _TOO_MANY)
        super().on_message_begin()
        self._head_bytes = self._unparsed_bytes = 0
        self._head_complete = False
        scope = cast(dict[str, Any], self.scope)
        scope[BEGAN], scope[REFUSED] = self._arrived_at, self._refused

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + _EACH_HEADER)
        if not self._head_complete:  # the application may not take a trailer for a header
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_time()
        self._head_complete = True
        super().on_headers_complete()
        if not self.pipeline:
            self._running = self.cycle

    def on_body(self, body: bytes) -> None:
        self._unparsed_bytes = 0
        super().on_body(body)

    def _count(self, size: int) -> None:
        self._unparsed_bytes = 0
        self._head_bytes += size
        if self._head_bytes > HEAD_BYTES:
            raise RefusedError(431, "head_too_large", _TOO_LARGE, "head")

    def _should_upgrade(self) -> bool:
        """Whether a head that asks for another protocol is set aside; asked at each of its parts.

        The parser would skip the body of such a request. So the head is parsed
        again without that header: the client is answered in HTTP/1.1.
        """
        if self.scope["method"] == "CONNECT":
            raise RefusedError(400, "bad_request", _CONNECT, "head")
        return True

    def _head_without_upgrade(self) -> bytes:
        scope = cast(dict[str, Any], self.scope)
        self._arrived_at = scope[BEGAN]
        version = self.parser.get_http_version().encode()
        lines = [b" ".join([scope["method"].encode(), self.url, b"HTTP/" + version])]
        lines += [b": ".join(header) for header in self.headers if header[0] != b"upgrade"]
        return b"\r\n".join([*lines, b"", b""])

    # --- the end ----------------------------------------------------------------------

    def _hang_up(self, refusal: RefusedError) -> None:
        """Read no more, drop what waits, say why after the answer under way, and close."""
        self._in_time()
        log.info("connection closed: %s", refusal)
        self._refusal = refusal
        self.pipeline.clear()
        self.flow.pause_reading()
        self.loop.call_later(_LINGER_S, self.transport.abort)
        if self._running is None or self._running.response_complete:
            self._say_why(refusal)

    def _say_why(self, refusal: RefusedError) -> None:
        """Answer a request that no application sees."""
        if self.transport.is_closing():
            return
        lines = [
            f"HTTP/1.1 {refusal.status} {HTTPStatus(refusal.status).phrase}",
            "content-type: application/json",
            f"content-length: {len(refusal.body)}",
            "connection: close",
            *(f"{name}: {value}" for name, value in refusal.headers.items()),
        ]
        self.transport.write("\r\n".join([*lines, "", ""]).encode() + refusal.body)
        self.transport.write_eof()

    # --- the next request -------------------------------------------------------------

    def on_response_complete(self) -> None:
        if self._refusal is not None:
            self._say_why(self._refusal)
        elif self._refused and self._refused.pop() == self.client:
            rest_s = min(_FIRST_REST_S * 2**self._rests, RETRY_AFTER_S)
            self._rests += 1
            self._rest = self.loop.call_later(rest_s, self._go_on)
        else:
            self._rests = 0
            self._go_on()

    def _go_on(self) -> None:
        self._rest = None
        if self.pipeline:
            self._running = self.pipeline[-1][0]
        super().on_response_complete()
        if self.cycle.response_complete:  # else the next request was there before this answer
            self._expect()
        if self._early is not None and not self.transport.is_closing():
            early, self._early = self._early, None
            self.data_received(*early)

    def shutdown(self) -> None:
        if self._rest is not None:  # what came meanwhile has not begun
            self.transport.close()
        else:
            super().shutdown()

    def _expect(self) -> None:
        self._in_time()
        self._late = self.loop.call_later(HEADERS_S, self.transport.close)

    def _in_time(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
