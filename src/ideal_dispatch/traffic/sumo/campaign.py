"""Many simulated days, in parallel processes, packed into one recording.

Every finished day is a file of its own in the working folder: an interrupted
campaign continues where it stopped. A day whose plan has changed is simulated
again.
"""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from ideal_dispatch.archive import ArchiveKind
from ideal_dispatch.context import Calendar
from ideal_dispatch.errors import FileFormatError, IdealError, InputError
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.traffic.recording import RATIOS, RecordedTraffic, Stretch, counted_by, encode
from ideal_dispatch.traffic.sumo import demand, output, scenario_files, simulation
from ideal_dispatch.traffic.sumo.day_plan import DayPlan
from ideal_dispatch.traffic.sumo.engine import sumo_version
from ideal_dispatch.traffic.sumo.network_export import roads_checksum

DAY = ArchiveKind(
    "ideal-dispatch simulated-day", 2, "simulated day", "delete it to simulate the day again"
)

_CODE = 1
"""To be raised when a change of the code, not of a constant, changes what a day is."""

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
    day = simulation.simulate_day(network, plan, workdir=file.parent, bin_s=made_of["bin_s"])
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
    digest = hashlib.blake2b(f"{_CODE} {RATIOS.tolist()}".encode(), digest_size=8)
    for module in (demand, output, scenario_files, simulation):
        constants = {name: value for name, value in vars(module).items() if name.isupper()}
        digest.update(repr(sorted(constants.items())).encode())
    return {
        "sumo": sumo_version(),
        "roads": roads_checksum(network),
        "constants": digest.hexdigest(),
    }


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
        "sumo_options": " ".join(simulation.OPTIONS),
        "days": len(days),
    }
    return RecordedTraffic(network, calendar, bin_s, tuple(stretches), provenance)
