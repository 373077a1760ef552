"""Clients that are slow, huge, nested, unknown or hostile; others are served meanwhile."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import httpx
import pytest

from benchmarks.load_clients import Endless, endless_head
from tests.service_town import ASK, PATIENCE_S, Local, Town, application, bearer, local, token

JSON = {**bearer("cad"), "Content-Type": "application/json"}


@pytest.fixture(scope="module")
def client(town: Town) -> Iterator[Local]:
    """A client of a service with little patience, and a connection for each request.

    A connection kept from the request before could be closed just as the next one is sent.
    """
    settings = town.settings("clients.toml", server={"body_timeout_s": 3.0})
    with local(application(settings)) as opened:
        opened.headers["Connection"] = "close"
        opened.report()
        yield opened


def connected(client: Local) -> socket.socket:
    host, port = client.base_url.host, client.base_url.port
    assert port is not None
    return socket.create_connection((host, port), PATIENCE_S)


def heard(raw: socket.socket) -> bytes:
    """All that is said until the connection is closed."""
    raw.settimeout(PATIENCE_S)
    said = b""
    while piece := raw.recv(65536):
        said += piece
    return said


def served_again(client: Local, town: Town, call_id: str) -> None:
    assert client.advice(town.call(call_id))["decision"] != "no_advice"


def test_slow_clients(client: Local, town: Town) -> None:
    """Others are served beside those that send half a head; half a body is given up in time."""
    head = f"POST {ASK} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token('cad')}\r\n"
    kinds = ("", "POST /v1/rec", head, head + "Content-Length: 500\r\n\r\n{")
    slow = [connected(client) for _ in range(10) for _ in kinds]
    for number, one in enumerate(slow):
        one.sendall(kinds[number % len(kinds)].encode())
    served_again(client, town, "among slow ones")
    for number, one in enumerate(slow):
        with one:
            if number % len(kinds) == 3:
                assert b" 408 " in heard(one).split(b"\r\n")[0]


@pytest.mark.parametrize("kind", ["headers", "value", "line"])
def test_endless_heads(client: Local, town: Town, kind: Endless) -> None:
    """The service stops reading: no more is taken than what the system's buffers hold."""
    assert client.base_url.port is not None
    ended = endless_head(client.base_url.port, kind, seconds=60, most_bytes=200_000_000)
    assert ended.hung_up
    assert ended.sent_bytes < 50_000_000
    assert ended.answer[:10] in (b"HTTP/1.1 4", b"")  # a reset may overtake the answer
    served_again(client, town, f"after endless {kind}")


def test_body_of_50_mb(client: Local, town: Town) -> None:
    """Its length is said or not."""
    body = json.dumps(town.call(note="x" * 50_000_000)).encode()
    pieces = (body[start : start + 65536] for start in range(0, len(body), 65536))
    for content in (body, pieces):
        with suppress(httpx.TransportError):  # the server hung up on the sender: as good
            assert client.post(ASK, content=content, headers=JSON).status_code == 413
    served_again(client, town, "after 50 MB")


NESTED = '{"a":"\\"","b":' + "[" * 7000 + "]" * 7000 + "}"


@pytest.mark.parametrize(
    ("body", "charset"),
    [
        (NESTED.encode("utf-16-le"), ""),
        (NESTED.encode("utf-16-be"), ""),
        (NESTED.encode("utf-16"), ""),
        ("[[]]".encode("utf-32-le"), ""),
        ("[[]]".encode("utf-32"), ""),
        ("{}".encode("utf-8-sig"), ""),
        (b'{"call_id": "\xff"}', ""),
        (b"{}", "; charset=utf-16"),
        (b"{}", '; charset="ISO-8859-1"'),
    ],
)
def test_a_body_that_is_not_in_utf8(client: Local, body: bytes, charset: str) -> None:
    headers = {**bearer("cad"), "Content-Type": f"application/json{charset}"}
    for path in (ASK, "/v1/incidents/eido"):
        answer = client.post(path, content=body, headers=headers)
        assert answer.status_code == 415
        assert answer.json()["error"]["code"] == "not_utf8"


def test_other_ways_to_say_utf8(client: Local, town: Town) -> None:
    body = json.dumps(town.call("utf-8", note="北角"), ensure_ascii=False).encode()
    for charset in ("charset=utf-8", 'charset="UTF-8"', "charset = utf8"):
        headers = {**bearer("cad"), "Content-Type": f"application/json; {charset}"}
        assert client.post(ASK, content=body, headers=headers).status_code == 200


def test_strangers_cannot_keep_a_worker_busy(client: Local, town: Town) -> None:
    """Nothing that somebody without a token sends is read, but for a small session."""
    keys = ", ".join(f'"k{number}": 1' for number in range(70_000))
    body = f"{{{keys}}}".encode()
    headers = {"Content-Type": "application/json"}
    targets = {ASK: 401, "/v1/session": 413, "/v1/incidents/eido": 401, "/nothing": 401}
    statuses: dict[str, set[int]] = {path: set() for path in targets}
    ended = threading.Event()

    def flood(path: str) -> None:
        while not ended.is_set():
            head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            with connected(client) as raw, suppress(ConnectionError):
                raw.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode())
                statuses[path].add(int(raw.recv(65536).split(b" ")[1]))
                raw.sendall(body)

    floods = [threading.Thread(target=flood, args=[path]) for path in targets]
    for one in floods:
        one.start()
    try:
        served_again(client, town, "among strangers")
    finally:
        ended.set()
        for one in floods:
            one.join()
    assert statuses == {path: {status} for path, status in targets.items()}
    answer = client.post("/v1/session", json={"token": "x" * 900}, headers=headers)
    assert answer.status_code == 422
    assert client.post("/v1/session", json={"token": token("cad")}).status_code == 200
    client.cookies.clear()


def test_a_body_of_many_mistakes_is_refused_in_one_line(client: Local, town: Town) -> None:
    """Also from somebody known: the answer names the first of them."""
    keys = {f"k{number}": 1 for number in range(4000)}
    answer = client.post(ASK, json={**town.call(), **keys}, headers=JSON)
    assert answer.status_code == 422
    assert len(answer.content) < 500


@pytest.mark.parametrize(
    "path",
    ["/../settings.py", "/%2e%2e/settings.py", "/..%2fsettings.py", "/....//settings.py",
     "/%2e%2e%2f%2e%2e%2f%2e%2e%2fetc/passwd", "//etc/passwd", "/\\..\\settings.py",
     "/static/../../app.py", "/%00", "/locales/%2e%2e/%2e%2e/app.py"],
)  # fmt: skip
def test_path_traversal(client: Local, path: str) -> None:
    with connected(client) as raw:
        raw.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        said = heard(raw)
    assert said.split(b" ")[1] in (b"400", b"404", b"405"), said[:200]
    assert b"import" not in said
    assert b"root:" not in said


def test_script_in_address_or_reason(client: Local, town: Town) -> None:
    """It comes back as text in JSON, with a policy that would run no script anyway."""
    script = '<script>alert(1)</script>"><img src=x onerror=alert(1)>'
    primary = {"depot": "D0", "unit": script[:64]}
    answer = client.ask(town.call("script", note=script + "\u2028", primary=primary))
    made = answer.json()
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert made["note"] == script + "\u2028"
    said = client.reply(made, "override", text=script)
    assert said.json()["reply"]["text"] == script
    assert "script-src 'self';" in said.headers["content-security-policy"]


@pytest.mark.parametrize("sign", ["\u202e", "\u2066", "\u200f", "\n", "\x1b", "\0", "\ud800"])
def test_names_that_would_reverse_or_break_a_line(client: Local, town: Town, sign: str) -> None:
    name = f"A{sign}1"
    for method, path, body in (
        ("PUT", "/v1/units", [{"id": name, "depot": "D0", "status": "available"}]),
        ("PUT", "/v1/units", [{"id": "A1", "depot": "D0", "status": "available", "kind": name}]),
        ("POST", ASK, town.call(name)),
        ("POST", ASK, town.call("c", primary={"unit": name})),
    ):
        text = json.dumps(body)
        assert client.request(method, path, content=text, headers=JSON).status_code == 422
    assert client.put("/v1/units", json=[town.unit("   ")], headers=JSON).status_code == 422


def test_hostile_headers(client: Local) -> None:
    long = "x" * 100_000
    for lines in (f"X: {long}", "Content-Length: -5", "Content-Length: 5\r\nContent-Length: 6"):
        with connected(client) as raw:
            raw.sendall(f"POST {ASK} HTTP/1.1\r\nHost: x\r\n{lines}\r\n\r\n".encode())
            raw.settimeout(PATIENCE_S)
            said = raw.recv(65536)
            assert not said or said.split(b" ")[1][:1] == b"4"
    assert client.get("/healthz").status_code == 200
