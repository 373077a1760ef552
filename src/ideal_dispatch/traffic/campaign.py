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
from typing import TYPE_CHECKING, Any

import numpy as np

from ideal_dispatch.archive import ArchiveKind
from ideal_dispatch.context import Calendar
from ideal_dispatch.errors import FileFormatError, IdealError, InputError
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.traffic.recording import RATIOS, RecordedTraffic, Stretch, by_entry, encode

if TYPE_CHECKING:
    from ideal_dispatch.traffic.sumo.day_plan import DayPlan

_KIND = ArchiveKind("simulated-day", 2, "delete it to simulate the day again")

_CODE = 1
"""To be raised when a change of the code, not of a constant, changes what a day is."""

Report = Callable[["DayPlan", float], None]
"""Called after every day with its plan and the CPU seconds it took, 0 where it was there."""


class InterruptedDayError(IdealError):
    """A simulating process ended before its day."""


def simulate(
    network: RoadNetwork,
    calendar: Calendar,
    plans: Sequence["DayPlan"],
    folder: str | os.PathLike[str],
    *,
    bin_s: int = 60,
    workers: int | None = None,
    report: Report | None = None,
) -> RecordedTraffic:
    """Simulate what is not yet in ``folder``, then read all days from it."""
    if not plans:
        raise InputError("no day to simulate: give at least one plan")
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    files = [place / f"{plan.date.isoformat()}.day" for plan in plans]
    if len(set(files)) < len(files):
        raise InputError("two plans are of the same date; a day is simulated once")
    missing, engine = [], _engine(network)
    for plan, file in zip(plans, files, strict=True):
        if _is_done(file, network, plan, bin_s, engine):
            if report is not None:
                report(plan, 0.0)
        else:
            missing.append((plan, file))
    if missing:
        context = get_context("spawn")
        with ProcessPoolExecutor(workers or os.cpu_count(), mp_context=context) as pool:
            running = {
                pool.submit(_simulate_one, network, plan, file, place, bin_s): plan
                for plan, file in missing
            }
            try:
                for done in as_completed(running):
                    cpu_s = done.result()
                    if report is not None:
                        report(running[done], cpu_s)
            except BrokenProcessPool:
                raise InterruptedDayError(
                    f"{place}: a process that simulated a day was killed, perhaps because memory "
                    "ran out; the same command continues, with fewer workers if needed"
                ) from None
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
    return _pack(network, calendar, plans, files, bin_s)


def _simulate_one(
    network: RoadNetwork, plan: "DayPlan", file: Path, folder: Path, bin_s: int
) -> float:
    from ideal_dispatch.traffic.sumo.simulation import simulate_day

    day = simulate_day(network, plan, workdir=folder, bin_s=bin_s)
    manifest = {
        "network": network.checksum,
        "plan": plan.to_json(),
        "bin_s": bin_s,
        "hours": [asdict(hour) | {"start": hour.start.isoformat()} for hour in day.hours],
        "unfinished": day.unfinished,
        "sumo": day.version,
        "commands": day.commands,
        "cpu_s": round(day.cpu_s, 1),
        "engine": _engine(network),
    }
    parts = np.split(encode(day.times_s, network), np.cumsum(day.bins)[:-1])
    _KIND.write(file, manifest, {f"codes_{number}": codes for number, codes in enumerate(parts)})
    return day.cpu_s


def processor_hours(folder: str | os.PathLike[str]) -> tuple[int, float]:
    """How many simulated days of a folder say what they took, and how many hours in all."""
    took = [_KIND.read(file)[0].get("cpu_s") for file in sorted(Path(folder).glob("*.day"))]
    known = [seconds for seconds in took if seconds is not None]
    return len(known), sum(known) / 3600.0


def _is_done(
    file: Path, network: RoadNetwork, plan: "DayPlan", bin_s: int, engine: dict[str, str]
) -> bool:
    if not file.exists():
        return False
    try:
        manifest, _ = _KIND.read(file)
    except FileFormatError:
        return False  # cut short by an interruption
    made_of = {name: manifest.get(name) for name in ("network", "plan", "bin_s", "engine")}
    wanted = {"network": network.checksum, "plan": plan.to_json(), "bin_s": bin_s}
    return bool(made_of == _plain(wanted | {"engine": engine}))


def _engine(network: RoadNetwork) -> dict[str, str]:
    """What else the days depend on: a day of another engine is simulated again."""
    from ideal_dispatch.traffic.sumo import demand, output, scenario_files, simulation
    from ideal_dispatch.traffic.sumo.engine import sumo_version
    from ideal_dispatch.traffic.sumo.network_export import roads_checksum

    digest = hashlib.blake2b(f"{_CODE} {RATIOS.tolist()}".encode(), digest_size=8)
    for module in (demand, output, scenario_files, simulation):
        constants = {name: value for name, value in vars(module).items() if name.isupper()}
        digest.update(repr(sorted(constants.items())).encode())
    return {
        "sumo": sumo_version(),
        "roads": roads_checksum(network),
        "constants": digest.hexdigest(),
    }


def _plain(value: Any) -> Any:
    """The value as JSON gives it back."""
    return json.loads(json.dumps(value))


def _pack(
    network: RoadNetwork,
    calendar: Calendar,
    plans: Sequence["DayPlan"],
    files: Sequence[Path],
    bin_s: int,
) -> RecordedTraffic:
    from ideal_dispatch.traffic.sumo.simulation import OPTIONS

    stretches, versions = [], set()
    for plan, file in sorted(zip(plans, files, strict=True), key=lambda pair: pair[0].date):
        manifest, arrays = _KIND.read(file)
        versions.add(manifest["sumo"])
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
            truth = by_entry(codes, network, bin_s)
            stretches.append(Stretch(start, codes, weather, notes, truth))
    provenance = {
        "engine": "sumo",
        "version": ", ".join(sorted(versions)),
        "sumo_options": " ".join(OPTIONS),
        "days": len(plans),
    }
    return RecordedTraffic(network, calendar, bin_s, tuple(stretches), provenance)
