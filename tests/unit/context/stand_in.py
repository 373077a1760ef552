"""A local HTTP server that stands in for a weather service, well- or ill-behaved."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Answer:
    """What the server says: ``promised`` bytes may be more than it sends, and late."""

    body: bytes | str = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    promised: int | None = None
    delay_s: float = 0.0
    drip_s: float = 0.0


@dataclass
class StandIn:
    url: str
    asked: list[tuple[str, dict[str, str]]]


@contextmanager
def stand_in(answer: Callable[[str, dict[str, str]], Answer]) -> Iterator[StandIn]:
    """A server on loopback whose answer depends on path and query."""
    asked: list[tuple[str, dict[str, str]]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = dict(parse_qsl(parts.query))
            asked.append((parts.path, query))
            said = answer(parts.path, query)
            body = said.body.encode() if isinstance(said.body, str) else said.body
            time.sleep(said.delay_s)
            try:
                self.send_response(said.status)
                for name, value in said.headers.items():
                    self.send_header(name, value)
                length = len(body) if said.promised is None else said.promised
                self.send_header("Content-Length", str(length))
                self.end_headers()
                step = 1 if said.drip_s else max(len(body), 1)
                for start in range(0, len(body), step):
                    self.wfile.write(body[start : start + step])
                    self.wfile.flush()
                    time.sleep(said.drip_s)
            except OSError:
                pass  # the client has left

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield StandIn(f"http://127.0.0.1:{server.server_port}", asked)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
