"""Recording quotes: a live source asked again and again, or a recorded world in its place."""

import fcntl
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path as FilePath
from typing import Any, BinaryIO, Protocol

import numpy as np

from ideal_dispatch.arrays import whole_number
from ideal_dispatch.errors import IdealError, InputError
from ideal_dispatch.files import atomic_write, check_target
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.traffic.budget import BudgetError, RequestBudget
from ideal_dispatch.traffic.clocks import Clock, LiveClock, VirtualClock
from ideal_dispatch.traffic.quote_log import LogLine, QuoteLog, header_text, requests_text
from ideal_dispatch.traffic.source import TrafficSource, TrafficWorld, require_zone

EVERY_S = 300.0
"""Seconds between the askings of a log that is told none."""
_SAME_S = 1e-3


class NetworkSource(TrafficSource, Protocol):
    """A source of quotes that says which network they are on."""

    @property
    def network(self) -> RoadNetwork:
        """The network of its paths."""
        ...


@dataclass(frozen=True, slots=True)
class RecordingSummary:
    """What a recording did.

    ``present`` askings were in the file before; ``missed`` were due more than
    an interval ago and cannot be asked any more. ``stopped`` says why the
    recording ended early, or is empty; the same call goes on later. ``failure``
    is why the first quote that failed did.
    """

    quoted: int
    failed: int
    present: int
    missed: int
    stopped: str
    notes: tuple[str, ...]
    failure: str = ""


def record_quotes(
    source: NetworkSource,
    pairs: Sequence[tuple[int, int]],
    start: datetime | None,
    every_s: float | None,
    count: int,
    path: str | os.PathLike[str],
    budget: RequestBudget | None = None,
    realised: TrafficWorld | None = None,
    clock: Clock | None = None,
    progress: Callable[[int, int], None] | None = None,
    requests: RequestBudget | None = None,
) -> RecordingSummary:
    """Ask for every pair at ``start`` and each ``every_s`` after it, ``count`` times.

    The log at ``path`` is begun or continued: what is in it is not asked again,
    so an interrupted recording goes on with the same call. Without ``start`` or
    ``every_s`` it keeps the schedule the log was begun with; a new log begins now
    and asks every :data:`EVERY_S`. A quote that fails becomes a line that says
    why; a used-up budget ends the recording: ``budget`` counts quotes,
    ``requests`` is a paid source's own and is kept in the log. Both count all
    that was ever asked for the log. A start or an interval that is not the
    log's is refused; a world alone may begin anew behind all that is in it.
    Times come from ``realised``, or from the source where it is a world; such a
    source is asked on a virtual clock, any other on the machine's. ``progress``
    is told the askings done and their number.
    """
    _check(source.network, pairs, start, every_s, count)
    pairs = [(int(origin), int(destination)) for origin, destination in pairs]
    world = realised or (source if isinstance(source, TrafficWorld) else None)
    if clock is None and not isinstance(source, TrafficWorld):
        clock = LiveClock()
    _begin(path, source.network, described(source), start, every_s, count, clock)
    counts = {"quoted": 0, "failed": 0, "present": 0, "missed": 0}
    stopped = failure = ""
    done = 0
    with open(path, "ab") as file:
        _hold(file)
        log = _continued(path, source.network, described(source))
        first, interval_s = _begun(log, path, start, every_s, isinstance(source, TrafficWorld))
        schedule = _schedule(first, interval_s, count)
        clock = clock or VirtualClock(schedule[0])
        name = os.path.realpath(path)
        if budget is not None:
            budget.add_earlier(name, len(log.keys))
        meter = _Meter(requests, name, log.requests)
        try:
            for due in schedule:
                todo = [pair for pair in pairs if (due, *pair) not in log.keys]
                counts["present"] += len(pairs) - len(todo)
                if todo:
                    clock.sleep(max(0.0, (due - clock.now()).total_seconds()))
                for pair in todo:
                    now = clock.now()
                    if (now - due).total_seconds() >= interval_s:
                        counts["missed"] += 1
                        continue
                    if budget is not None:
                        budget.spend("quote")
                    line = replace(_asked(source, world, due, pair, now), requests=meter.read())
                    counts["failed" if line.error else "quoted"] += 1
                    failure = failure or line.error
                    file.write(line.text().encode() + b"\n")
                    file.flush()
                if todo:
                    os.fsync(file.fileno())
                done += len(pairs)
                if progress is not None:
                    progress(done, len(pairs) * count)
        except BudgetError as error:
            stopped = str(error)
        finally:
            if sent := meter.read():
                file.write(requests_text(sent).encode() + b"\n")
            _sync(file)
            if budget is not None:
                budget.logged(name, len(log.keys) + counts["quoted"] + counts["failed"])
            meter.close()
    if counts["missed"] and not counts["quoted"] + counts["failed"]:
        stopped = stopped or (
            f"{os.fspath(path)}: its last asking was due at {schedule[-1].isoformat()}; raise the "
            "count to go on, or name another file"
        )
    return RecordingSummary(**counts, stopped=stopped, notes=log.notes, failure=failure)


class _Meter:
    """Requests since it was last read."""

    def __init__(self, requests: RequestBudget | None, log: str, earlier: int) -> None:
        self._requests, self._log, self._earlier = requests, log, earlier
        if requests is not None:
            requests.add_earlier(log, earlier)
            self._first = self._known = requests.spent

    def read(self) -> int:
        if self._requests is None:
            return 0
        before, self._known = self._known, self._requests.spent
        return self._known - before

    def close(self) -> None:
        """All that was read is in the log."""
        if self._requests is not None:
            self._requests.logged(self._log, self._earlier + self._known - self._first)


def described(source: object) -> Mapping[str, Any]:
    """What a source says about itself, as plain JSON."""
    describe = getattr(source, "describe", None)
    said = describe() if callable(describe) else {"engine": type(source).__name__}
    plain: dict[str, Any] = json.loads(json.dumps(said, allow_nan=False))
    return plain


def path_time_s(world: TrafficWorld, path: Path, at: datetime) -> float:
    """Seconds that the path took for who set out at ``at``, edge by edge."""
    elapsed_s = 0.0
    for edge in path.edges.tolist():
        elapsed_s += world.realised(edge, at + timedelta(seconds=elapsed_s))
    return elapsed_s


def _asked(
    source: NetworkSource,
    world: TrafficWorld | None,
    due: datetime,
    pair: tuple[int, int],
    now: datetime,
) -> LogLine:
    try:
        quote = source.quote(*pair, now)
    except BudgetError:
        raise
    except IdealError as error:
        nothing: dict[str, float] = {}
        return LogLine(due, *pair, now, nothing, (), error=str(error) or type(error).__name__)
    line = LogLine.quoted(due, quote)
    if world is None:
        return line
    try:
        return replace(line, realised_s=path_time_s(world, quote.path, quote.asked_at))
    except IdealError as error:  # such as a recording that ends on the way
        return replace(line, realised_error=str(error))


def _check(
    network: RoadNetwork,
    pairs: Sequence[tuple[int, int]],
    start: datetime | None,
    every_s: float | None,
    count: int,
) -> None:
    if start is not None:
        require_zone(start)
    if every_s is not None and not 0 < every_s < np.inf:
        raise InputError(f"every {every_s} s: more than zero is needed")
    if whole_number(count, "count") < 1 or not len(pairs):
        raise InputError("a recording needs at least one pair and one time to ask")
    for number, pair in enumerate(pairs):
        for node in pair:
            if not 0 <= whole_number(node, f"pair {number}: node") < network.num_nodes:
                raise InputError(
                    f"pair {number}: {node} is not a node (0 … {network.num_nodes - 1})"
                )
    if len(set(map(tuple, pairs))) < len(pairs):
        raise InputError("a pair is given twice; name each once")


def _begin(
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
    target = FilePath(path)
    if target.exists() and target.stat().st_size:
        return
    if start is None and clock is None:
        raise InputError("a recorded world has no present: say when to ask first")
    first = start or (clock or LiveClock()).now()
    interval_s = float(every_s or EVERY_S)
    _schedule(first, interval_s, count)
    header = header_text(network, description, first.astimezone(UTC), interval_s)
    with atomic_write(path) as file:
        file.write(header.encode() + b"\n")


def _schedule(first: datetime, interval_s: float, count: int) -> list[datetime]:
    try:
        return [first + timedelta(seconds=k * interval_s) for k in range(count)]
    except OverflowError:
        raise InputError(
            f"{count} askings every {interval_s:g} s from {first.isoformat()} on: the calendar "
            "ends before; ask more often or fewer times"
        ) from None


def _hold(file: BinaryIO) -> None:
    """Keep other processes from writing to the log until it is closed."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(
            f"{os.fspath(file.name)}: another process is recording there; name another file"
        ) from None


def _continued(
    path: str | os.PathLike[str], network: RoadNetwork, description: Mapping[str, Any]
) -> QuoteLog:
    """The log, with a last line that was cut short taken off."""
    log, target = QuoteLog.load(path, network), FilePath(path)
    if log.source != description:
        raise InputError(
            f"{target}: recorded from another source or with other settings; name another file"
        )
    if log.whole_bytes < target.stat().st_size:
        os.truncate(path, log.whole_bytes)
    return log


def _begun(
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


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
