"""Ports on loopback for services that a test or a benchmark starts."""

import atexit
import socket


def free_port() -> int:
    """A port that nobody listens at, and that nobody else is given while this process runs.

    A socket that does not listen holds it. On Linux a service can listen beside that socket if
    both set SO_REUSEADDR, as servers do.
    """
    held = socket.socket()
    atexit.register(held.close)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    port: int = held.getsockname()[1]
    return port
