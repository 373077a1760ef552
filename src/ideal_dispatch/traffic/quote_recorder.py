"""Recording quotes: a live source asked again and again, or a recorded world in its place."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, BinaryIO, Protocol

import numpy as np

from ideal_dispatch.arrays import whole_number
from ideal_dispatch.context.context import require_zone
from ideal_dispatch.errors import IdealError, InputError
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.traffic import open_log
from ideal_dispatch.traffic.budget import BudgetError, RequestBudget
from ideal_dispatch.traffic.clocks import Clock, LiveClock, VirtualClock
from ideal_dispatch.traffic.quote_log import LogLine, requests_text
from ideal_dispatch.traffic.source import TrafficSource, TrafficWorld


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
    and asks every :data:`open_log.EVERY_S`. A quote that fails becomes a line that
    says why; a used-up budget ends the recording: ``budget`` counts quotes,
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
    open_log.begin(path, source.network, described(source), start, every_s, count, clock)
    counts = {"quoted": 0, "failed": 0, "present": 0, "missed": 0}
    stopped = failure = ""
    done = 0
    with open(path, "ab") as file:
        open_log.hold(file)
        log = open_log.continued(path, source.network, described(source))
        first, interval_s = open_log.first_and_interval(
            log, path, start, every_s, isinstance(source, TrafficWorld)
        )
        dues = open_log.schedule(first, interval_s, count)
        clock = clock or VirtualClock(dues[0])
        name = os.path.realpath(path)
        if budget is not None:
            budget.add_earlier(name, len(log.keys))
        meter = _Meter(requests, name, log.requests)
        try:
            for due in dues:
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
                    _sync(file)
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
            f"{os.fspath(path)}: its last asking was due at {dues[-1].isoformat()}; raise the "
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


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
