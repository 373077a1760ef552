"""Running the application: uvicorn, one worker in this process or several under its supervisor."""

import asyncio
import faulthandler
import logging
import re
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from ideal_dispatch.errors import IdealError, InputError
from ideal_dispatch.service import logs
from ideal_dispatch.service.settings import ServiceSettings, from_environment, notify_socket

if TYPE_CHECKING:
    from fastapi import FastAPI

log = logging.getLogger(__name__)

_HANGS_S = 20.0  # a worker that cannot run its event loop for so long ends
_LOOK_S = 0.2


def options(settings: ServiceSettings) -> dict[str, Any]:
    """How uvicorn is to serve the application."""
    return {
        "http": "h11",  # it bounds a head, httptools does not
        "h11_max_incomplete_event_size": 16_384,  # bytes of a request's address and headers
        "limit_concurrency": 1000,  # below the usual limit of file descriptors
        "timeout_keep_alive": 65,  # longer than the pools of clients and proxies keep a connection
        "timeout_graceful_shutdown": 2,
        "ws": "none",
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "proxy_headers": True,
        "forwarded_allow_ips": list(settings.server.trusted_proxies),
    }


def run(
    app: "FastAPI | None", settings: ServiceSettings, host: str, port: int, workers: int = 1
) -> None:
    """Serve until a signal ends it: the application here, or ``workers`` that make their own.

    The supervisor of several starts another one where one ended or does not answer.
    """
    config = uvicorn.Config(
        app or f"{__name__}:worker", factory=app is None, workers=workers, host=host, port=port,
        **options(settings),
    )  # fmt: skip
    try:
        sockets = [config.bind_socket()]
    except SystemExit:  # it has logged why
        raise InputError(f"cannot listen at {host}, port {port}; give another --port") from None
    if app is not None:
        # uvicorn raises the signal again once it has ended: what runs beside the service ends, too
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        server = uvicorn.Server(config)
        with suppress(KeyboardInterrupt):
            server.run(sockets)
        if not server.started:
            sys.exit(STARTUP_FAILURE)
        return
    supervisor = Multiprocess(config, sockets)
    supervisor.run()
    if any(one.exitcode == STARTUP_FAILURE for one in supervisor.processes):
        raise InputError("a worker cannot start; its line above says why")


def worker() -> "FastAPI":
    """The application of a worker process, by the settings that the environment names."""
    from ideal_dispatch.service.deciding.engine import Engine
    from ideal_dispatch.service.http.app import create_app

    try:
        settings = from_environment()
        logs.configure(settings.server.log_level)
        return create_app(settings, Engine.load(settings), attended=True)
    except IdealError as error:
        log.critical("cannot start: %s", error)
        sys.exit(STARTUP_FAILURE)  # the supervisor does not try again


async def attend(end_streams: Callable[[], None]) -> None:
    """Say to systemd (``Type=notify``) that the service is ready, and guard the event loop.

    Where a thread keeps Python's lock, the process ends with a trace of all threads, and its
    supervisor starts another. A server that ends would wait for streams: they are ended first.
    """
    said, armed_at = False, -_HANGS_S
    try:
        while True:
            if time.monotonic() - armed_at > _HANGS_S / 4:
                faulthandler.dump_traceback_later(_HANGS_S, exit=True)
                armed_at = time.monotonic()
            server = _server()
            if server is not None and server.started and not said:
                said = True
                if address := re.sub("^@", "\0", notify_socket()):  # @: no file, a name alone
                    kind = socket.AF_UNIX, socket.SOCK_DGRAM
                    with suppress(OSError), socket.socket(*kind) as systemd:
                        systemd.sendto(b"READY=1", address)
            if server is not None and server.should_exit:
                end_streams()
            await asyncio.sleep(_LOOK_S)
    finally:
        faulthandler.cancel_dump_traceback_later()


async def ready_or_ended(ready: Callable[[], bool]) -> None:
    """Wait until it is ready, or until uvicorn is to end: by itself it waits for the start."""
    while not ready():
        if (server := _server()) is not None and server.should_exit:
            log.info("ended before it was ready")
            return
        await asyncio.sleep(0.01)


def _server() -> uvicorn.Server | None:
    """The server of this process: it handles the signals and does not notify the application."""
    server = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    return server if isinstance(server, uvicorn.Server) else None
