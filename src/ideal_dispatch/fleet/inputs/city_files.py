"""A fleet's city from a table of an experiment file: JEMSS, the embedded city, or own files."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ideal_dispatch.arrays import BoolArray, FloatArray, IntArray
from ideal_dispatch.cities import HARBOUR_STEM
from ideal_dispatch.context import Calendar
from ideal_dispatch.dispatch.survival import survival_curve
from ideal_dispatch.fleet.city import HOURS, CallList, FleetCity, Priority, Work
from ideal_dispatch.fleet.inputs.jemss import read_jemss
from ideal_dispatch.fleet.inputs.past_calls import PastCalls
from ideal_dispatch.fleet.inputs.place_table import PlaceTable
from ideal_dispatch.fleet.inputs.places import (
    BY_JUNCTIONS,
    FAR_M,
    Places,
    cells_by_junctions,
    nearest_of,
)
from ideal_dispatch.fleet.travel import cells_of, connected_nodes
from ideal_dispatch.forecast import Model
from ideal_dispatch.forecast.model_directory import RESPONSE_TIMES
from ideal_dispatch.forecast.response_time import ResponseModel
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.ranges import Checked, Count, Positive, Share, ZeroOrMore
from ideal_dispatch.toml_tables import built, read_toml, require

HARBOUR_FLEET = HARBOUR_STEM.with_name("harbour_fleet.toml")


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
        require(len(sources) < 2, f"{' and '.join(sources)}: one of them says where calls are")
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
