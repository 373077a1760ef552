"""Connections on a real socket, waiting for the start, systemd, and a worker that hangs."""

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from ideal_dispatch.service.http import server
from ideal_dispatch.service.settings import (
    AuditTable,
    CityFiles,
    ModelFiles,
    ServiceSettings,
    Token,
    digest,
)
from tests.waiting import PATIENCE_S, wait_for

SETTINGS = ServiceSettings(
    city=CityFiles("", "", "Asia/Hong_Kong", "HK"),
    model=ModelFiles(""),
    audit=AuditTable("sqlite:///none.db"),
    tokens=(Token("a", "cad", digest("a")),),
)


async def hello(scope: Any, receive: Any, send: Any) -> None:
    """An application that knows one answer."""
    if scope["type"] == "http":
        headers = [(b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"hi"})


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Where the application is served as ``ideal serve`` does."""
    config = uvicorn.Config(hello, host="127.0.0.1", port=0, **server.options(SETTINGS))
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run)
    thread.start()
    wait_for(lambda: running.started)
    found: int = running.servers[0].sockets[0].getsockname()[1]
    yield found
    running.should_exit = True
    thread.join(PATIENCE_S)


def said_to(port: int, start: bytes, piece: bytes = b"", most: int = 0) -> tuple[bytes, int]:
    """What a client hears that sends the piece again and again, and how much it could send."""
    sent = 0
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as stream:
        stream.settimeout(PATIENCE_S)
        try:
            stream.sendall(start)
            while sent < most:
                stream.sendall(piece)
                sent += len(piece)
        except OSError:
            pass  # the server hung up
        said = b""
        try:
            while b"\r\n\r\n" not in said and (more := stream.recv(65536)):
                said += more
        except OSError:
            pass
    return said, sent


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (b"GET /", b"a" * 65_536),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: ", b"a" * 65_536),
        (b"GET / HTTP/1.1\r\nHost: x\r\n", b"X-Many: 1\r\n" * 6_000),
    ],
)
def test_an_endless_head_is_refused(port: int, start: bytes, piece: bytes) -> None:
    said, sent = said_to(port, start, piece, 50_000_000)
    assert said.startswith(b"HTTP/1.1 4")
    assert sent < 50_000_000


def test_what_is_no_request_is_refused(port: int) -> None:
    assert said_to(port, b"\x16\x03\x01\x02\x00\x01\r\n\r\n")[0].startswith(b"HTTP/1.1 400 ")


def test_requests_that_come_at_once_are_answered_in_turn(port: int) -> None:
    request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as stream:
        stream.sendall(200 * request)
        said = b""
        while said.count(b"hi") < 200:
            more = stream.recv(65536)
            assert more
            said += more
    assert said.count(b"HTTP/1.1 200 OK") == 200


def test_a_pooled_client_keeps_its_connection() -> None:
    """httpx keeps one for 5 s, nginx for 60 s: the server must not end it sooner."""
    assert server.options(SETTINGS)["timeout_keep_alive"] > 60


def test_an_unready_service_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    ready = threading.Event()

    async def wait() -> None:
        waiting = asyncio.create_task(server.ready_or_ended(ready.is_set))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        ready.set()
        await waiting

    asyncio.run(asyncio.wait_for(wait(), PATIENCE_S))


HANGING = """
import asyncio, ctypes
from ideal_dispatch.service.http import server

async def main():
    server._HANGS_S = 1.0
    asyncio.create_task(server.attend(lambda: None))
    await asyncio.sleep(0.1)
    ctypes.PyDLL(None).sleep(600)  # keeps Python's lock, as a loop in C may

asyncio.run(main())
"""


def test_a_worker_whose_interpreter_hangs_ends(tmp_path: Path) -> None:
    """Its supervisor starts another: no Python thread of it could."""
    done = subprocess.run(
        [sys.executable, "-c", HANGING], capture_output=True, text=True, check=False,
        timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 1
    assert "most recent call first" in done.stderr
