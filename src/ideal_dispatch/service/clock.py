"""Moments of the service: microseconds since 1970, by the clock of the database.

Workers cannot disagree about it. Deadlines of answers go by the worker's monotonic clock.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated

from ideal_dispatch.errors import InputError
from ideal_dispatch.ranges import Range, check_fields

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
SECOND = 1_000_000
"""Microseconds of a second."""


@dataclass(frozen=True, slots=True)
class ClockTable:
    """It is ``origin`` at the database's moment ``started``, and runs ``speed`` times as fast.

    All workers of a service have the same table. Without an origin it is the database's clock.
    """

    origin: datetime | None = None
    started: datetime | None = None
    speed: Annotated[float, Range(0, 1000, above=True)] = 1.0

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("origin", "started"):
            at = getattr(self, name)
            if at is not None and (not isinstance(at, datetime) or at.tzinfo is None):
                raise InputError(f"{name} {at}: write it as 2026-03-01T08:00:00+08:00, with a zone")
        origin = self.origin is not None
        if origin != (self.started is not None) or (self.speed != 1.0 and not origin):
            raise InputError("origin and started belong together, and a speed needs both")

    @property
    def simulated(self) -> bool:
        """Whether it is not the time of day."""
        return self.origin is not None

    def at(self, database_us: int, stepped_us: int = 0) -> int:
        """The service's moment at one of the database, after the clock was stepped so far."""
        if self.origin is None or self.started is None:
            return database_us
        passed = database_us - micros(self.started)
        return micros(self.origin) + round(self.speed * passed) + stepped_us


def micros(at: datetime) -> int:
    """Microseconds since 1970 of a moment with its zone."""
    return (at - _EPOCH) // _MICROSECOND


def moment(us: int) -> datetime:
    """The moment in UTC."""
    return _EPOCH + us * _MICROSECOND


def moment_text(us: int) -> str:
    """RFC 3339 in UTC, to the millisecond."""
    return moment(us).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_text(text: str) -> int:
    """Microseconds of a moment as :func:`moment_text` writes it."""
    return micros(datetime.fromisoformat(text))
