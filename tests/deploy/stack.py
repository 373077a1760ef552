"""The files of deploy/ at work: nginx before real workers, on ports of their own."""

import os
import pwd
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.conftest import ROOT

DEPLOY = ROOT / "deploy"
IDEAL = Path(sys.executable).with_name("ideal")
PATIENCE_S = 60.0
WORKER_PORTS = (8101, 8102)  # in the files


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens at."""
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def ideal(*arguments: str) -> str:
    """What a command says that must succeed."""
    done = subprocess.run([IDEAL, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


class WorkerProcess:
    """``ideal serve`` at a port, which can die and be started again as systemd would."""

    def __init__(self, config: Path, port: int) -> None:
        self.port, self.url = port, f"http://127.0.0.1:{port}"
        self.log = config.with_suffix(f".{port}.log")
        self._command = [str(IDEAL), "serve", "--config", str(config), "--port", str(port)]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it can advise."""
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(self._command, stdout=output, stderr=output)
        deadline = time.monotonic() + PATIENCE_S
        while not self._ready():
            assert self._process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)

    def kill(self) -> None:
        """End it in the middle of whatever it does."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()

    def part(self, name: str) -> str:
        """The state of a part of its health."""
        said = httpx.get(f"{self.url}/healthz", timeout=PATIENCE_S).json()
        return str(said["parts"][name])

    def _ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz", timeout=5).status_code == 200
        except httpx.TransportError:
            return False


def put_in(text: str, old: str, new: str) -> str:
    """The text with other words; they must have been there."""
    assert old in text, old
    return text.replace(old, new)


def nginx_program() -> str:
    found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if found is None:
        pytest.skip("nginx is not installed (Debian: nginx-light)")
    return found


def nginx_files(folder: Path, tls: int, plain: int, workers: list[int]) -> Path:
    """deploy/nginx.conf with a certificate of its own and other ports; what nginx is to read."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: no certificate can be made")
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
        text = put_in(text, f"server 127.0.0.1:{there} ", f"server 127.0.0.1:{here} ")
    (folder / "site.conf").write_text(text)
    user = f"user {pwd.getpwuid(0).pw_name};" if os.geteuid() == 0 else ""
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    around = folder / "nginx.conf"
    around.write_text(
        f"{user} daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;\n"
        f"events {{ worker_connections 512; }}\n"
        f"http {{ access_log {folder}/access.log; {places} include {folder}/site.conf; }}\n"
    )
    return around


@contextmanager
def proxied(folder: Path, tls: int, plain: int, workers: list[int]) -> Iterator[httpx.Client]:
    """nginx before these workers, and a client that trusts its certificate."""
    program = nginx_program()
    config = nginx_files(folder, tls, plain, workers)
    process = subprocess.Popen([program, "-p", folder, "-c", config], stderr=subprocess.PIPE)
    trusting = ssl.create_default_context(cafile=str(folder / "fullchain.pem"))
    try:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            if process.poll() is not None:
                assert process.stderr is not None
                raise AssertionError(process.stderr.read().decode())
            try:
                socket.create_connection(("127.0.0.1", tls), 5).close()
                break
            except ConnectionRefusedError:
                assert time.monotonic() < deadline
                time.sleep(0.02)
        url = f"https://127.0.0.1:{tls}"
        with httpx.Client(base_url=url, verify=trusting, timeout=PATIENCE_S) as client:
            yield client
    finally:
        process.terminate()
        process.communicate(timeout=20)
