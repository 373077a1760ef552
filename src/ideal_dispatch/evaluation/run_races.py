"""The three issues of the paper's introduction, counted on the calls of a replay."""

import math
from datetime import datetime
from typing import Any

import numpy as np

from ideal_dispatch.evaluation.motivation import WORLDS, Example, RaceParams, Races
from ideal_dispatch.evaluation.outcomes import Outcomes
from ideal_dispatch.network import Depot, RoadNetwork
from ideal_dispatch.replay.drive import Drive, World
from ideal_dispatch.replay.log import read_log
from ideal_dispatch.replay.run import LOG
from ideal_dispatch.traffic.source import RouteQuote

_MARGIN = RaceParams().margin
_TIMES = ("duration_s", "optimistic_s", "pessimistic_s")


def races_of(outcomes: Outcomes) -> tuple[Races, tuple[int, ...]] | None:
    """The run's calls as races, and the number of each in the log.

    A call is a race where the router promises two depots within the margin of
    each other, as in :func:`race`. The log has every depot's quote and drive,
    so no traffic is needed. None where no call is a race.
    """
    found, numbers, apart = [], [], 0
    for number, entry in enumerate(read_log(outcomes.folder / LOG)):
        row = _row(entry)
        if row is None:
            apart += 1
        else:
            found.append(row)
            numbers.append(number)
    if not found:
        return None
    columns = {name: np.array([row[name] for row in found]) for name in (*_TIMES, "contends")}
    races = Races(
        node=np.array([row["node"] for row in found], np.int32),
        at=tuple(row["at"] for row in found),
        region=np.array([row["region"] for row in found], np.int32),
        quoted_s=columns["duration_s"],
        optimistic_s=columns["optimistic_s"],
        pessimistic_s=columns["pessimistic_s"],
        took_s=np.moveaxis(np.array([row["took_s"] for row in found]), 1, 0),
        contends=columns["contends"],
        apart=apart,
        ran_out=len(outcomes.manifest.get("dropped") or ()),
    )
    return races, tuple(numbers)


def example_of(
    outcomes: Outcomes, network: RoadNetwork, races: Races, numbers: tuple[int, ...], how: World
) -> Example | None:
    """The most telling call of a run; None where the promised depot never loses."""
    call = races.most_telling(how)
    if call is None:
        return None
    entry = outcomes.entries({numbers[call]})[numbers[call]]
    pair = int(races.favourite[call]), int(races.rival[call])
    stations = [entry["stations"][i] for i in pair]
    first, second = (Depot(station["depot"], station["node"]) for station in stations)
    quotes = [_quote(network, station, races.at[call]) for station in stations]
    drives = [_drive(entry["drives"][f"s{i}"][how]) for i in pair]
    return Example(
        int(races.node[call]), races.at[call], how, (first, second), (quotes[0], quotes[1]),
        (drives[0], drives[1]),
    )  # fmt: skip


def _row(entry: dict[str, Any]) -> dict[str, Any] | None:
    """One call, or None where it is no race."""
    stations, region = entry["stations"], entry["region"]
    there = [bool(s["quote"]) and f"s{i}" in entry["drives"] for i, s in enumerate(stations)]
    times = {
        name: np.array([_known(s["quote"], name) if ok else math.nan
                        for s, ok in zip(stations, there, strict=True)])
        for name in _TIMES
    }  # fmt: skip
    quoted = times["duration_s"]
    if region is None or not there[region]:
        return None
    contends = quoted <= (1 + _MARGIN) * np.nanmin(quoted)
    if contends.sum() < 2:
        return None
    goes = contends.copy()
    goes[region] = True
    took_s = [
        [math.fsum(entry["drives"][f"s{i}"][how]["seconds"]) if ok else math.nan
         for i, ok in enumerate(goes)]
        for how in WORLDS
    ]  # fmt: skip
    return {
        **{name: np.where(goes, values, np.nan) for name, values in times.items()},
        "node": entry["incident"]["node"],
        "at": datetime.fromisoformat(entry["incident"]["at"]),
        "region": region,
        "took_s": took_s,
        "contends": contends,
    }


def _known(quote: dict[str, Any], name: str) -> float:
    """A time of a quote; a range that is not known is the duration."""
    value = quote[name]
    return float(quote["duration_s"] if value is None else value)


def _quote(network: RoadNetwork, station: dict[str, Any], at: datetime) -> RouteQuote:
    said = station["quote"]
    path = network.path(said["edges"], station["node"])
    duration_s, optimistic_s, pessimistic_s = (_known(said, name) for name in _TIMES)
    # of the first segment the log keeps nothing, and nobody asks for it here
    return RouteQuote(path, duration_s, 0.0, optimistic_s, pessimistic_s, at, math.nan)


def _drive(driven: dict[str, Any]) -> Drive:
    return Drive(
        np.array(driven["edges"], np.int32),
        np.array(driven["seconds"]),
        np.array(driven["expected_s"]),
    )
