"""Many simulated days, packed into one recording: their demand, their checks, their processes.

Every finished day is a file in the working folder: an interrupted campaign continues where
it stopped. A day whose plan has changed is simulated again.

A simulated day is congested but not gridlocked where:

1. In every hour fewer than 1 % of the vehicles that were on the road in it
   (those departed, and those running on average) teleport.
2. The slowest hour of a weekday runs at 0.45 to 0.80 of free flow; other days
   may be quicker, no hour of any day is slower.
3. At least 97 % of the vehicles that departed arrive within an hour after
   their period.
4. At the end of no hour more than 10 % of its trips wait to enter the network.

The four limits were given before the first run. What the first is a share of
was settled after two-hour trial runs, before any planned day.
"""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from datetime import date, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from ideal_dispatch.archive import ArchiveKind
from ideal_dispatch.context import Calendar
from ideal_dispatch.errors import FileFormatError, IdealError, InputError
from ideal_dispatch.files import write_file
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.traffic.recording import RecordedTraffic, Stretch, counted_by, encode
from ideal_dispatch.traffic.sumo.day import OPTIONS, HourCount, simulate_day
from ideal_dispatch.traffic.sumo.network import roads_checksum, sumo_version
from ideal_dispatch.traffic.sumo.plan import DayPlan

DAY = ArchiveKind(
    "ideal-dispatch simulated-day", 2, "simulated day", "delete it to simulate the day again"
)

VERSION = 3
"""To be raised when a change of the code, or of a constant, changes what a day is."""

MOST_TELEPORTED = 0.01
SLOWEST, QUICKEST_PEAK = 0.45, 0.80
MOST_UNFINISHED = 0.03
MOST_WAITING = 0.10

_FACTORS = tuple(0.25 * 2 ** (step / 5) for step in range(16))  # up to 2, 15 % apart
_HOUR = (17, 18)
_DRY = ((20.0, 0.0, 70.0, 10.0, 1012.0),) * 25

Report = Callable[[DayPlan, float], None]
"""Called after every day with its plan and the CPU seconds it took, 0 where it was there."""


class InterruptedDayError(IdealError):
    """A simulating process ended before its day."""


def simulate(
    network: RoadNetwork,
    calendar: Calendar,
    plans: Sequence[DayPlan],
    folder: str | os.PathLike[str],
    *,
    bin_s: int = 60,
    workers: int | None = None,
    report: Report = lambda plan, cpu_s: None,
) -> RecordedTraffic:
    """Simulate what is not yet in ``folder``, then read all days from it."""
    if not plans:
        raise InputError("no day to simulate: give at least one plan")
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    days = {place / f"{plan.date.isoformat()}.day": plan for plan in plans}
    if len(days) < len(plans):
        raise InputError("two plans are of the same date; a day is simulated once")
    common = {"network": network.checksum, "bin_s": bin_s, "engine": engine_of(network)}
    missing: dict[Path, dict[str, Any]] = {}
    for file, plan in days.items():
        made_of = json.loads(json.dumps(common | {"plan": plan.to_json()}))
        if _is_done(file, made_of):
            report(plan, 0.0)
        else:
            missing[file] = made_of
    if missing:
        context = get_context("spawn")
        with ProcessPoolExecutor(workers or os.cpu_count(), mp_context=context) as pool:
            running = {
                pool.submit(_simulate_one, network, days[file], file, made_of): days[file]
                for file, made_of in missing.items()
            }
            try:
                for done in as_completed(running):
                    report(running[done], done.result())
            except BrokenProcessPool:
                raise InterruptedDayError(
                    f"{place}: a process that simulated a day was killed, perhaps because memory "
                    "ran out; the same command continues, with fewer workers if needed"
                ) from None
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
    return _pack(network, calendar, days, bin_s)


def _simulate_one(
    network: RoadNetwork, plan: DayPlan, file: Path, made_of: dict[str, Any]
) -> float:
    day = simulate_day(network, plan, workdir=file.parent, bin_s=made_of["bin_s"])
    manifest = made_of | {
        "hours": [asdict(hour) | {"start": hour.start.isoformat()} for hour in day.hours],
        "unfinished": day.unfinished,
        "cpu_s": round(day.cpu_s, 1),
    }
    parts = np.split(encode(day.times_s, network), np.cumsum(day.bins)[:-1])
    DAY.write(file, manifest, {f"codes_{number}": codes for number, codes in enumerate(parts)})
    return day.cpu_s


def _is_done(file: Path, made_of: dict[str, Any]) -> bool:
    if not file.exists():
        return False
    try:
        manifest, _ = DAY.read(file)
    except FileFormatError:
        return False  # cut short by an interruption
    return {name: manifest.get(name) for name in made_of} == made_of


def engine_of(network: RoadNetwork) -> dict[str, str]:
    """What else the days depend on: a day of another engine is simulated again."""
    return {"version": str(VERSION), "sumo": sumo_version(), "roads": roads_checksum(network)}


def _pack(
    network: RoadNetwork, calendar: Calendar, days: dict[Path, DayPlan], bin_s: int
) -> RecordedTraffic:
    stretches, versions = [], set()
    for file, plan in sorted(days.items(), key=lambda pair: pair[1].date):
        manifest, arrays = DAY.read(file)
        versions.add(manifest["engine"]["sumo"])
        notes = {
            "kind": plan.kind,
            "demand_factor": plan.demand_factor,
            "closures": manifest["plan"]["closures"],
            "seed": plan.seed,
            "hours": manifest["hours"],
            "unfinished": manifest["unfinished"],
        }
        for number, (first, last) in enumerate(plan.hours):
            weather = np.array(plan.weather[first : last + 1])  # known when each hour begins
            start = plan.moment(first * 3600)
            codes = arrays[f"codes_{number}"]
            truth = counted_by("entry", codes, network, bin_s)
            stretches.append(Stretch(start, codes, weather, notes, truth))
    provenance = {
        "engine": "sumo",
        "version": ", ".join(sorted(versions)),
        "sumo_options": " ".join(OPTIONS),
        "days": len(days),
    }
    return RecordedTraffic(network, calendar, bin_s, tuple(stretches), provenance)


def capacity(network: RoadNetwork, workdir: Path) -> float:
    """The greatest demand factor, from 0.25 to 2, at which an evening hour flows.

    It flows where it keeps the rules of an hour, and is not gridlocked
    (:func:`~ideal_dispatch.traffic.sumo.campaign.hour_breaks`). The hour is of a dry
    weekday without closures. Demand grows from trial to trial, and the first jam ends them:
    a jam takes long to simulate. Streets that always jam get the least. Same network, demand
    and SUMO, same answer; ``workdir`` keeps it.
    """
    workdir.mkdir(parents=True, exist_ok=True)
    made_of = repr(sorted(engine_of(network).items())).encode()
    known = workdir / f"{hashlib.blake2b(made_of, digest_size=16).hexdigest()}.capacity"
    if known.exists():
        return float(known.read_text())
    found = _FACTORS[0]
    for factor in _FACTORS:
        plan = DayPlan(date(2025, 1, 7), "weekday", "UTC", (_HOUR,), factor, _DRY)
        if any(map(hour_breaks, simulate_day(network, plan, workdir=workdir).hours)):
            break
        found = factor
    write_file(known, f"{found!r}\n")
    return found


def broken_rules(recording: RecordedTraffic) -> list[str]:
    """Why days of a recording break the rule, a line each; days of other engines keep it."""
    reasons = []
    for stretches in recording.days:
        first = recording.stretches[stretches[0]]
        if "hours" in first.notes:
            hours = [
                HourCount(**{**row, "start": datetime.fromisoformat(row["start"])})
                for row in first.notes["hours"]
            ]
            day = recording.calendar.local(first.start).date()
            reasons += broken_by_day(day, first.notes["kind"], hours, first.notes["unfinished"])
    return reasons


def broken_by_day(day: date, kind: str, hours: Sequence[HourCount], unfinished: float) -> list[str]:
    """Why one day breaks the rule, a line each."""
    reasons = [
        f"{day} {hour.start:%H:%M}: {reason}" for hour in hours for reason in hour_breaks(hour)
    ]
    slowest = min(hour.relative_speed for hour in hours)
    if kind == "weekday" and slowest > QUICKEST_PEAK:
        reasons.append(f"{day}: a weekday at {slowest:.2f} of free flow in its peak")
    if unfinished > MOST_UNFINISHED:
        reasons.append(f"{day}: {unfinished:.1%} of the vehicles did not arrive")
    return reasons


def hour_breaks(hour: HourCount) -> list[str]:
    """Why one hour breaks the rule, a line each: it is gridlocked, or nearly."""
    reasons = []
    on_road = hour.departed + hour.running
    if hour.teleported >= MOST_TELEPORTED * max(on_road, 1.0):
        reasons.append(f"{hour.teleported} of {on_road:.0f} vehicles teleported")
    if not hour.relative_speed >= SLOWEST:
        reasons.append(f"speed is {hour.relative_speed:.2f} of free flow")
    if hour.waiting > MOST_WAITING * max(hour.wanted, 1):
        reasons.append(f"{hour.waiting} of {hour.wanted} trips wait to enter")
    return reasons
