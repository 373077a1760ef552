"""A local HTTP server that stands in for an outside service, well- or ill-behaved."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Asked:
    """A request as the server saw it; names of headers are in lower case."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Answer:
    """What the server says: ``promised`` bytes may be more than it sends, and late.

    ``drip_s`` is between the bytes of the body, ``header_drip_s`` between those
    of a header that takes a hundred.
    """

    body: bytes | str = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    promised: int | None = None
    delay_s: float = 0.0
    drip_s: float = 0.0
    header_drip_s: float = 0.0


@dataclass
class Server:
    """Where it listens and what it was asked."""

    url: str
    asked: list[Asked]


@contextmanager
def serve(answer: Callable[[Asked], Answer]) -> Iterator[Server]:
    """A server on loopback whose answer depends on the request."""
    requests: list[Asked] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            headers = {name.lower(): value for name, value in self.headers.items()}
            content = self.rfile.read(int(headers.get("content-length", "0")))
            query = dict(parse_qsl(parts.query))
            asked = Asked(self.command, parts.path, query, headers, content)
            requests.append(asked)
            said = answer(asked)
            body = said.body.encode() if isinstance(said.body, str) else said.body
            time.sleep(said.delay_s)
            try:
                self.send_response(said.status)
                for name, value in said.headers.items():
                    self.send_header(name, value)
                length = len(body) if said.promised is None else said.promised
                self.send_header("Content-Length", str(length))
                if said.header_drip_s:
                    self.flush_headers()
                    for letter in b"X-Slow: " + b"x" * 90 + b"\r\n":
                        self.wfile.write(bytes([letter]))
                        time.sleep(said.header_drip_s)
                self.end_headers()
                step = 1 if said.drip_s else max(len(body), 1)
                for start in range(0, len(body), step):
                    self.wfile.write(body[start : start + step])
                    self.wfile.flush()
                    time.sleep(said.drip_s)
            except OSError:
                pass  # the client has left

        do_POST = do_PUT = do_GET  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield Server(f"http://127.0.0.1:{server.server_port}", requests)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
