"""Running the application: uvicorn, with patience for slow clients bounded."""

import asyncio
import logging
import re
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.config import STARTUP_FAILURE

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.http.connection import ClientConnection
from ideal_dispatch.service.settings import ServiceSettings, notify_socket

log = logging.getLogger(__name__)

_SAY_EVERY_S = 10.0
_KEEP_ALIVE_S = 10
_GRACE_S = 2
_BACKLOG = 512


def options(settings: ServiceSettings) -> dict[str, Any]:
    """How uvicorn is to serve the application."""
    return {
        "http": ClientConnection,
        "ws": "none",
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "timeout_keep_alive": _KEEP_ALIVE_S,
        "timeout_graceful_shutdown": _GRACE_S,
        "backlog": _BACKLOG,
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
    """Tells systemd (``Type=notify``) once it listens: `systemctl restart` waits for that.

    It ends the streams of events first: it would wait for them, and then report their end as
    a failure.
    """

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        app = self.config.loaded_app
        while not hasattr(app, "state"):  # what uvicorn puts around it
            app = app.app
        app.state.service.hub.close()
        await super().shutdown(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        address = notify_socket()
        if address and self.started:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told, suppress(OSError):
                told.sendto(b"READY=1", re.sub("^@", "\0", address))  # @: no file, a name alone


async def ready_or_ended(ready: Callable[[], bool]) -> None:
    """Wait until it is ready, or until uvicorn is told to end: by itself it waits for the start."""
    began = time.monotonic()
    say_at = began + _SAY_EVERY_S
    while not ready():
        # uvicorn's server notes a signal, and tells nobody yet
        server = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
        if isinstance(server, uvicorn.Server) and server.should_exit:
            log.info("told to end before it was ready")
            return
        if time.monotonic() >= say_at:
            words = "not ready after %.0f s: files are loaded, or kernels compiled as never before"
            log.info(words, time.monotonic() - began)
            say_at += _SAY_EVERY_S
        await asyncio.sleep(0.01)


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
