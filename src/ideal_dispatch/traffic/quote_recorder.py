"""Recording quotes: a live source asked again and again, or a recorded world in its place."""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path as FilePath
from typing import Any, BinaryIO, Protocol

import numpy as np

from ideal_dispatch.arrays import whole_number
from ideal_dispatch.context.weather import utc_now
from ideal_dispatch.errors import IdealError, InputError
from ideal_dispatch.files import check_target
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.traffic.budget import BudgetError, RequestBudget
from ideal_dispatch.traffic.quote_log import LogLine, QuoteLog, header_text
from ideal_dispatch.traffic.source import RouteQuote, TrafficWorld, require_zone


class NetworkSource(Protocol):
    """A source of quotes that says which network they are on."""

    @property
    def network(self) -> RoadNetwork:
        """The network of its paths."""
        ...

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        """See :class:`~ideal_dispatch.traffic.source.TrafficSource`."""
        ...


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


@dataclass(frozen=True, slots=True)
class RecordingSummary:
    """What a recording did.

    ``present`` askings were in the file before; ``missed`` were due more than
    an interval ago and cannot be asked any more. ``stopped`` says why the
    recording ended early, or is empty; the same call goes on later.
    """

    quoted: int
    failed: int
    present: int
    missed: int
    stopped: str
    notes: tuple[str, ...]


def record_quotes(
    source: NetworkSource,
    pairs: Sequence[tuple[int, int]],
    start: datetime,
    every_s: float,
    count: int,
    path: str | os.PathLike[str],
    budget: RequestBudget | None = None,
    realised: TrafficWorld | None = None,
    clock: Clock | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> RecordingSummary:
    """Ask for every pair at ``start`` and each ``every_s`` after it, ``count`` times.

    The log at ``path`` is begun or continued: what is in it is not asked again,
    so an interrupted recording goes on with the same call. A quote that fails
    becomes a line that says why; a used-up budget (``budget`` counts quotes, a
    paid source may have its own of requests) ends the recording. Times come
    from ``realised``, or from the source where it is a world; such a source is
    asked on a virtual clock, any other on the machine's. ``progress`` is told
    the askings done and their number.
    """
    schedule = _schedule(source.network, pairs, start, every_s, count)
    pairs = [(int(origin), int(destination)) for origin, destination in pairs]
    world = realised or (source if isinstance(source, TrafficWorld) else None)
    if clock is None:
        virtual = isinstance(source, TrafficWorld)
        clock = VirtualClock(schedule[0]) if virtual else LiveClock()
    description = described(source)
    known, notes = _opened(path, source.network, description)
    counts = {"quoted": 0, "failed": 0, "present": 0, "missed": 0}
    stopped = ""
    done = 0
    with open(path, "ab") as file:
        try:
            for due in schedule:
                todo = [pair for pair in pairs if (due, *pair) not in known]
                counts["present"] += len(pairs) - len(todo)
                if todo:
                    clock.sleep(max(0.0, (due - clock.now()).total_seconds()))
                for pair in todo:
                    now = clock.now()
                    if (now - due).total_seconds() >= every_s:
                        counts["missed"] += 1
                        continue
                    if budget is not None:
                        budget.spend("quote")
                    line = _asked(source, world, due, pair, now)
                    counts["failed" if line.error else "quoted"] += 1
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
            _sync(file)
    return RecordingSummary(**counts, stopped=stopped, notes=notes)


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


def _schedule(
    network: RoadNetwork,
    pairs: Sequence[tuple[int, int]],
    start: datetime,
    every_s: float,
    count: int,
) -> list[datetime]:
    require_zone(start)
    if not 0 < every_s < np.inf:
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
    # in UTC: a due time is the same moment however a later call writes its zone
    first = start.astimezone(UTC)
    return [first + timedelta(seconds=k * every_s) for k in range(count)]


def _opened(
    path: str | os.PathLike[str], network: RoadNetwork, description: Mapping[str, Any]
) -> tuple[frozenset[tuple[datetime, int, int]], tuple[str, ...]]:
    """Begin the log, or make an existing one ready to be continued."""
    check_target(path)
    target = FilePath(path)
    header = header_text(network, description).encode() + b"\n"
    begun = target.read_bytes()[: len(header)] if target.exists() else b""
    if header.startswith(begun) and begun != header:  # new, or interrupted in the header
        with open(path, "wb") as file:
            file.write(header)
            _sync(file)
        return frozenset(), ()
    log = QuoteLog.load(path, network)
    if log.source != description:
        raise InputError(
            f"{target}: recorded from another source or with other settings; name another file"
        )
    if log.whole_bytes < target.stat().st_size:
        os.truncate(path, log.whole_bytes)
    return log.keys, log.notes


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
