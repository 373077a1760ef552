"""Hosts with addresses of their own on one machine: network namespaces, each on a cable to it.

For the tests of several machines and for ``make load``. Needs root and
iproute2. Addresses are those that RFC 2544 sets aside for tests of networks.
"""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import TypeVar

from benchmarks.stack import IDEAL, stop, wait_until_ready

_Said = TypeVar("_Said")

PORT = 8000
_FIRST = IPv4Address("198.18.0.0")
_NETS = 32768  # of four addresses each
_NEW_NETWORK = 0x40000000  # CLONE_NEWNET


def missing_namespaces() -> str:
    """Why there can be no hosts here; empty if there can."""
    if shutil.which("ip") is None:
        return "ip is not installed (Debian: iproute2)"
    if os.geteuid() != 0:
        return "network namespaces need root"
    try:
        with host("probe", 0):
            return ""
    except RuntimeError as error:
        return f"network namespaces cannot be made here ({error})"


@dataclass(frozen=True)
class Host:
    """A network namespace; ``gateway`` is this machine's address at the other end of its cable."""

    name: str
    address: str
    gateway: str
    cable: str

    @property
    def url(self) -> str:
        """Of a worker there."""
        return f"http://{self.address}:{PORT}"

    def cut(self) -> None:
        """Pull the cable."""
        _ip("link", "set", self.cable, "down")

    def heal(self) -> None:
        """Plug it in again."""
        _ip("link", "set", self.cable, "up")

    def route(self, address: str) -> None:
        """Reach an address of this machine over the cable."""
        _ip("-n", self.name, "route", "add", f"{address}/32", "via", self.gateway)

    def block(self, address: str) -> None:
        """Lose all that is sent to an address; the rest of the cable works."""
        _ip("-n", self.name, "route", "replace", "blackhole", f"{address}/32")

    def unblock(self, address: str) -> None:
        """Reach it again."""
        _ip("-n", self.name, "route", "delete", "blackhole", f"{address}/32")
        self.route(address)

    def inside(self, work: Callable[[], _Said]) -> _Said:
        """What ``work`` returns; its sockets are the host's own, whatever the cable does."""

        def there() -> _Said:
            libc = ctypes.CDLL(None, use_errno=True)
            with open(f"/run/netns/{self.name}") as namespace:
                if libc.setns(namespace.fileno(), _NEW_NETWORK) != 0:
                    raise OSError(ctypes.get_errno(), f"{self.name} cannot be entered")
            return work()

        with ThreadPoolExecutor(1) as thread:  # of its own: it cannot come back
            return thread.submit(there).result()

    @contextmanager
    def worker(self, config: Path) -> Iterator["subprocess.Popen[bytes]"]:
        """``ideal serve`` at the host's address, ready for calls."""
        log = config.with_suffix(".log")
        command = ["ip", "netns", "exec", self.name, str(IDEAL), "serve", "--config", str(config),
                   "--host", self.address, "--port", str(PORT)]  # fmt: skip
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            wait_until_ready(self.url, process, log)
            yield process
        finally:
            stop(process)


@contextmanager
def host(name: str, number: int) -> Iterator[Host]:
    """A host; ``number`` keeps apart those of one process."""
    unique = f"id{os.getpid()}{name[0]}{number}"
    first = _FIRST + 4 * ((8 * os.getpid() + number) % _NETS)
    made = Host(f"{unique}-{name}", str(first + 2), str(first + 1), unique)
    inside = ("-n", made.name)
    _ip("netns", "add", made.name)
    try:
        _ip("link", "add", made.cable, "type", "veth", "peer", "name", "eth0", "netns", made.name)
        _ip("address", "add", f"{made.gateway}/30", "dev", made.cable)
        _ip(*inside, "address", "add", f"{made.address}/30", "dev", "eth0")
        _ip("link", "set", made.cable, "up")
        for device in ("lo", "eth0"):
            _ip(*inside, "link", "set", device, "up")
        yield made
    finally:
        _ip("netns", "delete", made.name)  # and its end of the cable, and so the other
        _gone(made.cable)


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")


def _gone(cable: str) -> None:
    """Processes that end slowly keep a namespace for a while: take the cable away in any case."""
    subprocess.run(["ip", "link", "delete", cable], capture_output=True, check=False)
