"""A fleet from a model folder of JEMSS, such as ``auckland/models/1``.

JEMSS measures time in days. Its rasters of where people live are not in its folders: calls
fall on road nodes instead, where junctions are dense.
"""

import csv
import io
import lzma
import math
import os
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ideal_dispatch.arrays import BoolArray, FloatArray, IntArray, first_where
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.files import check_source
from ideal_dispatch.fleet.calls import DAY_S
from ideal_dispatch.fleet.city import Duration, FleetCity, Priority, Work
from ideal_dispatch.fleet.inputs.jemss_files import (
    Distribution,
    JemssTable,
    call_distributions,
    read_distribution,
    read_shares,
    read_tables,
    tables_of,
)
from ideal_dispatch.fleet.inputs.places import BY_JUNCTIONS, Places, cells_by_junctions, snapped
from ideal_dispatch.fleet.travel import connected_nodes
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.geodesy import great_circle_m
from ideal_dispatch.toml_tables import complaints_about

_MOST_BYTES = 1 << 30  # of the unpacked roads: those of Auckland have 10 MB
_DAMAGED = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, KeyError,
    UnicodeDecodeError, csv.Error, RuntimeError,
)  # fmt: skip
"""What reading a zip raises; RuntimeError of one that is encrypted or packed in an unknown way."""

_GENERATOR = "gen_config.xml"
_GENERATORS = ("calls/single/train", "calls/reps/train")
_NOTES = (
    BY_JUNCTIONS,
    "dispatchDelay of JEMSS ends when a unit is sent; crews then need a turnout, which JEMSS "
    "leaves out: turnout and the spread of drives are those of `ResponseModel.published`",
    "calls are a Poisson process, spread evenly over the day as in JEMSS; every call waits for the "
    "mean dispatchDelay",
)


def read_jemss(
    folder: str | os.PathLike[str], *, cells: int = 500, redispatch: str = "redispatch_off.csv"
) -> FleetCity:
    """The city of a model folder; ``cells`` is about how many places calls come from.

    ``redispatch`` names a file of its folder ``misc/redispatch``: which units under way may
    be sent to a more urgent call.
    """
    base = Path(folder)
    if not base.is_dir():
        raise InputError(f"{base}: no such folder; give a model folder such as auckland/models/1")
    if Path(redispatch).name != redispatch or redispatch in ("", ".."):
        raise InputError(
            f"redispatch {redispatch!r}: the plain name of a file in misc/redispatch is needed"
        )
    levels = read_tables(base / "misc" / "call priorities" / "priorities_1.csv", "priorities")
    names = levels["priorities"].texts("name")
    generator, per_day, shares, work = _calls(base, len(names))
    priorities = _priorities(base, levels["priorities"], shares)
    stations = read_tables(base / "stations" / "stations_1.csv", "stations")["stations"]
    ambulances = read_tables(base / "ambulances" / "ambulances_1.csv", "ambulances")["ambulances"]
    hospitals = read_tables(base / "hospitals" / "hospitals_1.csv", "hospitals")["hospitals"]
    used, units = np.unique(ambulances.indices("stationIndex", len(stations)), return_inverse=True)
    allowed = _redispatch(base / "misc" / "redispatch" / redispatch, names, priorities)

    network, fast_s, slow_s, accessible = _roads(base / "travel" / "roads")
    usable = np.intersect1d(connected_nodes(network), accessible).astype(np.int32)
    if not usable.size:
        raise FileFormatError(f"{base}: no connected node of the roads has offRoadAccess")
    nodes = _snapped(network, usable, stations)[used], _snapped(network, usable, hospitals)
    cell_nodes, weights = cells_by_junctions(network, usable, cells)
    places = Places.on_roads(network, (*nodes, cell_nodes), fast_s, slow_s)
    left_out = len(stations) - len(used)
    notes = [*_NOTES, f"calls as in {generator}, redispatch as in {redispatch}"]
    if left_out:
        notes.append(f"stations without an ambulance are left out: {left_out}")
    labels = stations.columns.get("NAME") or stations.columns.get("name") or ("",) * len(stations)
    return FleetCity(
        _name(base),
        places.travel, tuple(labels[i] or f"station {i + 1}" for i in used), places.stations,
        units.astype(np.int32), places.hospitals, places.cells, weights, per_day, priorities,
        redispatch=allowed, work=work, notes=tuple(notes),
    )  # fmt: skip


def _name(base: Path) -> str:
    """The city of CITY/models/1, from whichever folder that is named."""
    parts = Path(os.path.abspath(base)).parts
    return parts[-3].title() if parts[-2:-1] == ("models",) else parts[-1]


_ZERO = Distribution("Dirac", (0.0,))


@dataclass(frozen=True, slots=True)
class JemssDuration(Duration):
    """How long a part of the work takes, by a distribution of its seconds."""

    seconds: Distribution = _ZERO

    def drawn(self, rng: np.random.Generator, count: int) -> FloatArray:
        """So many times; one draw of ``rng`` each."""
        from scipy.special import ndtr

        return self.seconds.quantile(np.asarray(ndtr(rng.standard_normal(count))))


def _duration(days: Distribution) -> Duration:
    """A part of the work that takes so many days: times below zero are left out."""
    seconds = days.scaled(DAY_S).truncated(0.0)
    mean_s = seconds.mean
    if seconds.kind == "Dirac":
        return Duration(mean_s, "fixed")
    if (
        seconds.kind == "Exponential"
        and days.offset == 0.0
        and days.low <= 0.0 < math.inf == days.high
    ):
        return Duration(mean_s)
    return JemssDuration(mean_s, seconds=seconds)


def _calls(base: Path, levels: int) -> tuple[str, float, tuple[float, ...], Work]:
    """Of the generator of calls its folder, calls a day, shares of priorities, and the work."""
    folder = next((one for one in _GENERATORS if (base / one / _GENERATOR).is_file()), None)
    if folder is None:
        raise InputError(f"{base}: no {_GENERATOR} in {' or '.join(_GENERATORS)}")
    file = base / folder / _GENERATOR
    texts = call_distributions(file)
    for name in ("interarrivalTime", "priority", "dispatchDelay", "onSceneDuration", "transport",
                 "handoverDuration"):  # fmt: skip
        if name not in texts:
            raise FileFormatError(f"{file}: {name} is missing in callDistributions")

    def days(name: str) -> Distribution:
        return read_distribution(texts[name], f"{file}, {name}")

    between = days("interarrivalTime").mean
    if not between > 0.0:
        raise FileFormatError(f"{file}: interarrivalTime {between:g}; above zero is needed")
    shares = read_shares(texts["priority"], f"{file}, priority", "Categorical")
    if len(shares) != levels:
        raise FileFormatError(f"{file}: priority has {len(shares)} shares for {levels} priorities")
    transported = read_shares(texts["transport"], f"{file}, transport", "Bernoulli") or (0.5,)
    parts = {}
    for name in ("dispatchDelay", "onSceneDuration", "handoverDuration"):
        with complaints_about(f"{file}, {name}"):
            parts[name] = _duration(days(name))
    delay, scene, handover = parts.values()
    with complaints_about(f"{file}, transport"):
        work = Work(delay.mean_s, scene, transported[0], handover)
    return folder, 1.0 / between, shares, work


def _priorities(base: Path, levels: JemssTable, shares: tuple[float, ...]) -> tuple[Priority, ...]:
    """The priorities that occur, and whether units drive with lights: by travel mode 1."""
    travel = read_tables(base / "travel" / "travel" / "travel_1.csv", "travelSets")["travelSets"]
    modes = travel.numbers("travelModeIndex")
    mode = dict(zip(reversed(travel.texts("priority")), modes[::-1], strict=True))  # the first set
    late_s = levels.numbers("targetResponseTime") * DAY_S
    found = []
    for name, share, late in zip(levels.texts("name"), shares, late_s, strict=True):
        if name not in mode:
            raise FileFormatError(f"{travel.where}: no travel mode for priority {name}")
        if share > 0.0:
            with complaints_about(f"{levels.where}: {name}"):
                found.append(Priority(name, share, bool(mode[name] == 1), round(float(late), 1)))
    return tuple(found)


def _redispatch(path: Path, names: tuple[str, ...], priorities: tuple[Priority, ...]) -> BoolArray:
    """Which priority a unit may leave for which; rows of priorities that never occur drop out."""
    tables = read_tables(path, "miscData", "redispatchConditions")
    table = tables["redispatchConditions"]
    allowed = np.zeros((len(priorities), len(priorities)), bool)
    row_of = {one.name: row for row, one in enumerate(priorities)}
    if not tables["miscData"].numbers("allowRedispatch").any():
        return allowed
    columns = table.texts("fromCallPriority"), table.texts("toCallPriority")
    for one, other, yes in zip(*columns, table.numbers("allowRedispatch"), strict=True):
        for name in (one, other):
            if name not in names:
                raise FileFormatError(f"{table.where}: {name} is no priority; {', '.join(names)}")
        if one in row_of and other in row_of:
            allowed[row_of[one], row_of[other]] = bool(yes)
    return allowed


def _roads(folder: Path) -> tuple[RoadNetwork, FloatArray, FloatArray, IntArray]:
    """The roads, seconds of every edge with lights and without, and nodes calls may be at."""
    nodes, arcs, misc = _road_tables(folder)
    lon, lat = nodes.numbers("x"), nodes.numbers("y")
    if not np.array_equal(nodes.numbers("index"), np.arange(1, len(nodes) + 1)):
        raise FileFormatError(f"{nodes.where}: index must count from 1 to {len(nodes)}")
    tail, head = (arcs.indices(name, len(nodes)) for name in ("fromNode", "toNode"))
    fast = arcs.numbers("mode_1")
    slow = arcs.numbers("mode_2") if "mode_2" in arcs.columns else fast
    bad = first_where((fast < 0.0) | (slow < 0.0))
    if bad is not None:
        raise FileFormatError(f"{arcs.where}, row {bad + 1}: a travel time is negative")
    if misc.texts("arcForm")[:1] == ("undirected",):
        tail, head = np.r_[tail, head], np.r_[head, tail]
        fast, slow = np.tile(fast, 2), np.tile(slow, 2)
    away_m = np.maximum(great_circle_m(lon[tail], lat[tail], lon[head], lat[head]), 1.0)
    network = RoadNetwork.from_arrays(tail, head, away_m, lon, lat)
    access = (
        nodes.numbers("offRoadAccess") if "offRoadAccess" in nodes.columns else np.ones(len(nodes))
    )
    return network, fast * DAY_S, slow * DAY_S, np.flatnonzero(access).astype(np.int32)


def _road_tables(folder: Path) -> tuple[JemssTable, JemssTable, JemssTable]:
    """The tables nodes, arcs and miscData of ``roads.zip``."""
    file = folder / "roads.zip"
    check_source(file)
    tables: dict[str, JemssTable] = {}
    try:
        with zipfile.ZipFile(file) as archive:
            for name, needed in (("nodes.csv", ("nodes",)), ("arcs.csv", ("arcs", "miscData"))):
                size = archive.getinfo(name).file_size  # no more than this is ever unpacked
                if size > _MOST_BYTES:
                    raise FileFormatError(
                        f"{file}: {name} is {size / 2**30:.1f} GiB unpacked; at most 1 is read"
                    )
                with archive.open(name) as part:
                    lines = io.TextIOWrapper(part, "utf-8-sig", newline="")
                    tables |= tables_of(lines, f"{file}, {name}", *needed)
    except _DAMAGED as error:
        raise FileFormatError(
            f"{file}: not an archive with nodes.csv and arcs.csv: {error}"
        ) from None
    return tables["nodes"], tables["arcs"], tables["miscData"]


def _snapped(network: RoadNetwork, nodes: IntArray, table: JemssTable) -> IntArray:
    """The nodes of stations or hospitals."""
    rows = [f"{table.where}, row {row + 1}" for row in range(len(table))]
    return snapped(network, nodes, table.numbers("x"), table.numbers("y"), rows)
