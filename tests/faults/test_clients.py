"""Clients that are slow, huge, nested, unknown or hostile; others are served meanwhile."""

import json
import socket
import time
from collections.abc import Iterator

import pytest

from ideal_dispatch.service import server
from ideal_dispatch.service.app import create_app
from tests.faults.service_faults import ASK, advised, post
from tests.service_town import Local, Town, bearer, local, token


@pytest.fixture(scope="module")
def client(town: Town) -> Iterator[Local]:
    patient_s, server.HEADERS_S = server.HEADERS_S, 1.0
    try:
        settings = town.settings("clients.toml", server={"body_timeout_s": 1.0})
        with local(create_app(settings)) as opened:
            yield opened
    finally:
        server.HEADERS_S = patient_s


def connected(client: Local) -> socket.socket:
    host, port = client.base_url.host, client.base_url.port
    assert port is not None
    return socket.create_connection((host, port), 30)


def test_slow_clients(client: Local, town: Town) -> None:
    """Connections that send nothing, half a header or half a body are closed in time."""
    head = f"POST {ASK} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token('cad')}\r\n"
    kinds = ("", "POST /v1/rec", head + "Content-Length: 500\r\n\r\n{", head)
    slow = [connected(client) for _ in range(10) for _ in kinds]
    for number, one in enumerate(slow):
        one.sendall(kinds[number % len(kinds)].encode())
    made = advised(client, town.call("among slow ones"))
    assert made.decision != "no_advice"
    deadline = time.monotonic() + 20
    for number, one in enumerate(slow):
        one.settimeout(max(deadline - time.monotonic(), 0.1))
        said = b""
        while piece := one.recv(4096):  # until it is closed
            said += piece
        if number % len(kinds) == 2:
            assert b"408" in said.split(b"\r\n")[0]
        one.close()


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
    for body in (b"[" * 100_000, b'{"a":' * 100_000, b"[" * 400_000 + b"]" * 400_000):
        answer = client.post(ASK, content=body, headers=headers)
        assert answer.status_code == 422
        assert answer.json()["error"]["code"] == "too_deep"
    assert advised(client, town.call("after nesting")).decision != "no_advice"


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
            raw.settimeout(20)
            said = raw.recv(65536)
            assert not said or said.split(b" ")[1][:1] == b"4"
    assert client.get("/healthz").status_code == 200
