"""Running the application: uvicorn, with patience for slow clients bounded."""

import asyncio
import logging
import re
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from typing import Any, cast

import uvicorn
from fastapi import FastAPI
from uvicorn.config import STARTUP_FAILURE
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.admission import BEGAN
from ideal_dispatch.service.settings import ServiceSettings, notify_socket

HEADERS_S = 10.0
"""How long a client may take, from the start or from an answer, to the end of its headers."""

log = logging.getLogger(__name__)

_SAY_EVERY_S = 10.0
_KEEP_ALIVE_S = 10
_MOST_CONNECTIONS = 1000  # below the usual limit of file descriptors
_GRACE_S = 2
_BACKLOG = 512


class PatientProtocol(HttpToolsProtocol):
    """HTTP, but a connection that does not ask for anything in time is closed.

    uvicorn waits for ever for the rest of a request's headers; many such
    connections would use up all file descriptors.
    """

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        self._in_time()
        super().connection_lost(exc)

    def on_headers_complete(self) -> None:
        self._in_time()
        cast(dict[str, Any], self.scope)[BEGAN] = time.monotonic()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete:  # else the next request was there before this answer
            self._expect()

    def _expect(self) -> None:
        self._in_time()
        self._late = self.loop.call_later(HEADERS_S, self.transport.close)

    def _in_time(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


def options(settings: ServiceSettings) -> dict[str, Any]:
    """How uvicorn is to serve the application."""
    return {
        "http": PatientProtocol,
        "ws": "none",
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "timeout_keep_alive": _KEEP_ALIVE_S,
        "timeout_graceful_shutdown": _GRACE_S,
        "backlog": _BACKLOG,
        "limit_concurrency": _MOST_CONNECTIONS,
        "proxy_headers": True,
        "forwarded_allow_ips": list(settings.server.trusted_proxies),
    }


def run(app: FastAPI | str, settings: ServiceSettings, host: str, port: int, workers: int) -> None:
    """Serve until a signal ends it; ``app`` is the name of a factory for several workers."""
    _check_address(host, port)
    given: dict[str, Any] = {"host": host, "port": port, **options(settings)}
    if isinstance(app, str):
        uvicorn.run(app, workers=workers, factory=True, **given)
        return
    server = _Server(uvicorn.Config(app, **given))
    with suppress(KeyboardInterrupt):
        server.run()
    if not server.started:
        sys.exit(STARTUP_FAILURE)


class _Server(uvicorn.Server):
    """Tells systemd (``Type=notify``) once it listens: `systemctl restart` waits for that."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        address = notify_socket()
        if address and self.started:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told, suppress(OSError):
                told.sendto(b"READY=1", re.sub("^@", "\0", address))  # @: no file, a name alone


async def ready_or_ended(ready: threading.Event) -> None:
    """Wait until it is ready, or until uvicorn is told to end: by itself it waits for the start."""
    began = time.monotonic()
    say_at = began + _SAY_EVERY_S
    while not ready.is_set():
        if _ending():
            log.info("told to end before it was ready")
            return
        if time.monotonic() >= say_at:
            words = "not ready after %.0f s: files are loaded, or kernels compiled as never before"
            log.info(words, time.monotonic() - began)
            say_at += _SAY_EVERY_S
        await asyncio.sleep(0.01)


def _ending() -> bool:
    """Whether a signal came: the server that handles it notes that, and tells nobody yet."""
    server = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    return isinstance(server, uvicorn.Server) and server.should_exit


def _check_address(host: str, port: int) -> None:
    """One line where nobody can listen there, rather than a page from within the server."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        with socket.socket(found[0][0], socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(found[0][4])
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot listen at {host}, port {port}: {reason}") from None
