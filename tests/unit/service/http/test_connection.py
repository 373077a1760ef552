"""Heads have bounds; who is refused is read again after a rest; a crowd is told so."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
import uvicorn

from ideal_dispatch.service.http import connection
from ideal_dispatch.service.http.connection import HEAD_BYTES, MOST_WAITING, ClientConnection
from ideal_dispatch.service.http.protection import BEGAN, REFUSED
from tests.waiting import PATIENCE_S, wait_for


class Refusing:
    """An application that refuses what comes to /full, and reads what comes to /read.

    It knows when each request began, and what was read. What comes to /wait is
    answered once ``go_on`` is set, what comes to /stay when the client has gone.
    """

    def __init__(self) -> None:
        self.began: dict[str, float] = {}
        self.bodies: list[bytes] = []
        self.headers: list[tuple[bytes, bytes]] = []
        self.go_on = threading.Event()
        self.left = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.began[scope["path"]] = scope[BEGAN]
        if scope["path"] == "/read":
            self.bodies.append(await whole_body(receive))
            self.headers = scope["headers"]
        if scope["path"] == "/stay":
            while not self.left:
                self.left = (await receive())["type"] == "http.disconnect"
        if scope["path"] == "/wait":
            await asyncio.to_thread(self.go_on.wait, PATIENCE_S)
        full = scope["path"] == "/full"
        if full:
            scope[REFUSED].append(scope["client"])
        start = {"type": "http.response.start", "status": 503 if full else 200}
        await send({**start, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"{}"})


async def whole_body(receive: Any) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


class Running:
    """The application at a port of this machine."""

    def __init__(self, server: uvicorn.Server, app: Refusing) -> None:
        self.server, self.app = server, app
        self.port = server.servers[0].sockets[0].getsockname()[1]

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)

    @property
    def connections(self) -> list[ClientConnection]:
        return [
            one for one in self.server.server_state.connections if isinstance(one, ClientConnection)
        ]

    def heard_since(self, moment: float) -> bool:
        return any(one._arrived_at >= moment for one in self.connections)


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """With time to read a refusal, and no limit of time that closes a connection sooner."""
    monkeypatch.setattr(connection, "_LINGER_S", 60.0)
    monkeypatch.setattr(connection, "HEADERS_S", 3600.0)
    app = Refusing()
    config = uvicorn.Config(
        app, port=0, http=ClientConnection, ws="none", lifespan="off", log_config=None
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_for(lambda: server.started)
        yield Running(server, app)
    finally:
        app.go_on.set()
        for one in list(server.server_state.connections):
            one.loop.call_soon_threadsafe(one.transport.abort)
        server.should_exit = True
        thread.join(PATIENCE_S)


def get(path: str, *lines: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: x", *lines, "", ""]).encode()


def status(stream: socket.socket) -> int:
    """Of the next answer, which is read to its end."""
    said = b""
    while not said.endswith(b"{}"):
        piece = stream.recv(1)
        assert piece, said
        said += piece
    return int(said.split(b" ")[1])


def all_said(stream: socket.socket) -> bytes:
    """What is answered until the connection is closed."""
    said = b""
    with suppress(ConnectionResetError):
        while piece := stream.recv(65_536):
            said += piece
    return said


def code(said: bytes) -> tuple[int, str]:
    head, _, body = said.partition(b"\r\n\r\n")
    assert b"content-type: application/json" in head
    assert b"connection: close" in head
    return int(head.split(b" ")[1]), json.loads(body)["error"]["code"]


# --- the head ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "head",
    [
        get("/", *["x: y"] * (HEAD_BYTES // 30)),
        get("/", "x: " + "y" * HEAD_BYTES),
        get("/", "y" * HEAD_BYTES + ": x"),
        get("/" + "y" * HEAD_BYTES),
        b"GET / HTTP/1.1\r\nHost: x\r\nx: " + b"y" * 40 * HEAD_BYTES,  # it does not end
        b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * (HEAD_BYTES // 30),
        b"GET /" + b"y" * 40 * HEAD_BYTES,
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"y" * 40 * HEAD_BYTES,
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"y" * 3 * HEAD_BYTES,
        b"\r\n" * HEAD_BYTES,
    ],
    ids=["headers", "value", "name", "address", "no end of a value", "no end of headers",
         "no end of the address", "no end of a name", "half a name", "empty lines"],
)  # fmt: skip
@pytest.mark.parametrize("piece", [1000, 1_000_000])
def test_a_head_that_is_too_large_is_refused(running: Running, head: bytes, piece: int) -> None:
    with running.connect() as stream:
        for at in range(0, len(head), piece):
            stream.sendall(head[at : at + piece])
        assert code(all_said(stream)) == (431, "head_too_large")
    assert running.app.began == {}


def test_a_large_head_within_the_limit_is_served(running: Running) -> None:
    with running.connect() as stream:
        for _ in range(3):  # each counts for itself
            stream.sendall(get("/", "x: " + "y" * (HEAD_BYTES - 200)))
            assert status(stream) == 200


CHUNKED = b"POST /read HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"


@pytest.mark.parametrize("piece", [1000, 1_000_000])
def test_trailers_count_as_the_head_does(running: Running, piece: int) -> None:
    trailers = b"x: y\r\n" * (HEAD_BYTES // 30)
    with running.connect() as stream:
        stream.sendall(CHUNKED.replace(b"/read", b"/") + b"\r\n1\r\nx\r\n")
        assert status(stream) == 200
        stream.sendall(b"0\r\n")
        for at in range(0, len(trailers), piece):
            stream.sendall(trailers[at : at + piece])
        assert code(all_said(stream)) == (431, "head_too_large")


def test_a_trailer_is_no_header(running: Running) -> None:
    """Neither of its own request nor of the next one."""
    with running.connect() as stream:
        trailers = b"Authorization: Bearer x\r\nX-Last: y\r\n\r\n"
        stream.sendall(CHUNKED + b"\r\n1\r\nx\r\n0\r\n" + trailers)
        assert status(stream) == 200
        assert dict(running.app.headers) == {b"host": b"x", b"transfer-encoding": b"chunked"}
        stream.sendall(get("/read"))
        assert status(stream) == 200
        assert dict(running.app.headers) == {b"host": b"x"}


H2C = b"Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAEAAEAA\r\nUpgrade: h2c\r\n"


@pytest.mark.parametrize("piece", [1, 7, 1_000_000])
@pytest.mark.parametrize(
    "sent",
    [
        b"POST /read HTTP/1.1\r\nHost: x\r\n" + H2C + b"Content-Length: 5\r\n\r\nGET /",
        CHUNKED + H2C + b"\r\n5\r\nGET /\r\n0\r\n\r\n",
    ],
    ids=["length", "chunked"],
)
def test_who_offers_http_2_is_answered_in_http_1(running: Running, sent: bytes, piece: int) -> None:
    """Java's client does so with each first request."""
    both = sent + get("/next")
    with running.connect() as stream:
        for at in range(0, len(both), piece):
            stream.sendall(both[at : at + piece])
        assert [status(stream), status(stream)] == [200, 200]
        assert running.app.bodies == [b"GET /"]
        assert set(running.app.began) == {"/read", "/next"}
        assert (b"http2-settings", b"AAEAAEAA") in running.app.headers


@pytest.mark.parametrize("address", [b"x:443", b"http://x/read"])
def test_connect_is_refused(running: Running, address: bytes) -> None:
    with running.connect() as stream:
        stream.sendall(b"CONNECT " + address + b" HTTP/1.1\r\nHost: x\r\n\r\n")
        assert code(all_said(stream)) == (400, "bad_request")


def test_what_is_no_http_is_refused_in_the_usual_form(running: Running) -> None:
    with running.connect() as stream:
        stream.sendall(b"nonsense\r\n\r\n")
        assert code(all_said(stream)) == (400, "bad_request")


def test_a_request_begins_with_its_first_byte(running: Running) -> None:
    with running.connect() as stream:
        for path in ("/first", "/second"):
            whole = get(path)
            before = time.monotonic()
            stream.sendall(whole[:9])
            wait_for(partial(running.heard_since, before))
            between = time.monotonic()
            stream.sendall(whole[9:])
            assert status(stream) == 200
            assert before <= running.app.began[path] <= between


# --- the rest after a refusal -----------------------------------------------------------


@pytest.fixture
def endless_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_FIRST_REST_S", 3600.0)
    monkeypatch.setattr(connection, "RETRY_AFTER_S", 3600.0)


@pytest.mark.usefixtures("endless_rest")
@pytest.mark.parametrize("pipelined", [False, True])
def test_who_is_refused_is_not_read_during_the_rest(running: Running, pipelined: bool) -> None:
    with running.connect() as refused, running.connect() as other:
        refused.sendall(get("/full") + (get("/again") if pipelined else b""))
        assert status(refused) == 503
        if not pipelined:
            refused.sendall(get("/again"))
            wait_for(lambda: any(one._early for one in running.connections))
        for path in ("/other", "/and again"):
            other.sendall(get(path.replace(" ", "%20")))
            assert status(other) == 200
    assert set(running.app.began) == {"/full", "/other", "/and again"}


@pytest.mark.usefixtures("endless_rest")
def test_what_a_proxy_passes_on_has_no_rest(running: Running) -> None:
    """Other clients' requests come over the same connection."""
    with running.connect() as stream:
        for path, expected in (("/full", 503), ("/full", 503), ("/next", 200)):
            stream.sendall(get(path, "X-Forwarded-For: 192.0.2.1"))
            assert status(stream) == expected


def test_a_request_that_came_during_the_rest_began_then(running: Running) -> None:
    with running.connect() as stream:
        before = time.monotonic()
        for _ in range(2):
            stream.sendall(get("/full"))
            assert status(stream) == 503
        stream.sendall(get("/early"))
        (one,) = running.connections
        wait_for(lambda: one._early or "/early" in running.app.began)
        came = time.monotonic()
        assert status(stream) == 200
        assert before <= running.app.began["/early"] <= came
        assert one._rests == 0  # an answer ends the series


# --- too many -----------------------------------------------------------------------------


def test_beyond_so_many_connections_the_refusal_has_the_usual_form(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MOST_CONNECTIONS", 2)
    with running.connect(), running.connect():
        wait_for(lambda: len(running.connections) == 2)
        with running.connect() as third:
            third.sendall(get("/"))
            said = all_said(third)
            assert code(said) == (503, "busy")
            assert b"Retry-After: 1\r\n" in said
    wait_for(lambda: not running.connections)
    with running.connect() as again:
        again.sendall(get("/"))
        assert status(again) == 200


def test_thousands_of_requests_at_once_are_refused(running: Running) -> None:
    """The one under way is answered, those that wait are dropped."""
    with running.connect() as stream:
        stream.sendall(get("/wait") + get("/never") * 5000)
        wait_for(lambda: any(one._refusal for one in running.connections))
        (one,) = running.connections
        assert not one.pipeline
        running.app.go_on.set()
        assert status(stream) == 200
        assert code(all_said(stream)) == (429, "too_many_requests_at_once")
    assert set(running.app.began) == {"/wait"}


def test_some_requests_at_once_are_answered_in_turn(running: Running) -> None:
    with running.connect() as stream:
        stream.sendall(get("/") * (1 + MOST_WAITING))
        assert [status(stream) for _ in range(1 + MOST_WAITING)] == [200] * (1 + MOST_WAITING)


@pytest.mark.parametrize("waiting", [0, 1])
def test_the_application_learns_that_a_client_left(running: Running, waiting: int) -> None:
    """Also if a further request of that client waits."""
    with running.connect() as stream:
        stream.sendall(get("/stay") + get("/never") * waiting)
        wait_for(lambda: "/stay" in running.app.began)
    wait_for(lambda: running.app.left)
