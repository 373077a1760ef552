"""The service's clock: the wall's, or one that began elsewhere and runs at its own speed.

Ages, expiry, staleness and records go by it. The deadline of an answer does not: people and
programs wait in real time. It is one for a process, set before anything is asked.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from ideal_dispatch.errors import InputError
from ideal_dispatch.ranges import Range, check_fields


@dataclass(frozen=True, slots=True)
class ClockTable:
    """It is ``origin`` at the wall's moment ``started``, and runs ``speed`` times as fast as it.

    All workers of a service have the same table: their clocks agree. Without an origin it is the
    wall's clock.
    """

    origin: datetime | str | None = None
    started: datetime | str | None = None
    speed: Annotated[float, Range(0, 1000, above=True)] = 1.0

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("origin", "started"):
            object.__setattr__(self, name, _moment(name, getattr(self, name)))
        if (self.origin is None) != (self.started is None) or (
            self.origin is None and self.speed != 1.0
        ):
            raise InputError("origin and started belong together, and a speed needs both")

    def at(self, wall: datetime) -> datetime:
        """The moment of the service at a moment of the wall."""
        if not (isinstance(self.origin, datetime) and isinstance(self.started, datetime)):
            return wall
        return self.origin + self.speed * (wall - self.started)


def _moment(name: str, given: datetime | str | None) -> datetime | None:
    if isinstance(given, str):
        try:
            given = datetime.fromisoformat(given)
        except ValueError:
            raise InputError(f"{name} {given!r}: write it as 2026-03-01T08:00:00+08:00") from None
    if given is not None and given.tzinfo is None:
        raise InputError(f"{name} {given} has no zone; write it as 2026-03-01T08:00:00+08:00")
    return given


_table = ClockTable()


def use(table: ClockTable) -> None:
    """Run by this table from now on."""
    global _table
    _table = table


def now() -> datetime:
    """The moment, in UTC."""
    return _table.at(datetime.now(UTC)).astimezone(UTC)


def speed() -> float:
    """How many seconds of the service pass in a real one."""
    return _table.speed


def at_text(at: datetime) -> str:
    """A moment in UTC, always of the same length, so that texts sort as moments do."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def to_millisecond(at: datetime) -> datetime:
    """The moment as :func:`moment_text` writes it."""
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def moment_text(at: datetime) -> str:
    """RFC 3339 in UTC, to the millisecond."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
