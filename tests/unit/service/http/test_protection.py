"""Limits before anything is read."""

import asyncio
import json
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ideal_dispatch.service.decider import Admission
from ideal_dispatch.service.http.protection import ASK, EIDO, SESSION, Protection, depth, elements
from ideal_dispatch.service.settings import Server, Token, digest


def nesting(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(nesting, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(nesting, value), default=0)
    return 0


VALUES = st.recursive(
    st.none() | st.booleans() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES, st.booleans())
def test_depth_is_that_of_the_json(value: Any, escaped: bool) -> None:
    text = json.dumps(value, ensure_ascii=escaped)
    assert depth(text.encode("utf-8", "surrogatepass")) == nesting(value)


@given(st.binary())
def test_any_bytes_have_some_depth(body: bytes) -> None:
    assert 0 <= depth(body) <= len(body)


@pytest.mark.parametrize(
    ("body", "expected"),
    [(b'"[[["', 0), (b'"\\"[["', 0), (b'["[", "]"]', 1), (b'"unterminated [[', 0), (b"[" * 99, 99)],
)
def test_brackets_in_strings_do_not_count(body: bytes, expected: int) -> None:
    assert depth(body) == expected


class Echo:
    """An application that answers with the size of what it got."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        body = str(len(message["body"])).encode()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})


def ask(
    pieces: list[bytes],
    *,
    length: int | None = None,
    chunked: bool = False,
    pause_s: float = 0.0,
    limit_s: float = 60.0,
    path: str = "/",
    stranger: bool = False,
    admission: Admission | None = None,
    refused: list[str] | None = None,
) -> tuple[int, bytes]:
    """Status and body that a guarded echo gives to a request in pieces."""
    told = [] if refused is None else refused
    headers = [] if length is None else [(b"content-length", str(length).encode())]
    headers += [(b"transfer-encoding", b"chunked")] if chunked else []
    headers += [] if stranger else [(b"authorization", b"Bearer cad")]
    scope: dict[str, Any] = {
        "type": "http",
        "method": "POST",
        "path": path,
        "headers": headers,
        "client": None,
    }
    waiting, sent = list(pieces), []

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(pause_s)
        if not waiting:
            await asyncio.sleep(3600)
        piece = waiting.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(waiting)}

    async def send(message: Any) -> None:
        sent.append(message)

    def counted(code: str) -> SimpleNamespace:
        return SimpleNamespace(inc=lambda: told.append(code))

    service: Any = SimpleNamespace(
        settings=SimpleNamespace(
            server=Server(body_bytes=1000, eido_bytes=50_000, nesting=5, body_timeout_s=limit_s),
            tokens=(Token("cad", "cad", digest("cad")),),
        ),
        admission=admission or Admission(1, lambda: True),
        metrics=SimpleNamespace(refused=SimpleNamespace(labels=counted)),
    )
    scope["app"] = SimpleNamespace(state=SimpleNamespace(service=service))
    asyncio.run(Protection(Echo())(scope, receive, send))
    if (stranger and path != SESSION) or refused:
        assert waiting == pieces  # nothing was read
    return sent[0]["status"], sent[1]["body"]


@given(VALUES)
def test_elements_are_those_of_the_json(value: Any) -> None:
    def count(one: Any) -> int:
        if isinstance(one, dict):
            return 1 + 2 * len(one) - bool(one) + sum(map(count, one.values()))
        return 1 + len(one) - bool(one) + sum(map(count, one)) if isinstance(one, list) else 0

    assert elements(json.dumps(value).encode()) == count(value)


def test_bodies_within_the_limits_pass_whole() -> None:
    assert ask([b"x" * 10], length=10, path=SESSION, stranger=True) == (200, b"10")
    assert ask([b"x" * 20_000], length=20_000, path=EIDO) == (200, b"20000")
    assert ask([b"a" * 400, b"b" * 600], length=1000) == (200, b"1000")
    assert ask([b"a" * 10, b"", b"b"], chunked=True) == (200, b"11")


@pytest.mark.parametrize(
    ("options", "status", "code"),
    [
        ({"pieces": [b"x"], "length": 1001}, 413, "too_large"),
        ({"pieces": [b"x" * 600, b"x" * 600], "chunked": True}, 413, "too_large"),
        ({"pieces": [b"[" * 6], "length": 6}, 422, "too_deep"),
        ({"pieces": [b"x"], "length": 1025, "path": SESSION}, 413, "too_large"),
        ({"pieces": [b"," * 30_000], "length": 30_000, "path": EIDO}, 422, "too_many_elements"),
        ({"pieces": [b"x"], "length": 9999, "stranger": True}, 401, "unauthorized"),
        ({"pieces": [b"x"], "chunked": True, "stranger": True}, 401, "unauthorized"),
        ({"pieces": [b"x"] * 50, "length": 50, "pause_s": 0.05, "limit_s": 0.2}, 408, "too_slow"),
    ],
)  # fmt: skip
def test_bodies_beyond_the_limits_are_refused(options: Any, status: int, code: str) -> None:
    found, body = ask(**options)
    assert found == status
    assert json.loads(body)["error"]["code"] == code


def test_calls_are_refused_before_they_are_read() -> None:
    """While the worker starts, and while all places are taken; both are counted."""
    warm, refused = threading.Event(), list[str]()
    admission = Admission(1, warm.is_set)
    call: dict[str, Any] = {"pieces": [b"{}"], "length": 2, "path": ASK, "admission": admission}
    status, body = ask(**call, refused=refused)
    assert (status, json.loads(body)["error"]["code"]) == (503, "starting")
    warm.set()
    with admission.admit("cad"):
        status, body = ask(**call, refused=refused)
        assert (status, json.loads(body)["error"]["code"]) == (503, "busy")
        assert refused == ["starting", "busy"]
        assert ask([b"{}"], length=2, path="/other", admission=admission) == (200, b"2")  # no call
    assert ask(**call) == (200, b"2")
