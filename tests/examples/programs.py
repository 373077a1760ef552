"""The programs of `examples/`, run as a reader runs them."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

from tests.conftest import ROOT


@contextmanager
def running(name: str, *arguments: object, **environment: str) -> "Iterator[subprocess.Popen[str]]":
    """The program in its own process, killed at the end."""
    process = subprocess.Popen(
        [sys.executable, "-u", ROOT / "examples" / name, *map(str, arguments)],
        env={**os.environ, "IDEAL_TOKEN": "t0ken", **environment},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()


@contextmanager
def relayed(url: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """Another address of a server, and what cuts all connections that were made through it."""
    there = urlsplit(url)
    ends: list[socket.socket] = []

    def pass_on(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        for end in (source, target):
            end.close()

    def accept() -> None:
        with suppress(OSError):  # it is closed at the end
            while True:
                near = server.accept()[0]
                far = socket.create_connection((there.hostname or "", there.port or 80))
                ends.extend((near, far))
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=pass_on, args=pair, daemon=True).start()

    def cut() -> None:
        while ends:
            with suppress(OSError):
                ends.pop().shutdown(socket.SHUT_RDWR)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", cut
        server.shutdown(socket.SHUT_RDWR)
        cut()
