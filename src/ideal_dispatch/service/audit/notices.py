"""What was just written, told to all workers by PostgreSQL's NOTIFY.

A notice only says where to look. All of them may be lost: whoever listens looks now and then by
itself, too, and promises are kept by transactions. SQLite has no notices.
"""

import logging
import threading
from collections.abc import Callable
from contextlib import closing

import sqlalchemy as sa
from sqlalchemy import Connection

from ideal_dispatch.service.audit.database import Database
from ideal_dispatch.service.audit.record import StoreError

log = logging.getLogger(__name__)

CHANNEL = "ideal_audit"

_NOTIFY = sa.text(f"NOTIFY {CHANNEL}")
_TURN_S = 0.5  # after which a listener looks whether it is to stop
_FIRST_RETRY_S, _LAST_RETRY_S = 0.5, 5.0


def notify(connection: Connection) -> None:
    """Tell all listeners when the connection's transaction commits, and only then."""
    if connection.dialect.name == "postgresql":
        connection.execute(_NOTIFY)


class Listener:
    """A thread with a connection of its own that calls ``heard`` at every notice.

    It connects again for as long as it runs. What was missed meanwhile is not known: ``heard`` is
    called then, too. It does nothing with SQLite. ``listening`` says whether it hears now.
    """

    def __init__(self, url: str, heard: Callable[[], object]) -> None:
        self._database, self._heard = Database(url, create=False), heard
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="notices", daemon=True)
        self.listening = False

    def start(self) -> None:
        if not self._database.is_sqlite:
            self._thread.start()

    def stop(self, timeout_s: float = 2.0) -> None:
        """Hear nothing more; a connection that hangs is left behind."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def _run(self) -> None:
        retry_s = _FIRST_RETRY_S
        with closing(self._database):
            while not self._stopped.is_set():
                try:
                    self._listen()
                except Exception as error:  # without it news come late, so it must not end
                    level = logging.WARNING if self.listening else logging.DEBUG
                    log.log(level, "no notices: %s", error, exc_info=not _expected(error))
                    retry_s = _FIRST_RETRY_S if self.listening else min(2 * retry_s, _LAST_RETRY_S)
                self.listening = False
                self._stopped.wait(retry_s)

    def _listen(self) -> None:
        with self._database.listening(CHANNEL) as connection:
            self.listening = True
            self._heard()
            while not self._stopped.is_set():
                for _ in connection.notifies(timeout=_TURN_S):
                    self._heard()


def _expected(error: Exception) -> bool:
    import psycopg

    return isinstance(error, (StoreError, psycopg.Error))
