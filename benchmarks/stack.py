"""The files of deploy/ at work: nginx before real workers, on ports of their own.

For the tests of a deployment and for ``make load``. Everything listens on loopback.
"""

import os
import pwd
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx

from benchmarks.ports import free_port

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"
IDEAL = Path(sys.executable).with_name("ideal")
PATIENCE_S = 90.0
WORKER_PORTS = (8101, 8102)  # in the files
_STOP_S = 20.0


def missing_programs() -> str:
    """What must be installed before nginx can run here; empty if nothing."""
    if _nginx() is None:
        return "nginx is not installed (Debian: nginx-light)"
    if shutil.which("openssl") is None:
        return "openssl is not installed: no certificate can be made"
    return ""


def children_of(process: int) -> list[int]:
    """The processes that a process started."""
    threads = Path(f"/proc/{process}/task").iterdir()
    return [int(child) for one in threads for child in (one / "children").read_text().split()]


class WorkerProcess:
    """``ideal serve`` at a port, as systemd runs it: it can die and be started again.

    Another ``command`` must say READY, too, once it listens. ``environment`` is beside ours.
    """

    def __init__(
        self,
        config: Path,
        port: int,
        command: Sequence[str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.port, self.url = port, f"http://127.0.0.1:{port}"
        self.log = config.with_suffix(f".{port}.log")
        ours = [str(IDEAL), "serve", "--config", str(config), "--port", str(port)]
        self._command, self._environment = command or ours, environment or {}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it; return when it says that it can advise (``Type=notify``)."""
        name = f"ideal-dispatch-{os.getpid()}-{self.port}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told, self.log.open("ab") as log:
            told.bind(f"\0{name}")
            told.settimeout(0.1)
            environment = {**os.environ, **self._environment, "NOTIFY_SOCKET": f"@{name}"}
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, env=environment)
            deadline = time.monotonic() + PATIENCE_S
            while not _ready(told):
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"{self.url} did not start: {self.log.read_text()}")

    def kill(self) -> None:
        """End it in the middle of whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """Tell it to end, and wait until it has."""
        if self._process is not None:
            stop(self._process)


@contextmanager
def running(
    config: Path, count: int = 1, environment: Mapping[str, str] | None = None
) -> Iterator[list[WorkerProcess]]:
    """So many workers with the same settings, each at a port of its own and ready for calls."""
    with ExitStack() as stack:
        ports = [free_port() for _ in range(count)]
        workers = [WorkerProcess(config, port, environment=environment) for port in ports]
        for worker in workers:
            stack.callback(worker.stop)
            worker.start()
        yield workers


def wait_until_ready(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    """Return once a service can advise and has its traffic."""
    deadline = time.monotonic() + 2 * PATIENCE_S
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(httpx.TransportError):
            parts = httpx.get(f"{url}/readyz", timeout=PATIENCE_S, trust_env=False).json()["parts"]
            if parts["traffic"] == parts["decisions"] == "ready":
                return
        time.sleep(0.05)
    raise RuntimeError(f"{url} is not ready: {log.read_text()}")


def stop(process: "subprocess.Popen[bytes]") -> None:
    """Tell a process to end, and wait until it has; one that does not is killed."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _ready(told: socket.socket) -> bool:
    try:
        return b"READY=1" in told.recv(1024)
    except TimeoutError:
        return False


@dataclass(frozen=True)
class Proxy:
    """A running nginx: its address, and who trusts its certificate."""

    url: str
    plain_url: str
    trusting: ssl.SSLContext


def put_in(text: str, old: str, new: str) -> str:
    """The text with other words; they must have been there."""
    assert old in text, old
    return text.replace(old, new)


def nginx_command(
    folder: Path,
    tls: int,
    plain: int,
    workers: Sequence[int | str],
    others: Iterable[tuple[str, str]] = (),
) -> list[str]:
    """What runs nginx with deploy/nginx.conf, with other ports, certificate and words."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
         "-subj", "/CN=ideal.example", "-addext", "subjectAltName=DNS:ideal.example,IP:127.0.0.1",
         "-keyout", folder / "privkey.pem", "-out", folder / "fullchain.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    text = (DEPLOY / "nginx.conf").read_text()
    text = put_in(text, "listen 443 ", f"listen 127.0.0.1:{tls} ")
    text = put_in(text, "listen 80;", f"listen 127.0.0.1:{plain};")
    text = put_in(text, "/etc/ideal-dispatch/tls/", f"{folder}/")
    for there, here in zip(WORKER_PORTS, workers, strict=True):
        where = f"127.0.0.1:{here}" if isinstance(here, int) else here
        text = put_in(text, f"server 127.0.0.1:{there} ", f"server {where} ")
    for old, new in others:
        text = put_in(text, old, new)
    (folder / "site.conf").write_text(text)
    user = f"user {pwd.getpwuid(0).pw_name};" if os.geteuid() == 0 else ""
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    around = folder / "nginx.conf"
    around.write_text(
        f"{user} daemon off; worker_processes 2; pid {folder}/pid; error_log {folder}/error.log;\n"
        f"events {{ worker_connections 512; }}\n"
        f"http {{ access_log {folder}/access.log; {places} include {folder}/site.conf; }}\n"
    )
    return [str(_nginx()), "-p", str(folder), "-c", str(around)]


@contextmanager
def proxied(
    folder: Path, workers: Sequence[int | str], others: Iterable[tuple[str, str]] = ()
) -> Iterator[Proxy]:
    """Run nginx before the workers at these ports or addresses; ``others`` changes its words."""
    tls, plain = free_port(), free_port()
    command = nginx_command(folder, tls, plain, workers, others)
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not _listens(tls):
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                raise RuntimeError(f"nginx did not start: {process.communicate()[1]}")
            time.sleep(0.02)
        trusting = ssl.create_default_context(cafile=str(folder / "fullchain.pem"))
        yield Proxy(f"https://127.0.0.1:{tls}", f"http://127.0.0.1:{plain}", trusting)
    finally:
        process.terminate()
        process.communicate(timeout=_STOP_S)


def _nginx() -> str | None:
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
    except ConnectionRefusedError:
        return False
    return True
