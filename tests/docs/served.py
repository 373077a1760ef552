"""The embedded city served by `ideal serve`, as a reader of the pages starts it."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from benchmarks.ports import free_port
from tests.docs.workplace import BIN
from tests.waiting import wait_for


@dataclass(frozen=True)
class Served:
    """Where it is, and the token that it printed."""

    url: str
    token: str

    def client(self) -> httpx.Client:
        return httpx.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {self.token}"}, timeout=30
        )


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[Served]:
    """The service with its record in a folder, once it is ready."""
    port, log = free_port(), folder / "serve.log"
    environment = {**os.environ, "XDG_STATE_HOME": str(folder), "OMP_NUM_THREADS": "1"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [BIN / "ideal", "serve", "--port", str(port), *options], env=environment,
            stdout=output, stderr=output,
        )  # fmt: skip
        try:
            url = f"http://127.0.0.1:{port}"

            def ready() -> bool:
                assert process.poll() is None, log.read_text()
                try:
                    return httpx.get(f"{url}/readyz", timeout=10).status_code == 200
                except httpx.TransportError:
                    return False

            wait_for(ready, log.read_text)
            found = re.search(r"token: *(\S+)", log.read_text())
            assert found is not None, log.read_text()
            yield Served(url, found[1])
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
