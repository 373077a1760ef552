"""A process that writes to the audit and says what became of each entry.

``python -m tests.faults.audit_worker URL SPOOL NAME COUNT [TIMEOUT_S]`` waits
for a line, writes entries of calls 0 to COUNT and prints a JSON line for each.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ideal_dispatch.service.audit.record import DuplicateEntry
from ideal_dispatch.service.audit.spool import Spool
from ideal_dispatch.service.audit.store import AuditStore
from tests.audit_entries import BlockingWriter, entry


@dataclass
class Worker:
    """Such a process, from the outside."""

    process: "subprocess.Popen[str]"

    @classmethod
    def start(
        cls, url: str, spool: Path, name: str, count: int, timeout_s: float = 5.0
    ) -> "Worker":
        """Start one and wait until it could write."""
        command = [
            sys.executable, "-m", "tests.faults.audit_worker",
            url, str(spool), name, str(count), str(timeout_s),
        ]  # fmt: skip
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        worker = cls(process)
        assert worker.line() == "ready"
        return worker

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")

    def outcomes(self) -> list[dict[str, Any]]:
        """What became of its entries, after its end."""
        said, _ = self.process.communicate(timeout=60)
        assert self.process.returncode == 0
        return [json.loads(line) for line in said.splitlines()]


def main(url: str, spool: str, name: str, count: str, timeout_s: str) -> None:
    with BlockingWriter(AuditStore(url), Spool(spool)) as writer:
        print("ready", flush=True)
        sys.stdin.readline()
        for number in range(int(count)):
            mine = entry(number, body={"by": name})
            try:
                written = writer.write(mine, float(timeout_s))
                said = {"id": mine.id, "by": name, "spooled": written is None}
            except DuplicateEntry as error:
                said = {"id": error.entry.id, "by": error.entry.body["by"], "spooled": False}
            print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
