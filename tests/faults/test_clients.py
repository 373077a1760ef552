"""Clients that are slow, huge, nested, unknown or hostile; others are served meanwhile."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from benchmarks.load_clients import Endless, endless_head
from ideal_dispatch.service.http import connection
from tests.faults.service_faults import ASK, advised, post
from tests.service_town import PATIENCE_S, Local, Town, application, bearer, local, token


@pytest.fixture(scope="module")
def client(town: Town) -> Iterator[Local]:
    """A client of a service with little patience, and a connection for each request.

    A connection kept from the request before could be closed just as the next one is sent.
    """
    patient_s, connection.HEADERS_S = connection.HEADERS_S, 3.0
    try:
        settings = town.settings("clients.toml", server={"body_timeout_s": 3.0})
        with local(application(settings)) as opened:
            opened.headers["Connection"] = "close"
            yield opened
    finally:
        connection.HEADERS_S = patient_s


def connected(client: Local) -> socket.socket:
    host, port = client.base_url.host, client.base_url.port
    assert port is not None
    return socket.create_connection((host, port), PATIENCE_S)


def test_slow_clients(client: Local, town: Town) -> None:
    """Connections that send nothing, half a header or half a body are closed in time."""
    head = f"POST {ASK} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token('cad')}\r\n"
    kinds = ("", "POST /v1/rec", head + "Content-Length: 500\r\n\r\n{", head)
    slow = [connected(client) for _ in range(10) for _ in kinds]
    for number, one in enumerate(slow):
        one.sendall(kinds[number % len(kinds)].encode())
    made = advised(client, town.call("among slow ones"))
    assert made.decision != "no_advice"
    deadline = time.monotonic() + PATIENCE_S
    for number, one in enumerate(slow):
        one.settimeout(max(deadline - time.monotonic(), 0.1))
        said = b""
        while piece := one.recv(4096):  # until it is closed
            said += piece
        if number % len(kinds) == 2:
            assert b"408" in said.split(b"\r\n")[0]
        one.close()


@pytest.mark.parametrize("kind", ["headers", "value", "line"])
def test_endless_heads(client: Local, town: Town, kind: Endless) -> None:
    """The service stops reading: no more is taken than what the system's buffers hold."""
    assert client.base_url.port is not None
    ended = endless_head(client.base_url.port, kind, seconds=60, most_bytes=200_000_000)
    assert ended.hung_up
    assert ended.sent_bytes < 30_000_000
    assert ended.answer.startswith(b"HTTP/1.1 431 ")
    assert b'"head_too_large"' in ended.answer
    assert advised(client, town.call(f"after endless {kind}")).decision != "no_advice"


def test_a_call_whose_head_took_too_long_gets_no_advice(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its deadline runs from its first byte."""
    monkeypatch.setattr(connection, "HEADERS_S", 60.0)
    settings = town.settings("slow_head.toml", server={"deadline_s": 0.5})
    body = json.dumps(town.call("slow head")).encode()
    head = (
        f"POST {ASK} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token('cad')}\r\n"
        f"Connection: close\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode()
    with local(application(settings)) as client, connected(client) as raw:
        raw.sendall(head[:20])
        assert client.get("/healthz").status_code == 200  # so that has been read
        time.sleep(1.0)
        raw.sendall(head[20:] + body)
        answer = raw.makefile("rb").read()
    assert b'"decision":"no_advice"' in answer or b'"not_recorded"' in answer, answer


def test_body_of_50_mb(client: Local, town: Town) -> None:
    headers = {**bearer("cad"), "Content-Type": "application/json"}
    body = json.dumps(town.call(note="x" * 50_000_000)).encode()
    try:
        answer = client.post(ASK, content=body, headers=headers)
        assert answer.status_code == 413
    except Exception as error:  # the server hung up on the sender: as good
        assert "Broken pipe" in str(error) or "reset" in str(error)  # noqa: PT017

    def endless() -> Iterator[bytes]:
        yield b'{"note": "'
        for _ in range(800):
            yield b"x" * 65536

    try:
        answer = client.post(ASK, content=endless(), headers=headers)
        assert answer.status_code == 413
    except Exception as error:
        assert "Broken pipe" in str(error) or "reset" in str(error)  # noqa: PT017
    assert advised(client, town.call("after 50 MB")).decision != "no_advice"


def test_deeply_nested_body(client: Local, town: Town) -> None:
    headers = {**bearer("cad"), "Content-Type": "application/json"}
    for body, code in (
        (b"[" * 15_000, "too_deep"),
        (b'{"a":' * 9_000, "too_deep"),
        (b"[" * 15_000 + b"]" * 15_000, "too_deep"),
        (b"[" * 60_000, "too_many_elements"),
    ):
        answer = client.post(ASK, content=body, headers=headers)
        assert answer.status_code == 422
        assert answer.json()["error"]["code"] == code
    assert advised(client, town.call("after nesting")).decision != "no_advice"


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


def answer_read(raw: socket.socket) -> bytes:
    """The head of an answer whose body was read too, in however many pieces they come."""
    said = b""
    while b"\r\n\r\n" not in said:
        said += raw.recv(65536)
    head, _, body = said.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    while len(body) < length:
        body += raw.recv(65536)
    return head


def test_a_second_request_may_not_dawdle_either(client: Local) -> None:
    whole = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    for begun in (whole[:20], b"\r\n"):
        with connected(client) as raw:
            raw.settimeout(PATIENCE_S)
            for _ in range(2):  # an answer keeps the connection
                raw.sendall(whole)
                assert answer_read(raw).startswith(b"HTTP/1.1 200")
            raw.sendall(begun)
            assert raw.recv(65536) == b""


def test_requests_sent_at_once_are_all_answered(client: Local) -> None:
    """The patience for a next request does not run while one is being answered."""
    ask = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
    with connected(client) as raw:
        raw.sendall((ask + b"\r\n") * 3 + ask + b"Connection: close\r\n\r\n")
        said = b""
        while piece := raw.recv(65536):
            said += piece
    assert said.count(b"HTTP/1.1 200") == 4


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
        made = advised(client, town.call("among strangers"))
    finally:
        ended.set()
        for one in floods:
            one.join()
    assert made.decision != "no_advice"
    assert statuses == {path: {status} for path, status in targets.items()}
    answer = client.post("/v1/session", json={"token": "x" * 900}, headers=headers)
    assert answer.status_code == 422
    assert client.post("/v1/session", json={"token": token("cad")}).status_code == 200
    client.cookies.clear()


def test_a_body_of_many_mistakes_is_refused_in_one_line(client: Local, town: Town) -> None:
    """Also from somebody known: the answer names the first of them."""
    headers = {**bearer("cad"), "Content-Type": "application/json"}
    many = client.post(ASK, content=b"[" + b"0," * 30_000 + b"0]", headers=headers)
    assert (many.status_code, many.json()["error"]["code"]) == (422, "too_many_elements")
    keys = {f"k{number}": 1 for number in range(4000)}
    answer = client.post(ASK, json={**town.call(), **keys}, headers=headers)
    assert answer.status_code == 422
    assert len(answer.content) < 500


def test_wrong_tokens_with_bodies_are_counted_once(client: Local, town: Town) -> None:
    client.service.doorkeeper._failed.clear()
    wrong = {"Authorization": "Bearer guess"}
    statuses = [client.post(ASK, json={}, headers=wrong) for _ in range(12)]
    assert [one.status_code for one in statuses] == [401] * 10 + [429] * 2
    assert statuses[0].headers["WWW-Authenticate"] == "Bearer"
    assert statuses[-1].headers["Retry-After"] == "60"
    client.service.doorkeeper._failed.clear()


def test_no_token_and_wrong_role(client: Local, town: Town) -> None:
    assert client.post(ASK, json=town.call()).status_code == 401
    assert post(client, town.call(), "auditor").status_code == 403


def test_guessing_tokens_is_slowed_down_and_locks_nobody_out(client: Local, town: Town) -> None:
    statuses = [
        client.get("/v1/city", headers={"Authorization": f"Bearer guess-{n}"}).status_code
        for n in range(15)
    ]
    assert statuses[:10] == [401] * 10
    assert statuses[-1] == 429
    refused = client.get("/v1/city", headers={"Authorization": "Bearer guess"})
    assert refused.headers["Retry-After"] == "60"
    assert advised(client, town.call("not locked out")).decision != "no_advice"


@pytest.mark.parametrize(
    "path",
    ["/../settings.py", "/%2e%2e/settings.py", "/..%2fsettings.py", "/....//settings.py",
     "/%2e%2e%2f%2e%2e%2f%2e%2e%2fetc/passwd", "//etc/passwd", "/\\..\\settings.py",
     "/static/../../app.py", "/%00", "/locales/%2e%2e/%2e%2e/app.py"],
)  # fmt: skip
def test_path_traversal(client: Local, path: str) -> None:
    with connected(client) as raw:
        raw.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        said = b""
        while piece := raw.recv(65536):
            said += piece
    assert said.split(b" ")[1] in (b"400", b"404", b"405"), said[:200]
    assert b"import" not in said
    assert b"root:" not in said


def test_script_in_address_or_reason(client: Local, town: Town) -> None:
    """It comes back as text in JSON, with a policy that would run no script anyway."""
    script = '<script>alert(1)</script>"><img src=x onerror=alert(1)>\u2028'
    body = town.call("script", note=script, primary={"depot": "D0", "unit": script})
    answer = post(client, body)
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.json()["note"] == script
    assert answer.json()["primary"]["unit"] == script
    where = f"{ASK}/{answer.json()['id']}/response"
    reason = {"action": "override", "reason_code": "other", "text": script}
    said = client.post(where, json=reason, headers=bearer("dispatcher"))
    assert said.json()["response"]["text"] == script
    assert "script-src 'self';" in said.headers["content-security-policy"]


def test_hostile_headers(client: Local) -> None:
    long = "x" * 100_000
    for lines in (f"X: {long}", "Content-Length: -5", "Content-Length: 5\r\nContent-Length: 6"):
        with connected(client) as raw:
            raw.sendall(f"POST {ASK} HTTP/1.1\r\nHost: x\r\n{lines}\r\n\r\n".encode())
            raw.settimeout(PATIENCE_S)
            said = raw.recv(65536)
            assert not said or said.split(b" ")[1][:1] == b"4"
    assert client.get("/healthz").status_code == 200
