"""A quote log opened for writing: begun or continued, by one process, on one schedule."""

import fcntl
import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ideal_dispatch.errors import InputError
from ideal_dispatch.files import atomic_write, check_target
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.traffic.clocks import Clock, LiveClock
from ideal_dispatch.traffic.quote_log import QuoteLog, header_text

EVERY_S = 300.0
"""Seconds between the askings of a log that is told none."""
_SAME_S = 1e-3


def begin(
    path: str | os.PathLike[str],
    network: RoadNetwork,
    description: Mapping[str, Any],
    start: datetime | None,
    every_s: float | None,
    count: int,
    clock: Clock | None,
) -> None:
    """Write the header of a new log; one that is there stays as it is."""
    check_target(path)
    target = Path(path)
    if target.exists() and target.stat().st_size:
        return
    if start is None and clock is None:
        raise InputError("a recorded world has no present: say when to ask first")
    first = start or (clock or LiveClock()).now()
    interval_s = float(every_s or EVERY_S)
    schedule(first, interval_s, count)
    header = header_text(network, description, first.astimezone(UTC), interval_s)
    with atomic_write(path) as file:
        file.write(header.encode() + b"\n")


def schedule(first: datetime, interval_s: float, count: int) -> list[datetime]:
    """When to ask, ``count`` times."""
    try:
        return [first + timedelta(seconds=k * interval_s) for k in range(count)]
    except OverflowError:
        raise InputError(
            f"{count} askings every {interval_s:g} s from {first.isoformat()} on: the calendar "
            "ends before; ask more often or fewer times"
        ) from None


def hold(file: BinaryIO) -> None:
    """Keep other processes from writing to the log until it is closed."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(
            f"{os.fspath(file.name)}: another process is recording there; name another file"
        ) from None


def continued(
    path: str | os.PathLike[str], network: RoadNetwork, description: Mapping[str, Any]
) -> QuoteLog:
    """The log, with a last line that was cut short taken off."""
    log, target = QuoteLog.load(path, network), Path(path)
    if log.source != description:
        raise InputError(
            f"{target}: recorded from another source or with other settings; name another file"
        )
    if log.whole_bytes < target.stat().st_size:
        os.truncate(path, log.whole_bytes)
    return log


def first_and_interval(
    log: QuoteLog,
    path: str | os.PathLike[str],
    start: datetime | None,
    every_s: float | None,
    is_world: bool,
) -> tuple[datetime, float]:
    """The first asking and the interval: as told, or as the log was begun.

    A world has gaps in its time: behind all that is in the log, or where such a
    new beginning was made before, its schedule may begin anew.
    """
    first, interval_s = start or log.start, every_s or log.every_s
    if first is None or np.isnan(interval_s):
        raise InputError(f"{os.fspath(path)}: tells no schedule; give a start and an interval")
    if log.start is not None:  # a log of the first version has no grid
        if interval_s != log.every_s:
            raise InputError(
                f"{os.fspath(path)}: asks every {log.every_s:g} s, not every {interval_s:g} s; "
                "leave the interval out, or name another file"
            )
        rounds = (first - log.start).total_seconds() / interval_s
        dues = {due for due, *_ in log.keys}
        anew = is_world and dues and (first in dues or first > max(dues))
        if not anew and abs(rounds - round(rounds)) * interval_s > _SAME_S:
            raise InputError(
                f"{os.fspath(path)}: asks every {interval_s:g} s from {log.start.isoformat()} on, "
                f"never at {first.isoformat()}; leave the start out, or name another file"
            )
    # in UTC: a due time is the same moment however a later call writes its zone
    return first.astimezone(UTC), interval_s
