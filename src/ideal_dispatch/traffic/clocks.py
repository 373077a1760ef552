"""The time and waiting: the machine's clock, or one that stands still until somebody waits."""

import time
from datetime import datetime, timedelta
from typing import Protocol

from ideal_dispatch.context.context import require_zone
from ideal_dispatch.context.weather import utc_now


class Clock(Protocol):
    """The time, and waiting."""

    def now(self) -> datetime:
        """The present moment, aware."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class LiveClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return utc_now()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class VirtualClock:
    """A clock that stands still until somebody waits: no time is lost."""

    def __init__(self, start: datetime) -> None:
        require_zone(start)
        self._now = start

    def now(self) -> datetime:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)
