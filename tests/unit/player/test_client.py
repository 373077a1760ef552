"""The player's client against a server that fails: requests are repeated, events are resumed."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from benchmarks.ports import free_port
from ideal_dispatch.errors import InputError
from ideal_dispatch.player.player import ServiceClient


class Failing(BaseHTTPRequestHandler):
    """Answers every third request well, and ends a stream of events after each event."""

    refusals: ClassVar = [(503, b"<html>away</html>"), (429, b'{"error": {"code": "busy"}}')]
    asked: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        if self.path == "/v1/events":
            last = self.headers["Last-Event-ID"]
            type(self).asked.append(last)
            number = int(last or 0) + 1
            event = f"id: {number}\nevent: reply\ndata: {json.dumps({'n': number})}\n\n"
            self._answer(200, f": welcome\n\nevent: units\ndata: []\n\n{event}id: 99\n".encode())
        elif self.refusals:
            self._answer(*self.refusals.pop(0))
        else:
            self._answer(
                200 if self.path == "/good" else 404,
                b'{"error": {"code": "not_found", "message": "not found"}}',
            )

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(port: int = 0) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", port), Failing) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_what_failed_is_asked_again_and_every_answer_is_logged(tmp_path: Path) -> None:
    with serving() as url, (tmp_path / "log").open("w") as log:
        client = ServiceClient(url, "x", log)
        assert client.ask("GET", "/good")[0] == 200
        assert client.ask("GET", "/other")[0] == 404
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [line["status"] for line in lines] == [0, 429, 200, 404]
    assert client.counts == {"refused: busy": 1, "refused: not_found": 1}


def test_a_service_that_starts_later_is_waited_for() -> None:
    port = free_port()
    client, answers = ServiceClient(f"http://127.0.0.1:{port}", "x"), list[int]()
    asking = threading.Thread(target=lambda: answers.append(client.ask("GET", "/good")[0]))
    asking.start()
    time.sleep(0.1)
    with serving(port):
        asking.join()
    assert answers == [200]


def test_events_go_on_after_the_last_one_that_was_heard() -> None:
    Failing.asked.clear()
    with serving() as url:
        client = ServiceClient(url, "x")
        threading.Thread(target=client.listen, args=("reply",), daemon=True).start()
        heard = [client.heard.get(timeout=60.0) for _ in range(3)]
        assert heard == [("reply", {"n": n}) for n in (1, 2, 3)]
        assert Failing.asked[:3] == [None, "1", "2"]


def test_a_wrong_token_or_address_is_an_error() -> None:
    with pytest.raises(InputError, match="token"):
        ServiceClient("http://127.0.0.1:1", "ä")
    with pytest.raises(InputError, match="nowhere"):
        ServiceClient("nowhere", "x").ask("GET", "/good")
    with serving() as url, pytest.raises(InputError, match="not_found|404"):
        ServiceClient(url, "x").need("GET", "/other")


def test_its_clock_is_that_of_the_service_and_never_goes_back() -> None:
    client = ServiceClient("http://127.0.0.1:1", "x")
    client.follow_clock({"now": "2026-03-02T08:00:00.000Z", "speed": 1000.0})
    begins = client.now()
    client.follow_clock({"now": "2026-03-02T07:00:00.000Z", "speed": 1000.0})
    assert begins <= client.now()
    later = "2026-03-02T09:00:00.000Z"
    client.follow_clock({"now": later, "speed": 1.0})
    assert client.now() >= datetime.fromisoformat(later).timestamp()
