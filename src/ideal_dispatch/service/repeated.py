"""Work in the background that is done again and again."""

import logging
import threading
from collections.abc import Callable

log = logging.getLogger(__name__)


class Repeated:
    """A thread that does something now and then again every ``every_s`` until it is stopped."""

    def __init__(self, name: str, every_s: float, work: Callable[[], None]) -> None:
        self._every_s, self._work = every_s, work
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_s: float = 2.0) -> None:
        """Begin nothing new; what hangs is left behind."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._work()
            except Exception:  # a poll that dies would go unnoticed
                log.exception("%s failed", self._thread.name)
            self._stopped.wait(self._every_s)
