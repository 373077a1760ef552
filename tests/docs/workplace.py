"""A folder in which a reader has what a page begins with, and runs its commands."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from benchmarks.ports import free_port
from tests.conftest import ROOT

BIN = Path(sys.executable).parent
PATIENCE_S = 600.0


@dataclass(frozen=True)
class Workplace:
    """A folder beside the examples of a clone.

    ``others`` is what is said otherwise here than on the page: smaller, or on this machine.
    """

    folder: Path
    others: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        examples = self.folder / "examples"
        if not examples.exists():
            examples.symlink_to(ROOT / "examples", target_is_directory=True)

    def adapted(self, text: str) -> str:
        for theirs, ours in self.others.items():
            text = text.replace(theirs, ours)
        return text

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(self.adapted(text), encoding="utf-8")

    def run(self, command: str) -> None:
        """Run a line of a page; it must succeed."""
        line = self.adapted(command)
        if re.match(r"make\b", line):
            self._shell(f"{line} --dry-run", ROOT)  # its recipe is tested by itself
        elif served := re.fullmatch(
            r"(?:env (\w+)=(\S+) )?(ideal serve(?!.*--(?:check|new)).*)", line
        ):
            self._serve(served[3], {served[1]: served[2]} if served[1] else {})
        else:
            self._shell(line, self.folder)

    def _shell(self, line: str, folder: Path) -> None:
        done = subprocess.run(
            line, shell=True, cwd=folder, env=self._environment, check=False, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE_S,
        )  # fmt: skip
        assert done.returncode == 0, f"{line}\n{done.stdout}"
        assert "Traceback" not in done.stdout, done.stdout

    def _serve(self, line: str, environment: Mapping[str, str]) -> None:
        """Start a service, wait until it is ready, and end it as an operator would."""
        port = free_port()
        log = self.folder / "serve.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*line.split(), "--port", str(port)], cwd=self.folder,
                env={**self._environment, **environment}, stdout=output, stderr=output,
                executable=BIN / "ideal",
            )  # fmt: skip
            try:
                self._wait(process, port, log)
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(60)
        assert process.returncode in (0, -signal.SIGTERM), log.read_text()

    @staticmethod
    def _wait(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            assert process.poll() is None, log.read_text()
            try:
                if httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=10).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.1)
        raise AssertionError(f"not ready: {log.read_text()}")

    @property
    def _environment(self) -> dict[str, str]:
        path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        own = {"PATH": path, "XDG_STATE_HOME": str(self.folder), "OMP_NUM_THREADS": "1"}
        return {**os.environ, **own, **self.environment}
