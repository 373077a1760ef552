"""An address of a centre that takes webhooks as the documentation says, and answers as told."""

import json
import runpy
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.conftest import ROOT
from tests.waiting import wait_for

SECRET = "s3cret-of-the-cad"

is_genuine: Callable[[str, dict[str, str], bytes], bool]
is_genuine = runpy.run_path(str(ROOT / "examples" / "webhook_receiver.py"))["is_genuine"]
"""The example that the documentation names."""

Answer = int | str
"""A status; "hang" for as long as the receiver runs; or "reset" of the connection."""


@dataclass
class Receiver:
    """What came, and what each message was answered; ``answers`` are used up first, then 204."""

    answers: list[Answer] = field(default_factory=list)
    came: list[tuple[str, Answer]] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    forged: list[bytes] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    on_message: Callable[[], None] = lambda: None
    url: str = ""
    closed: threading.Event = field(default_factory=threading.Event)

    @property
    def taken(self) -> list[str]:
        """Ids of messages that were answered 2xx, in order."""
        return [id_ for id_, answer in self.came if isinstance(answer, int) and answer < 300]

    def wait_for(self, condition: Callable[[], object]) -> None:
        wait_for(condition, lambda: self.came)


@contextmanager
def receiving(*answers: Answer) -> Iterator[Receiver]:
    """A receiver on loopback."""
    receiver = Receiver(list(answers))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path != "/news":
                receiver.elsewhere.append(self.path)
            if not is_genuine(SECRET, dict(self.headers), body):
                receiver.forged.append(body)
                return self._say(401)
            receiver.on_message()
            answer = receiver.answers.pop(0) if receiver.answers else 204
            message = json.loads(body)
            assert self.headers["Content-Type"] == "application/json"
            assert self.headers["Ideal-Event"] == message["event"]
            assert self.headers["Ideal-Delivery"] == message["id"]
            receiver.messages.append(message)
            receiver.came.append((message["id"], answer))
            if answer == "hang":
                receiver.closed.wait()
            elif answer == "reset":
                linger = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self.connection.close()
                self.close_connection = True
            else:
                assert isinstance(answer, int)
                self._say(answer)
            return None

        def _say(self, status: int) -> None:
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", f"{receiver.url}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

        def finish(self) -> None:
            with suppress(OSError, ValueError):  # it was reset
                super().finish()

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """Who hangs or resets breaks pipes."""

    server = Server(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}/news"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield receiver
    finally:
        receiver.closed.set()
        server.shutdown()
        thread.join()
        server.server_close()
