"""A throw-away PostgreSQL server for tests, real and private.

Where tests run as root the server runs as the system's user ``postgres``.
"""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest

from benchmarks.ports import free_port

_PATIENCE_S = 300


class Postgres:
    """A server on loopback that can be stopped and started; its databases are UTF-8.

    It may listen at more ``addresses`` of this machine, and trusts whoever comes there.
    """

    def __init__(
        self, binaries: Path, folder: Path, user: str | None, addresses: Sequence[str] = ()
    ) -> None:
        self._binaries, self._folder, self._user = binaries, folder, user
        self._addresses = addresses
        self._data = folder / "data"
        self._databases = 0
        self.port = free_port()
        self._run(
            "initdb", "-D", str(self._data), "-U", "postgres", "-A", "trust", "-E", "UTF8",
            "--locale=C", "-N",
        )  # fmt: skip
        if addresses:
            with (self._data / "pg_hba.conf").open("a") as rules:
                rules.write("host all all samenet trust\n")

    def start(self) -> None:
        """Start it and wait until it answers."""
        options = (
            f"-c listen_addresses={','.join(('127.0.0.1', *self._addresses))} -c port={self.port} "
            f"-c unix_socket_directories={self._folder} -c max_connections=60 "
            "-c fsync=off"  # no test cuts the power, and a busy disk would take its time
        )
        log = str(self._folder / "log")
        waiting = ("-w", "-t", str(_PATIENCE_S))
        self._run("pg_ctl", "-D", str(self._data), *waiting, "-l", log, "-o", options, "start")

    def stop(self, mode: Literal["smart", "fast", "immediate"] = "fast") -> None:
        """Stop it; ``immediate`` is a crash: open transactions are lost, committed ones are not."""
        self._run("pg_ctl", "-D", str(self._data), "-w", "-m", mode, "stop")

    @property
    def running(self) -> bool:
        return (self._data / "postmaster.pid").exists()

    def answers(self) -> bool:
        """Whether it takes connections."""
        where = ("-h", "127.0.0.1", "-p", str(self.port), "-q")
        return subprocess.run([self._binaries / "pg_isready", *where], check=False).returncode == 0

    def processes(self) -> list[int]:
        """The server's process, first, and those of its connections."""
        parent = int((self._data / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        return [parent, *map(int, children)]

    def new_database(self, encoding: str = "UTF8") -> str:
        """The URL of a new, empty database."""
        self._databases += 1
        name = f"test_{self._databases}"
        self._run(
            "createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres",
            "-T", "template0", "-E", encoding, name,
        )  # fmt: skip
        return f"postgresql+psycopg://postgres@127.0.0.1:{self.port}/{name}"

    def _run(self, program: str, *arguments: str) -> None:
        with tempfile.TemporaryFile() as said:  # a pipe would wait for the server's end
            ended = subprocess.run(
                [self._binaries / program, *arguments],
                stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=self._folder,
                timeout=_PATIENCE_S, user=self._user, group=self._user,
                extra_groups=None if self._user is None else [],
            )  # fmt: skip
            said.seek(0)
            assert ended.returncode == 0, said.read().decode(errors="replace")


def _binaries() -> Path | None:
    """Where the server's programs are: on the path, or where Debian puts them."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    places = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    return max((place.parent for place in places), default=None)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A running PostgreSQL server of this test run alone, or a plain reason to skip."""
    if missing := missing_server():
        pytest.skip(missing)
    with running_postgres() as server:
        yield server


def missing_server() -> str:
    """What must be there before a server can run here; empty if nothing."""
    if _binaries() is None:
        return "PostgreSQL's server programs are not installed (Debian: postgresql)"
    try:
        if os.geteuid() == 0:
            pwd.getpwnam("postgres")
    except KeyError:
        return "PostgreSQL does not run as root, and there is no user postgres"
    return ""


@contextmanager
def running_postgres(
    addresses: Sequence[str] = (), folder: Path | None = None
) -> Iterator[Postgres]:
    """A server with files of its own, which go with it; they lie in a new ``folder`` if given."""
    binaries = _binaries()
    assert binaries is not None
    user = "postgres" if os.geteuid() == 0 else None
    folder = folder or Path(tempfile.mkdtemp(prefix="ideal-pg-"))
    try:
        if user is not None:
            account = pwd.getpwnam(user)
            os.chown(folder, account.pw_uid, account.pw_gid)
        server = Postgres(binaries, folder, user, addresses)
        server.start()
        try:
            yield server
        finally:
            if server.running:
                server.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
