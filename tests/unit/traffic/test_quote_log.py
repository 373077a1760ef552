import fcntl
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.outside_service import RequestBudget
from ideal_dispatch.traffic.google_routes import GoogleParams
from ideal_dispatch.traffic.quote_log import QuoteLog
from ideal_dispatch.traffic.quote_recorder import (
    EVERY_S,
    Clock,
    RecordingSummary,
    Schedule,
    path_time_s,
    record_quotes,
)
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic
from ideal_dispatch.traffic.source import TIMES, RouteQuote
from tests.unit.traffic.google_stand_in import connected, error, town
from tests.unit.traffic.small import START, recording


class VirtualClock(Clock):
    """A clock that stands still until somebody waits: no time is lost."""

    def __init__(self, start: datetime) -> None:
        self._now = start

    def now(self) -> datetime:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)


PAIRS = [(0, 119), (119, 0), (5, 5)]
BEGIN = START + timedelta(days=1, minutes=30)


@pytest.fixture
def world(grid: RoadNetwork) -> ReplayedTraffic:
    return ReplayedTraffic(recording(grid))


def record(world: ReplayedTraffic, path: FilePath, count: int = 4, **options: Any) -> Any:
    return record_quotes(world, PAIRS, path, Schedule(count, BEGIN, 300.0), **options)


def test_one_process_writes_to_a_log(world: ReplayedTraffic, tmp_path: FilePath) -> None:
    path = tmp_path / "quotes.jsonl"
    record(world, path)
    before = path.read_bytes()
    with path.open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="another process is recording there"):
            record(world, path, count=8)
    assert path.read_bytes() == before
    assert record(world, path, count=5).quoted == 3


@pytest.mark.parametrize(
    ("start", "every_s"), [(BEGIN, 1e300), (datetime(9999, 12, 31, 23, 59, tzinfo=UTC), 300.0)]
)
def test_a_schedule_beyond_the_calendar_begins_no_log(
    world: ReplayedTraffic, tmp_path: FilePath, start: datetime, every_s: float
) -> None:
    with pytest.raises(InputError, match="the calendar ends before; ask more often or fewer"):
        record_quotes(world, PAIRS, tmp_path / "quotes.jsonl", Schedule(4, start, every_s))
    assert not list(tmp_path.iterdir())


def test_a_recorded_world_stands_in_for_a_live_source(
    world: ReplayedTraffic, grid: RoadNetwork, tmp_path: FilePath
) -> None:
    path = tmp_path / "quotes.jsonl"
    told: list[tuple[int, int]] = []
    done = record(world, path, progress=lambda k, n: told.append((k, n)))
    assert done == RecordingSummary(12, 0, 0, 0, "", ())
    assert told == [(3, 12), (6, 12), (9, 12), (12, 12)]
    log = QuoteLog.load(path, grid)
    assert len(log) == 12
    assert log.network_checksum == grid.checksum
    for i, line in enumerate(log.lines):
        at = BEGIN + timedelta(seconds=300 * (i // 3))
        quote = world.quote(*PAIRS[i % 3], at)
        assert (line.origin, line.destination) == PAIRS[i % 3]
        assert line.asked_at == at == line.due
        assert line.edges == tuple(quote.path.edges.tolist())
        for name in TIMES:
            assert line.times[name] == getattr(quote, name)
        assert log.lines[i].realised_s == pytest.approx(path_time_s(world, quote.path, at))


def test_the_same_recording_gives_the_same_bytes(
    world: ReplayedTraffic, tmp_path: FilePath
) -> None:
    record(world, tmp_path / "a")
    record(world, tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_drive_meets_the_traffic_of_its_way(world: ReplayedTraffic) -> None:
    path = world.quote(0, 119, BEGIN).path
    moment, total = BEGIN, 0.0
    for edge in path.edges:
        seconds = world.realised(int(edge), moment)
        total, moment = total + seconds, moment + timedelta(seconds=seconds)
    assert path_time_s(world, path, BEGIN) == pytest.approx(total)


class Counted:
    """A source that is no world, and counts how often it is asked."""

    def __init__(self, world: ReplayedTraffic, fail: Callable[[int], Exception | None]) -> None:
        self.network, self._world, self._fail, self.asked = world.network, world, fail, 0

    def describe(self) -> dict[str, Any]:
        return {"engine": "counted"}

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        self.asked += 1
        failure = self._fail(self.asked)
        if failure is not None:
            raise failure
        return self._world.quote(origin, destination, at)


def test_an_interrupted_recording_goes_on(world: ReplayedTraffic, tmp_path: FilePath) -> None:
    path, whole = tmp_path / "quotes.jsonl", tmp_path / "whole.jsonl"
    calm = Counted(world, lambda n: None)
    record_quotes(
        calm, PAIRS, whole, Schedule(4, BEGIN, 300), truth=world, clock=VirtualClock(BEGIN)
    )
    hasty = Counted(world, lambda n: KeyboardInterrupt() if n == 6 else None)  # type: ignore[arg-type,return-value]
    with pytest.raises(KeyboardInterrupt):
        record_quotes(
            hasty, PAIRS, path, Schedule(4, BEGIN, 300), truth=world, clock=VirtualClock(BEGIN)
        )
    with open(path, "ab") as file:
        file.write(b'{"due":"2023-05')  # the machine stopped in the middle of a line
    assert QuoteLog.load(path).notes == (f"{path}: its last line was interrupted and is dropped",)
    again = Counted(world, lambda n: None)
    done = record_quotes(
        again, PAIRS, path, Schedule(4, BEGIN, 300), truth=world, clock=VirtualClock(BEGIN)
    )
    assert (done.quoted, done.present, again.asked) == (7, 5, 7)
    assert "interrupted and is dropped" in done.notes[0]
    assert path.read_bytes() == whole.read_bytes()
    elsewhere = BEGIN.astimezone(timezone(timedelta(hours=8)))  # the same moments
    done = record_quotes(
        again, PAIRS, path, Schedule(4, elsewhere, 300), truth=world, clock=VirtualClock(BEGIN)
    )
    assert (done.quoted, done.present) == (0, 12)
    assert path.read_bytes() == whole.read_bytes()


def test_a_log_without_a_line_is_begun_again(world: ReplayedTraffic, tmp_path: FilePath) -> None:
    path = tmp_path / "quotes.jsonl"
    record(world, tmp_path / "whole")
    whole = (tmp_path / "whole").read_bytes()
    for begun in (b"", whole[: whole.index(b"\n") + 1]):
        path.write_bytes(begun)
        assert record(world, path).quoted == 12
        assert path.read_bytes() == whole


def test_a_log_goes_on_with_the_schedule_it_began(
    world: ReplayedTraffic, tmp_path: FilePath
) -> None:
    """A live recording is begun now, and the same call half an hour later asks on."""
    path, whole = tmp_path / "q", tmp_path / "whole"
    source = Counted(world, lambda n: None)
    record_quotes(source, PAIRS, whole, Schedule(6), clock=VirtualClock(BEGIN))
    hasty = Counted(world, lambda n: KeyboardInterrupt() if n == 5 else None)  # type: ignore[arg-type,return-value]
    with pytest.raises(KeyboardInterrupt):
        record_quotes(hasty, PAIRS, path, Schedule(6), clock=VirtualClock(BEGIN))
    later = VirtualClock(BEGIN + timedelta(seconds=301))
    done = record_quotes(source, PAIRS, path, Schedule(6), clock=later)
    assert (done.quoted, done.present, done.missed) == (14, 4, 0)
    log = QuoteLog.load(path)
    assert (log.start, log.every_s) == (BEGIN, EVERY_S)
    assert log.keys == QuoteLog.load(whole).keys
    late = VirtualClock(BEGIN + timedelta(hours=1))
    done = record_quotes(source, PAIRS, path, Schedule(8), clock=late)
    assert (done.present, done.missed) == (18, 6)
    assert "its last quote was due at 2023-05-09T23:05:00+00:00; raise the count" in done.stopped
    with pytest.raises(InputError, match="asks every 300 s, not every 60 s; leave the interval"):
        record_quotes(source, PAIRS, path, Schedule(6, None, 60.0), clock=late)


def test_a_world_begins_when_it_is_told_and_goes_on_by_itself(
    world: ReplayedTraffic, tmp_path: FilePath
) -> None:
    path = tmp_path / "q"
    with pytest.raises(InputError, match="recorded traffic has no present: say when to ask first"):
        record_quotes(world, PAIRS, path, Schedule(4))
    assert not path.exists()
    record(world, path, count=2)
    assert record_quotes(world, PAIRS, path, Schedule(4)).quoted == 6
    record(world, tmp_path / "whole")
    assert path.read_bytes() == (tmp_path / "whole").read_bytes()


def test_a_failed_quote_is_a_line_of_its_own(world: ReplayedTraffic, tmp_path: FilePath) -> None:
    path = tmp_path / "quotes.jsonl"
    source = Counted(world, lambda n: InputError("no such road") if n == 2 else None)
    done = record_quotes(source, PAIRS, path, Schedule(2, BEGIN, 300), clock=VirtualClock(BEGIN))
    assert (done.quoted, done.failed) == (5, 1)
    log = QuoteLog.load(path)
    assert [(f.origin, f.destination, f.error) for f in log.failures] == [(119, 0, "no such road")]
    assert np.isnan([line.realised_s for line in log.lines]).all()  # no truth is known
    done = record_quotes(source, PAIRS, path, Schedule(2, BEGIN, 300), clock=VirtualClock(BEGIN))
    assert (done.present, source.asked) == (6, 6)  # nor is it asked again


def test_a_fault_of_ours_is_not_swallowed(world: ReplayedTraffic, tmp_path: FilePath) -> None:
    source = Counted(world, lambda n: ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        record_quotes(
            source, PAIRS, tmp_path / "q", Schedule(2, BEGIN, 300), clock=VirtualClock(BEGIN)
        )


def test_the_end_of_the_recording_on_the_way(world: ReplayedTraffic, tmp_path: FilePath) -> None:
    late = START + timedelta(days=1, minutes=119, seconds=50)
    record_quotes(world, [(0, 119)], tmp_path / "q", Schedule(2, late, 60))
    log = QuoteLog.load(tmp_path / "q")
    assert len(log) == 1
    assert np.isnan(log.lines[0].realised_s)
    assert "is not in the recording" in log.lines[0].realised_error
    assert "is not in the recording" in log.failures[0].error


def test_a_budget_is_of_the_whole_log(world: ReplayedTraffic, tmp_path: FilePath) -> None:
    path = tmp_path / "q"
    done = record(world, path, budget=RequestBudget(5))
    assert done.quoted == 5
    assert "quote: 1 more would exceed the budget of 5 requests" in done.stopped
    done = record(world, path, budget=RequestBudget(5))
    assert (done.quoted, done.present) == (0, 5)
    assert "budget of 5 requests (5 sent); raise it to go on" in done.stopped
    done = record(world, path, budget=RequestBudget(12))
    assert (done.quoted, done.present, done.stopped) == (7, 5, "")


class SlowClock(VirtualClock):
    """A clock on which every look costs some time."""

    def __init__(self, start: datetime, cost_s: float) -> None:
        super().__init__(start)
        self._cost_s = cost_s

    def now(self) -> datetime:
        self.sleep(self._cost_s)
        return super().now()


def test_overdue_quotes_are_missed_not_made_up(world: ReplayedTraffic, tmp_path: FilePath) -> None:
    path = tmp_path / "q"
    done = record(world, path, clock=SlowClock(BEGIN + timedelta(seconds=700), 1.0))
    assert (done.quoted, done.missed) == (6, 6)
    log = QuoteLog.load(path)
    assert log.lines[0].due == BEGIN + timedelta(seconds=600)
    assert log.lines[0].asked_at > log.lines[0].due  # what was asked, when it was asked


def test_a_live_service(grid: RoadNetwork, tmp_path: FilePath) -> None:
    """Google's stand-in, its own request budget and one answer that fails for good."""
    place = town(grid, first=[error(400, "INVALID_ARGUMENT", "no")])
    begin = datetime(2026, 3, 2, 8, tzinfo=UTC)
    clock, budget = VirtualClock(begin), RequestBudget(7)
    with connected(place, GoogleParams(), now=clock.now, budget=budget) as (source, _):
        done = record_quotes(source, PAIRS, tmp_path / "q", Schedule(3, None, 600), clock=clock)
    assert (done.quoted, done.failed) == (3, 1)
    assert "budget of 7 requests" in done.stopped
    log = QuoteLog.load(tmp_path / "q", grid)
    assert log.source["segment"] == "static_ratio"
    assert np.isnan([line.times["data_age_s"] for line in log.lines]).all()
    assert all(log.lines[number].times["optimistic_s"] > 0 for number in (0, 2))
    assert "refused with HTTP 400" in log.failures[0].error
    assert log.failures[0].requests == 1
    assert [line.requests for line in log.lines] == [3, 0, 3]
    assert log.requests == 7
    clock, budget = VirtualClock(begin), RequestBudget(9)
    with connected(place, GoogleParams(), now=clock.now, budget=budget) as (source, server):
        done = record_quotes(source, PAIRS, tmp_path / "q", Schedule(3), clock=clock)
        assert len(server.asked) == 2  # of nine, seven were sent before
    assert "budget of 9 requests (9 sent)" in done.stopped
    log = QuoteLog.load(tmp_path / "q")
    assert (len(log), log.requests) == (3, 9)  # two were sent for an asking cut short


def test_files_that_are_no_log_of_this_source(
    world: ReplayedTraffic, grid: RoadNetwork, tmp_path: FilePath
) -> None:
    path = tmp_path / "q"
    record(world, path)
    with pytest.raises(InputError, match="another source or with other settings; name another"):
        record_quotes(
            Counted(world, lambda n: None),
            PAIRS,
            path,
            Schedule(1, BEGIN, 300),
            clock=VirtualClock(BEGIN),
        )
    other = RoadNetwork.from_arrays([0, 1], [1, 0], [5.0, 5.0])
    with pytest.raises(FileFormatError, match="recorded on another network"):
        QuoteLog.load(path, other)
    with pytest.raises(InputError, match="no such file"):
        QuoteLog.load(tmp_path / "nothing")
    with pytest.raises(InputError, match="does not exist; create it first"):
        record(world, tmp_path / "no" / "q")
    notes = tmp_path / "notes.txt"
    for content in (b"my own notes\n", b"[]\n", b"{}\n", b"notes"):
        notes.write_bytes(content)
        with pytest.raises(FileFormatError, match="not a quote log; make one with"):
            record(world, notes)
        assert notes.read_bytes() == content  # and it is left alone


def test_damaged_logs(world: ReplayedTraffic, tmp_path: FilePath) -> None:
    path = tmp_path / "q"
    record(world, path)
    lines = path.read_text().splitlines(keepends=True)

    def damaged(number: int, text: str) -> str:
        path.write_text("".join([*lines[:number], text + "\n", *lines[number + 1 :]]))
        with pytest.raises(FileFormatError) as caught:
            QuoteLog.load(path)
        return str(caught.value).removeprefix(f"{path}")

    header = json.loads(lines[0])
    assert damaged(0, json.dumps(header | {"version": 3})) == (
        ": written in format 3, this version reads up to 2; upgrade ideal-dispatch"
    )
    assert "format 1, this version needs 2" in damaged(0, json.dumps(header | {"version": 1}))
    wrong: list[dict[str, Any]] = [
        {"network": 5}, {"schedule": {}}, {"schedule": {"start": "soon", "every_s": 1}},
        {"schedule": {"start": BEGIN.isoformat(), "every_s": 0}},
    ]  # fmt: skip
    for part in wrong:
        said = damaged(0, json.dumps(header | part))
        assert said.startswith((": line 1: the header is damaged", ": truncated or damaged quote"))
    assert damaged(2, '{"due"') == ": line 3: damaged (TypeError: no JSON object)"
    assert damaged(2, "[]") == ": line 3: damaged (TypeError: no JSON object)"
    row = json.loads(lines[2])
    assert damaged(2, "{}").startswith(": line 3: damaged (KeyError")
    assert "no zone" in damaged(2, json.dumps(row | {"due": "2023-05-09T00:00:00"}))
    assert "line 3" in damaged(2, json.dumps(row | {"edges": ["x"]}))
    assert "line 3" in damaged(2, json.dumps(row | {"origin": None}))
    assert "-1 requests" in damaged(2, json.dumps({"requests": -1}))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": BEGIN.replace(tzinfo=None)}, "no zone"),
        ({"every_s": 0.0}, "every_s 0.0: more than 0"),
        ({"every_s": np.inf}, "every_s inf: a finite number"),
        ({"count": 0}, "0 rounds: at least one is needed"),
        ({"count": 1.5}, "count 1.5 is not a whole number"),
        ({"pairs": []}, "at least one pair of nodes is needed"),
        ({"pairs": [(0, 500)]}, "pair 0: 500 is not a node"),
        ({"pairs": [(0, 1.5)]}, "pair 0: node 1.5 is not a whole number"),
        ({"pairs": [(0, 1), (0, 1)]}, "a pair is given twice"),
    ],
)
def test_requests_that_make_no_sense(
    world: ReplayedTraffic, tmp_path: FilePath, options: dict[str, Any], message: str
) -> None:
    given: dict[str, Any] = {
        "pairs": PAIRS,
        "start": BEGIN,
        "every_s": 300.0,
        "count": 2,
        **options,
    }
    pairs = given.pop("pairs")
    with pytest.raises(InputError, match=message):
        record_quotes(world, pairs, tmp_path / "q", Schedule(**given))
    assert not list(tmp_path.iterdir())


def test_pairs_from_an_array(world: ReplayedTraffic, tmp_path: FilePath) -> None:
    pairs = [tuple(row) for row in np.array(PAIRS)]
    record_quotes(world, pairs, tmp_path / "a", Schedule(4, BEGIN, 300))
    record(world, tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_another_schedule_is_refused(world: ReplayedTraffic, tmp_path: FilePath) -> None:
    path = tmp_path / "q"
    record(world, path)
    before = path.read_bytes()
    off, later = (BEGIN + timedelta(seconds=seconds) for seconds in (100, 600))
    with pytest.raises(InputError, match="asks every 300 s from .*, never at .*; leave the start"):
        record_quotes(world, PAIRS, path, Schedule(1, off, 300.0))
    with pytest.raises(InputError, match="asks every 300 s, not every 60 s; leave the interval"):
        record_quotes(world, PAIRS, path, Schedule(1, BEGIN, 60.0))
    assert path.read_bytes() == before
    assert record_quotes(world, PAIRS, path, Schedule(3, later)).quoted == 3


def test_a_world_begins_anew_in_its_next_stretch(
    world: ReplayedTraffic, tmp_path: FilePath
) -> None:
    """Stretches need not begin a whole number of intervals apart; a live log has one grid."""
    path, again = tmp_path / "q", BEGIN + timedelta(days=1, seconds=100)
    record(world, path)
    for done in ((12, 0), (0, 12)):
        summary = record_quotes(world, PAIRS, path, Schedule(4, again, 300.0))
        assert (summary.quoted, summary.present) == done
    assert record(world, path).present == 12
    live, log = Counted(world, lambda n: None), tmp_path / "live"
    record_quotes(live, PAIRS, log, Schedule(1, BEGIN, 300.0), clock=VirtualClock(BEGIN))
    with pytest.raises(InputError, match="never at"):
        record_quotes(live, PAIRS, log, Schedule(1, again, 300.0), clock=VirtualClock(again))


def test_a_budget_counts_what_it_knows_once(
    world: ReplayedTraffic, grid: RoadNetwork, tmp_path: FilePath
) -> None:
    budget = RequestBudget()
    record(world, tmp_path / "a", count=1)
    for count, spent in ((2, 6), (3, 9), (3, 9)):
        record(world, tmp_path / "a", count=count, budget=budget)
        assert budget.spent == spent
    record(world, tmp_path / "b", count=1, budget=budget)
    assert budget.spent == 12  # another log
    later = RequestBudget(14)  # of a later run, which goes on with both
    assert record(world, tmp_path / "a", count=3, budget=later).quoted == 0
    done = record(world, tmp_path / "b", count=4, budget=later)
    assert (done.quoted, later.spent) == (2, 14)
    assert "budget of 14 requests (14 sent)" in done.stopped
    begin = datetime(2026, 3, 2, 8, tzinfo=UTC)
    clock, sent = VirtualClock(begin), RequestBudget()
    with connected(town(grid), now=clock.now, budget=sent) as (source, server):
        for count in (1, 2):
            record_quotes(
                source, PAIRS[:2], tmp_path / "c", Schedule(count, begin, 600), clock=clock
            )
        assert sent.spent == len(server.asked) == QuoteLog.load(tmp_path / "c").requests == 12


@pytest.mark.parametrize("name", ["optimistic_s", "pessimistic_s", "data_age_s"])
@pytest.mark.parametrize("value", [-1.0, np.inf, -np.inf])
def test_numbers_no_quote_has(world: ReplayedTraffic, name: str, value: float) -> None:
    quote = world.quote(0, 119, BEGIN)
    changed: dict[str, Any] = {name: np.nan}
    assert np.isnan(getattr(replace(quote, **changed), name))
    changed = {name: value}
    with pytest.raises(InputError, match=f"quote: {name} is {value}; it must be finite and"):
        replace(quote, **changed)
