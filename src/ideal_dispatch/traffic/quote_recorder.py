"""Recording quotes: a source is asked for the same trips again and again, on a schedule."""

import fcntl
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, BinaryIO, Protocol

from ideal_dispatch.arrays import whole_number
from ideal_dispatch.context.context import require_zone
from ideal_dispatch.context.weather import utc_now
from ideal_dispatch.errors import IdealError, InputError, PluginError
from ideal_dispatch.files import check_target, write_file
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.outside_service import BudgetError, RequestBudget
from ideal_dispatch.ranges import POSITIVE
from ideal_dispatch.traffic.quote_log import KIND, LogLine, QuoteLog, row_text
from ideal_dispatch.traffic.source import TellsTruth, TrafficSource

EVERY_S = 300.0
"""Seconds between the rounds of a log that is told no interval."""
_SAME_S = 1e-3


class NetworkSource(TrafficSource, Protocol):
    """A source of quotes that says which network they are on."""

    network: RoadNetwork


class Clock:
    """The machine's clock."""

    def now(self) -> datetime:
        return utc_now()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Schedule:
    """Rounds of asking: ``count`` of them, at ``start`` and each ``every_s`` after it.

    What is None is as the log has it. A new log begins now and asks every :data:`EVERY_S`.
    """

    count: int
    start: datetime | None = None
    every_s: float | None = None

    def __post_init__(self) -> None:
        if whole_number(self.count, "count") < 1:
            raise InputError(f"{self.count} rounds: at least one is needed")
        if self.start is not None:
            require_zone(self.start)
        if self.every_s is not None:
            POSITIVE.check(self.every_s, "every_s")


@dataclass(slots=True)
class RecordingSummary:
    """What a recording did.

    ``present`` quotes were in the file before. ``missed`` were due more than an
    interval ago and can no longer be asked for. ``stopped`` says why the
    recording ended early, or is empty; the same call continues later.
    ``failure`` is the reason of the first quote that failed.
    """

    quoted: int = 0
    failed: int = 0
    present: int = 0
    missed: int = 0
    stopped: str = ""
    notes: tuple[str, ...] = ()
    failure: str = ""


def record_quotes(
    source: NetworkSource,
    pairs: Sequence[tuple[int, int]],
    path: str | os.PathLike[str],
    schedule: Schedule,
    *,
    truth: TellsTruth | None = None,
    budget: RequestBudget | None = None,
    clock: Clock | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> RecordingSummary:
    """Ask for every pair in every round, and log what came of it.

    The log at ``path`` is begun or continued. What is in it is not asked again,
    so the same call continues an interrupted recording. Another start or
    interval than the log's is refused, but recorded traffic may begin anew after
    everything that is in the log.

    A quote that fails becomes a line that says why. A used-up budget ends the
    recording: ``budget`` counts quotes, the source's own counts requests and is
    kept in the log. Both count all that was ever asked for their logs.

    Realised times come from ``truth``, or from the source if it knows them; such
    a source is asked about the moments of the schedule, any other when they come.
    ``progress`` is told the number of quotes done and of all.
    """
    network = source.network
    pairs = _checked_pairs(network, pairs)
    replayed = isinstance(source, TellsTruth)
    truth = truth or (source if isinstance(source, TellsTruth) else None)
    clock = clock or (None if replayed else Clock())
    description, where = described(source), os.fspath(path)
    _begin(where, network, description, schedule, clock)
    quotes = budget or RequestBudget()
    paid = getattr(source, "budget", None)
    sent = paid if isinstance(paid, RequestBudget) else RequestBudget()
    with open(where, "ab") as file:
        log = _continued(file, where, network, description)
        first, interval_s = _first_and_interval(log, where, schedule, replayed)
        dues = _dues(first, interval_s, schedule.count)
        quotes.resume(os.path.realpath(where), len(log.keys))
        sent.resume(os.path.realpath(where), log.requests)
        done, counted = RecordingSummary(notes=log.notes), sent.spent
        try:
            for number, due in enumerate(dues, 1):
                todo = [pair for pair in pairs if (due, *pair) not in log.keys]
                done.present += len(pairs) - len(todo)
                if todo and clock is not None:
                    clock.sleep(max(0.0, (due - clock.now()).total_seconds()))
                for pair in todo:
                    now = due if clock is None else clock.now()
                    if (now - due).total_seconds() >= interval_s:
                        done.missed += 1
                        continue
                    quotes.spend("quote")
                    line = _asked(source, truth, due, pair, now)
                    line, counted = replace(line, requests=sent.spent - counted), sent.spent
                    done.quoted += not line.error
                    done.failed += bool(line.error)
                    done.failure = done.failure or line.error
                    file.write(line.text().encode() + b"\n")
                    file.flush()
                if todo:
                    _sync(file)
                if progress is not None:
                    progress(number * len(pairs), len(dues) * len(pairs))
        except BudgetError as error:
            done.stopped = str(error)
        finally:
            if sent.spent > counted:  # of a quote that was broken off
                file.write(row_text({"requests": sent.spent - counted}).encode() + b"\n")
            _sync(file)
    if done.missed and not done.quoted + done.failed:
        done.stopped = done.stopped or (
            f"{where}: its last quote was due at {dues[-1].isoformat()}; raise the "
            "count to go on, or name another file"
        )
    return done


def described(source: object) -> Mapping[str, Any]:
    """What a source says about itself, as plain JSON."""
    describe = getattr(source, "describe", None)
    said = describe() if callable(describe) else {"engine": type(source).__name__}
    plain: dict[str, Any] = json.loads(json.dumps(said, allow_nan=False))
    return plain


def path_time_s(truth: TellsTruth, path: Path, at: datetime) -> float:
    """Seconds that the path took, edge by edge, for a vehicle that set out at ``at``."""
    elapsed_s = 0.0
    for edge in path.edges.tolist():
        elapsed_s += truth.realised(edge, at + timedelta(seconds=elapsed_s))
    return elapsed_s


def _asked(
    source: NetworkSource,
    truth: TellsTruth | None,
    due: datetime,
    pair: tuple[int, int],
    now: datetime,
) -> LogLine:
    try:
        quote = source.quote(*pair, now)
    except (BudgetError, PluginError):
        raise
    except IdealError as error:
        return LogLine(due, *pair, now, {}, (), error=str(error) or type(error).__name__)
    line = LogLine.of(due, quote)
    if truth is None:
        return line
    try:
        return replace(line, realised_s=path_time_s(truth, quote.path, quote.asked_at))
    except IdealError as error:  # such as a recording that ends on the way
        return replace(line, realised_error=str(error))


# --- the file and its schedule -------------------------------------------------------


def _begin(
    where: str,
    network: RoadNetwork,
    description: Mapping[str, Any],
    schedule: Schedule,
    clock: Clock | None,
) -> None:
    """Write the header of a new log; a log that exists stays as it is."""
    check_target(where)
    if os.path.exists(where) and os.path.getsize(where):
        return
    if schedule.start is None and clock is None:
        raise InputError("recorded traffic has no present: say when to ask first")
    first = schedule.start or (clock or Clock()).now()
    interval_s = float(schedule.every_s or EVERY_S)
    _dues(first, interval_s, schedule.count)  # before anything is written
    header = {
        "kind": KIND.format,
        "version": KIND.version,
        "network": network.checksum,
        "source": description,
        "schedule": {"start": first.astimezone(UTC).isoformat(), "every_s": interval_s},
    }
    write_file(where, row_text(header) + "\n")


def _dues(first: datetime, interval_s: float, count: int) -> list[datetime]:
    """When to ask, ``count`` times."""
    try:
        return [first + timedelta(seconds=k * interval_s) for k in range(count)]
    except OverflowError:
        raise InputError(
            f"{count} rounds every {interval_s:g} s from {first.isoformat()} on: the calendar "
            "ends before; ask more often or fewer times"
        ) from None


def _continued(
    file: BinaryIO, where: str, network: RoadNetwork, description: Mapping[str, Any]
) -> QuoteLog:
    """The log of a file, ours alone until it is closed, without a last line that was cut short."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(
            f"{where}: another process is recording there; name another file"
        ) from None
    log = QuoteLog.load(where, network)
    if log.source != description:
        raise InputError(
            f"{where}: recorded from another source or with other settings; name another file"
        )
    os.truncate(where, log.whole_bytes)
    return log


def _first_and_interval(
    log: QuoteLog, where: str, schedule: Schedule, replayed: bool
) -> tuple[datetime, float]:
    """When to ask first and the interval: as told, or as the log was begun.

    Recorded traffic has gaps in its time. Its schedule may begin anew after
    everything that is in the log, or where it began anew before.
    """
    assert log.start is not None
    first, interval_s = schedule.start or log.start, schedule.every_s or log.every_s
    if interval_s != log.every_s:
        raise InputError(
            f"{where}: asks every {log.every_s:g} s, not every {interval_s:g} s; "
            "leave the interval out, or name another file"
        )
    rounds = (first - log.start).total_seconds() / interval_s
    dues = {due for due, *_ in log.keys}
    anew = replayed and dues and (first in dues or first > max(dues))
    if not anew and abs(rounds - round(rounds)) * interval_s > _SAME_S:
        raise InputError(
            f"{where}: asks every {interval_s:g} s from {log.start.isoformat()} on, "
            f"never at {first.isoformat()}; leave the start out, or name another file"
        )
    # in UTC: a due time is the same moment however a later call writes its zone
    return first.astimezone(UTC), interval_s


def _checked_pairs(network: RoadNetwork, pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    for number, pair in enumerate(pairs):
        for node in pair:
            if not 0 <= whole_number(node, f"pair {number}: node") < network.num_nodes:
                raise InputError(
                    f"pair {number}: {node} is not a node (0 … {network.num_nodes - 1})"
                )
    distinct = dict.fromkeys((int(origin), int(destination)) for origin, destination in pairs)
    if not distinct:
        raise InputError("no trip to ask for: at least one pair of nodes is needed")
    if len(distinct) < len(pairs):
        raise InputError("a pair is given twice; name each once")
    return list(distinct)


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
