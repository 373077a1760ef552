"""A fleet's city from a table of an experiment file: JEMSS, the embedded city, or own files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ideal_dispatch.arrays import BoolArray, FloatArray, IntArray
from ideal_dispatch.cities import HARBOUR_STEM
from ideal_dispatch.context import Calendar
from ideal_dispatch.dispatch.survival import survival_curve
from ideal_dispatch.errors import InputError
from ideal_dispatch.fleet.city import HOURS, CallList, FleetCity, Priority, Work
from ideal_dispatch.fleet.inputs.jemss import read_jemss
from ideal_dispatch.fleet.inputs.places import (
    BY_JUNCTIONS,
    FAR_M,
    Places,
    cells_by_junctions,
    nearest_of,
    snapped,
)
from ideal_dispatch.fleet.load import with_units
from ideal_dispatch.fleet.travel import cells_of, connected_nodes
from ideal_dispatch.forecast import Model
from ideal_dispatch.forecast.model_directory import RESPONSE_TIMES
from ideal_dispatch.forecast.response_time import ResponseModel
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.geodesy import check_degrees
from ideal_dispatch.network.readers import table_rows
from ideal_dispatch.ranges import Checked, Count, Positive, Range, Share, ZeroOrMore
from ideal_dispatch.records.responses import Responses
from ideal_dispatch.records.schema import Times
from ideal_dispatch.toml_tables import built, complaints_about, read_toml, require

HARBOUR_FLEET = HARBOUR_STEM.with_name("harbour_fleet.toml")


_USUAL_PLACE = {"units": "1", "from": "0", "until": str(HOURS), "weight": "1"}
_PLACE_RANGES = {
    "units": Range(0, 1000), "from": Range(0, HOURS), "until": Range(0, HOURS), "weight": Range()
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class PlaceTable:
    """Rows with a place; ``rows`` are what complaints call them."""

    rows: tuple[str, ...]
    names: tuple[str, ...]
    lon: FloatArray
    lat: FloatArray
    numbers: Mapping[str, FloatArray]

    @classmethod
    def read(cls, path: Path, *needed: str) -> "PlaceTable":
        """A CSV with lon, lat and what else is ``needed``.

        It may have name, units, from, until and weight; where a row has none it is one unit,
        all day, of weight 1.
        """
        names = {
            **table_rows.DEGREES,
            "name": ("name",),
            **{name: (name,) for name in _USUAL_PLACE},
        }
        columns = ("lon", "lat", *needed)
        where, rows = table_rows.read(path, names, columns, f"{', '.join(columns)} are needed")
        if not rows:
            raise InputError(f"{where}: no place in it")
        mark = table_rows.degrees_mark(rows)
        found: list[list[float]] = []
        for line, row in rows:
            full = _USUAL_PLACE | row
            values = [
                table_rows.number(where, line, name, full, mark)
                for name in ("lon", "lat", *_USUAL_PLACE)
            ]
            with complaints_about(f"{where} line {line}"):
                check_degrees(*values[:2])
                for (name, allowed), value in zip(_PLACE_RANGES.items(), values[2:], strict=True):
                    allowed.check(value, name)
            found.append(values)
        lon, lat, *others = np.array(found).T
        return cls(
            tuple(f"{where} line {line}" for line, _ in rows),
            tuple(row.get("name", f"line {line}") for line, row in rows),
            lon, lat, dict(zip(_USUAL_PLACE, others, strict=True)),
        )  # fmt: skip

    def snapped(self, network: RoadNetwork, nodes: IntArray) -> IntArray:
        """The nearest of some nodes to every row."""
        return snapped(network, nodes, self.lon, self.lat, self.rows)

    def stations(self) -> tuple[IntArray, IntArray, FloatArray]:
        """The rows of the stations that have units, the station of every unit, and its shift.

        Rows of the same name are one station, at the place of the first.
        """
        count = self.numbers["units"]
        broken = np.flatnonzero(count != np.rint(count))
        if broken.size:
            raise InputError(f"{self.rows[broken[0]]}: units {count[broken[0]]:g}; a whole number")
        row = np.repeat(np.arange(len(count)), count.astype(np.int64))
        if not row.size:
            raise InputError(f"{self.rows[0]}: no depot has a unit")
        first = np.array([self.names.index(self.names[i]) for i in row])
        stations, units = np.unique(first, return_inverse=True)
        shifts = np.column_stack([self.numbers["from"], self.numbers["until"]])[row]
        return stations.astype(np.int32), units.astype(np.int32), shifts


_CALL_COLUMNS = {
    "time": ("time", "received", "call_time"), **table_rows.DEGREES, "priority": ("priority",)
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class PastCalls:
    """Calls in the order of their times on the city's clock.

    ``priority`` has the number of each among the named priorities; None where no call has one.
    """

    where: str
    at: Times
    lon: FloatArray
    lat: FloatArray
    priority: IntArray | None

    @classmethod
    def read(cls, path: Path, priorities: Sequence[str]) -> "PastCalls":
        """From a .responses file, or from a CSV with the columns time, lon, lat and priority.

        Times of a CSV are on the city's clock. The priority of a response is the kind of its
        call.
        """
        if path.suffix == ".responses":
            return cls._of_responses(Responses.load(path), str(path), priorities)
        where, rows = table_rows.read(
            path, _CALL_COLUMNS, ("time", "lon", "lat"), "time, lon and lat are needed"
        )
        mark = table_rows.degrees_mark(rows)
        places = [
            [table_rows.number(where, line, field, row, mark) for field in ("lon", "lat")]
            for line, row in rows
        ]
        at = np.array([_time(where, line, row.get("time", "")) for line, row in rows], "M8[s]")
        lon, lat = np.array(places, np.float64).reshape(-1, 2).T
        given = [row.get("priority", "") for _, row in rows]
        lines = [f"{where} line {line}" for line, _ in rows]
        return cls._sorted(where, at, lon, lat, _levels(given, lines, priorities))

    @classmethod
    def _of_responses(
        cls, responses: Responses, where: str, priorities: Sequence[str]
    ) -> "PastCalls":
        """One call for all units of it; those without a place are left out."""
        placed = np.flatnonzero(np.isfinite(responses.lon) & np.isfinite(responses.lat))
        _, first = np.unique(responses.calls[placed], return_index=True)
        rows = placed[first]
        kinds = responses.call_kind[rows].tolist()
        known = bool(set(kinds) & set(priorities))  # else the log has kinds of another sort
        lines = [f"{where}, call {name}" for name in responses.incident[rows]]
        return cls._sorted(
            where, responses.local[rows], responses.lon[rows], responses.lat[rows],
            _levels(kinds, lines, priorities) if known else None,
        )  # fmt: skip

    @classmethod
    def _sorted(
        cls, where: str, at: Times, lon: FloatArray, lat: FloatArray, priority: IntArray | None
    ) -> "PastCalls":
        if not at.size:
            raise InputError(f"{where}: no call with a time and a place in it")
        order = np.argsort(at, kind="stable")
        levels = None if priority is None else priority[order]
        return cls(where, at[order], lon[order], lat[order], levels)

    def __getitem__(self, rows: BoolArray) -> "PastCalls":
        """Some of them."""
        return PastCalls._sorted(
            self.where, self.at[rows], self.lon[rows], self.lat[rows],
            None if self.priority is None else self.priority[rows],
        )  # fmt: skip

    @property
    def midnight(self) -> str:
        """The date of the first call."""
        return str(self.at[0].astype("M8[D]"))

    @property
    def at_s(self) -> FloatArray:
        """Seconds from the midnight before the first call."""
        since = self.at - np.datetime64(self.midnight)
        return np.asarray(since / np.timedelta64(1, "s"), np.float64)

    @property
    def per_day(self) -> float:
        """Their mean number a day, first and last day included."""
        return float(len(self.at) / (self.at_s[-1] // 86_400.0 + 1.0))

    @property
    def by_hour(self) -> FloatArray:
        """How they fall on the hours of a day: 1 is the mean."""
        hours = (self.at_s // 3600.0).astype(np.int64) % HOURS
        return np.asarray(np.bincount(hours, minlength=HOURS) * HOURS / len(self.at), np.float64)


def _time(where: str, line: int, text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"{where} line {line}: time is {text!r}; one such as 2024-05-01 13:45:00 is needed"
        ) from None
    if moment.tzinfo is not None:
        raise InputError(
            f"{where} line {line}: time {text} names a zone; write the city's own time without one"
        )
    return moment


def _levels(
    given: Sequence[str], lines: Sequence[str], priorities: Sequence[str]
) -> IntArray | None:
    if not any(given):
        return None
    for name, line in zip(given, lines, strict=True):
        if name not in priorities:
            raise InputError(
                f"{line}: unknown priority {name!r}; expected one of {', '.join(priorities)}"
            )
    return np.array([priorities.index(name) for name in given], np.int32)


# --- cities ---------------------------------------------------------------------------


def city_from(table: Mapping[str, Any], where: str, beside: Path) -> FleetCity:
    """The city that a table describes; files are named relative to the folder ``beside``.

    With ``jemss`` it is a model folder of JEMSS, with ``network`` a city of own files, with
    neither the embedded one. ``where`` is the table's name in complaints. All take the keys of
    :class:`CityChanges`; :class:`JemssFolder` and :class:`OwnFiles` have the others.
    """
    if "jemss" in table:
        folder = built(JemssFolder, table, where)
        read = read_jemss(beside / folder.jemss, cells=folder.cells, redispatch=folder.redispatch)
        return read.changed(**folder.changes())
    if "network" in table:
        return built(OwnFiles, table, where).city(beside)
    changes = built(CityChanges, table, where)
    embedded = read_toml(HARBOUR_FLEET)["city"]
    return city_from(embedded, "city", HARBOUR_FLEET.parent).changed(**changes.changes())


@dataclass(frozen=True, slots=True, kw_only=True)
class CityChanges(Checked):
    """What may be set for any city; names as in :class:`~ideal_dispatch.fleet.city.FleetCity`.

    ``curve`` is the name of a survival curve. ``time_zone`` and ``country``, which has the
    holidays, are for dispatch policies alone.
    """

    calls_per_day: Positive | None = None
    arrests: Share | None = None
    entitled: Share | None = None
    street_start: bool | None = None
    curve: str | None = None
    time_zone: str | None = None
    country: str | None = None

    def changes(self) -> dict[str, Any]:
        """What is set, as fields of a city."""
        names = ("calls_per_day", "arrests", "entitled", "street_start")
        found = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        if self.curve is not None:
            found["curve"] = survival_curve(self.curve)
        if self.time_zone is not None and self.country is not None:
            found["calendar"] = Calendar(self.time_zone, self.country)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class JemssFolder(CityChanges):
    """A model folder of JEMSS, and a file of its folder ``misc/redispatch``."""

    jemss: str
    cells: Count = 500
    redispatch: str = "redispatch_off.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFiles(CityChanges):
    """A city of own files.

    ``network`` is a .network file. ``depots`` is a CSV with name, lon, lat and, where they are
    not one unit all day, units, from and until (hours of their shift); a depot may have several
    rows. ``hospitals`` is one with name, lon and lat. Drives take the times of the ``model``
    directory in an average context of its training, or free flow, times ``drive_factor``;
    without lights ``slow_factor`` times that. Response times are those of the model directory
    where it has some, else published ones.

    Calls are drawn, ``calls_per_day`` of them, ``by_hour`` and by ``priorities``, on about
    ``cells`` places, by the CSV ``density`` (lon, lat, weight) or where junctions are dense.
    ``records``, a .responses file or a CSV of past calls (time, lon, lat, priority), says all
    that by itself. ``list``, such a CSV, has the very calls that are simulated. ``redispatch``
    has pairs: a unit on its way to a call of the first priority may be sent to the second.
    """

    network: str
    depots: str
    hospitals: str
    priorities: tuple[Priority, ...]
    name: str = ""
    model: str | None = None
    drive_factor: Positive = 1.0
    slow_factor: Positive = 1.4
    cells: Count = 500
    density: str | None = None
    records: str | None = None
    list: str | None = None
    by_hour: tuple[ZeroOrMore, ...] = ()
    redispatch: tuple[tuple[str, ...], ...] = ()
    work: Work = field(default_factory=Work)

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        sources = [name for name in ("density", "records", "list") if getattr(self, name)]
        require(len(sources) < 2, f"{' and '.join(sources)}: give one of them")
        require(len(self.by_hour) in (0, HOURS), f"by_hour has {len(self.by_hour)} numbers, not 24")
        counted = self.records or self.list
        require(
            not (counted and self.by_hour),
            f"by_hour beside {' '.join(sources)}: hours are counted there; leave by_hour out",
        )
        require(
            not (self.list and self.calls_per_day),
            "calls_per_day beside list: a list has its own number of calls; leave one out",
        )
        require(
            bool(counted or self.calls_per_day),
            "calls_per_day is missing; records or a list would say it, too",
        )
        require(bool(self.priorities), "priorities is empty; name one or more")

    def city(self, beside: Path) -> FleetCity:
        """The city of these files."""
        network = RoadNetwork.load(beside / self.network)
        require(not np.isnan(network.lon).any(), f"{self.network}: the network has no coordinates")
        usable = connected_nodes(network)
        depots = PlaceTable.read(beside / self.depots)
        stations, units, shifts = depots.stations()
        hospitals = PlaceTable.read(beside / self.hospitals).snapped(network, usable)
        demand = self._demand(network, usable, beside)
        model = None if self.model is None else Model.load(beside / self.model)
        edges_s, responses, note = self._times(network, model, beside)
        nodes = depots.snapped(network, usable)[stations], hospitals, demand.nodes
        places = Places.on_roads(network, nodes, edges_s, self.slow_factor * edges_s)
        return FleetCity(
            self.name or Path(self.network).stem, places.travel,
            tuple(depots.names[row] for row in stations), places.stations, units,
            places.hospitals, places.cells, demand.weights, priorities=demand.priorities,
            by_hour=demand.by_hour, shifts=shifts, redispatch=self._redispatch(), work=self.work,
            responses=responses, listed=demand.listed, model=model, notes=(*demand.notes, note),
            **({"calls_per_day": demand.per_day} | self.changes()),
        )  # fmt: skip

    def _times(
        self, network: RoadNetwork, model: Model | None, beside: Path
    ) -> tuple[FloatArray, ResponseModel, str]:
        """Seconds of every edge with lights, response times, and a note on both."""
        responses = ResponseModel.published()
        if self.model is None or model is None:
            seconds, source = network.free_flow_times_s, "free flow"
        else:
            average = np.full(len(model.encoding.columns), np.nan)  # unknown: the mean of training
            seconds, source = model.forecast(average, network).nominal_times, "the model"
            if (fitted := beside / self.model / RESPONSE_TIMES).exists():
                responses = ResponseModel.load(fitted)
        note = f"drives: {self.drive_factor:g} times {source}; turnout: {responses.source}"
        return self.drive_factor * seconds, responses, note

    def _redispatch(self) -> BoolArray:
        names = [one.name for one in self.priorities]
        allowed = np.zeros((len(names), len(names)), bool)
        for pair in self.redispatch:
            require(
                len(pair) == 2 and set(pair) <= set(names),
                f"redispatch {', '.join(pair)}: two of {', '.join(names)} are needed",
            )
            allowed[names.index(pair[0]), names.index(pair[1])] = True
        return allowed

    def _demand(self, network: RoadNetwork, usable: IntArray, beside: Path) -> "_Demand":
        """The calls: on cells, or counted from past ones."""
        per_day, hours = self.calls_per_day or 1.0, np.array(self.by_hour or (1.0,) * HOURS)
        source = self.records or self.list
        if source is not None:
            past = PastCalls.read(beside / source, [one.name for one in self.priorities])
            return self._counted(past, network, usable)
        if self.density is None:
            nodes, weights = cells_by_junctions(network, usable, self.cells)
            note = BY_JUNCTIONS
        else:
            table = PlaceTable.read(beside / self.density, "weight")
            nodes, weights, near = self._cells(network, usable, table, table.numbers["weight"])
            off, file = int((~near).sum()), Path(self.density).name
            note = f"calls fall on places by {file}; off the map: {off}"
        return _Demand(nodes, weights, per_day, hours, self.priorities, None, (note,))

    def _counted(self, past: PastCalls, network: RoadNetwork, usable: IntArray) -> "_Demand":
        """Calls as they were: to be drawn alike, or to be taken one by one."""
        nodes, weights, near = self._cells(network, usable, past, np.ones(len(past.at)))
        past = past[near]
        notes = [
            f"calls as in {Path(past.where).name}: {len(past.at)}, off the map {(~near).sum()}"
        ]
        priorities = self.priorities
        if past.priority is None:
            require(not self.list, f"{past.where}: a list needs a priority for every call")
            notes.append("past calls name no priority: shares are those of the file")
        else:
            shares = np.bincount(past.priority, minlength=len(priorities)) / len(past.at)
            priorities = tuple(
                replace(one, share=float(part))
                for one, part in zip(priorities, shares, strict=True)
            )
        listed = None
        if self.list and past.priority is not None:
            cell, _ = nearest_of(network, nodes, past.lon, past.lat)
            listed = CallList(past.at_s, cell, past.priority, past.midnight)
        return _Demand(nodes, weights, past.per_day, past.by_hour, priorities, listed, tuple(notes))

    def _cells(
        self, network: RoadNetwork, usable: IntArray, points: PlaceTable | PastCalls, of: FloatArray
    ) -> tuple[IntArray, FloatArray, BoolArray]:
        """Cells by the weights ``of`` points, and which of the points are near a road."""
        row, away_m = nearest_of(network, usable, points.lon, points.lat)
        near = away_m <= FAR_M
        total = np.zeros(len(usable))
        np.add.at(total, row[near], of[near])
        source = self.density or self.records or self.list
        require(bool(total.sum() > 0.0), f"{source}: nothing lies near a road of {self.network}")
        return (*cells_of(network, usable, total, self.cells), near)


class _Demand(NamedTuple):
    """Where calls are, how many, when and how urgent."""

    nodes: IntArray
    weights: FloatArray
    per_day: float
    by_hour: FloatArray
    priorities: tuple[Priority, ...]
    listed: CallList | None
    notes: tuple[str, ...]


# --- the embedded city, and one like it for a city of which only depots are known ------------


_EACH, _CELLS = 4, 250
_NEAR_S = 900.0
_SLOW = 1.4  # without lights, beside with them


def harbour_fleet() -> FleetCity:
    """Port Almery with eleven units at two depots and four standby posts; fictional."""
    return city_from({}, "city", Path())


def fleet_for(
    name: str,
    network: RoadNetwork,
    depots: Mapping[str, tuple[float, float]],
    units: int | None = None,
    calls_per_day: float | None = None,
) -> FleetCity:
    """The fleet of a city of which the name and the depots (lon, lat) are known.

    The embedded city has its own. Any other has four units at every depot, which are its
    hospitals, too, and calls from within 15 minutes, as many for each unit as there. ``units``
    are those of the whole fleet.
    """
    fleet = harbour_fleet()
    if name != fleet.name or not set(depots) <= set(fleet.station_names):
        fleet = _fleet_around(fleet, name, network, depots)
    if units is not None:
        fleet = with_units(fleet, units)
    return fleet if calls_per_day is None else fleet.changed(calls_per_day=calls_per_day)


def _fleet_around(
    usual: FleetCity, name: str, network: RoadNetwork, depots: Mapping[str, tuple[float, float]]
) -> FleetCity:
    usable, times_s = connected_nodes(network), network.free_flow_times_s
    lon, lat = np.array([*depots.values()]).T
    nodes = snapped(network, usable, lon, lat, list(depots))
    cells, weights = cells_by_junctions(network, usable, _CELLS)
    places = Places.on_roads(network, (nodes, nodes, cells), times_s, _SLOW * times_s)
    near_s = places.travel.fast_s[np.ix_(places.stations, places.cells)].min(axis=0)
    units = np.repeat(np.arange(len(depots)), _EACH)
    return usual.changed(
        name=name, travel=places.travel, station_names=tuple(depots), stations=places.stations,
        hospitals=places.hospitals, cells=places.cells, units=units, shifts=np.empty((0, 2)),
        weights=np.where(near_s <= max(_NEAR_S, near_s.min()), weights, 0.0),
        calls_per_day=usual.calls_per_day * len(units) / usual.num_units,
    )  # fmt: skip
