"""The fleet of a living city: stations, units, hospitals and calls on the roads of a service."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ideal_dispatch.arrays import FloatArray, IntArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.fleet.city import FleetCity
from ideal_dispatch.fleet.inputs.city_files import HARBOUR_FLEET, OwnFiles
from ideal_dispatch.fleet.inputs.place_table import PlaceTable
from ideal_dispatch.fleet.inputs.places import Places, cells_by_junctions, snapped
from ideal_dispatch.fleet.travel import connected_nodes
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.geodesy import great_circle_m
from ideal_dispatch.toml_tables import built, read_toml

_NEAR_S = 900.0  # calls of a city that is not the embedded one come from so far of a depot


class Station(NamedTuple):
    """Where units wait: its node, and the depot that the service knows it by.

    Units at a standby ``post``, which is none of the service's depots, wait on the road.
    """

    name: str
    node: int
    depot: str
    post: bool


@dataclass(frozen=True, eq=False)
class Plan:
    """A fleet and its calls. ``cells`` and ``hospitals`` are nodes: a place and where it goes."""

    network: RoadNetwork
    fleet: FleetCity
    stations: tuple[Station, ...]
    cells: IntArray
    hospitals: IntArray

    @classmethod
    def of(
        cls,
        city: Mapping[str, Any],
        network: RoadNetwork,
        units: int | None = None,
        calls_per_day: float | None = None,
    ) -> "Plan":
        """The fleet for the city of ``/v1/city``.

        The embedded city has its own, unless ``units`` asks for as many at every depot. For any
        other, patients go to a depot for a hospital, and calls come from around the depots, as
        many for every unit as in the embedded city.
        """
        usual = built(OwnFiles, read_toml(HARBOUR_FLEET)["city"], "city")
        depots = {one["name"]: (one["lon"], one["lat"]) for one in city["depots"]}
        usable, folder = connected_nodes(network), HARBOUR_FLEET.parent
        table = PlaceTable.read(folder / usual.depots)
        embedded = city["name"] == usual.name and set(depots) <= set(table.names)
        if embedded and units is None:
            rows, of_unit, shifts = table.stations()
            names = [table.names[row] for row in rows]
            nodes = table.snapped(network, usable)[rows]
        else:
            each, names = 4 if units is None else units, list(depots)
            nodes = _nodes(network, usable, depots)
            of_unit = np.repeat(np.arange(len(names)), each)
            shifts = np.empty((0, 2))
        hospitals = nodes
        if embedded:
            hospitals = PlaceTable.read(folder / usual.hospitals).snapped(network, usable)
        cells, weights = cells_by_junctions(network, usable, usual.cells)
        times_s = network.free_flow_times_s
        places = Places.on_roads(
            network, (nodes, hospitals, cells), times_s, usual.slow_factor * times_s
        )
        if not embedded:
            near = places.travel.fast_s[np.ix_(places.stations, places.cells)].min(axis=0)
            weights = np.where(near <= max(_NEAR_S, near.min()), weights, 0.0)
        whole_fleet, usual_rate = table.numbers["units"].sum(), usual.calls_per_day or 1.0
        fleet = FleetCity(
            city["name"], places.travel, tuple(names), places.stations, of_unit,
            places.hospitals, places.cells, weights,
            calls_per_day or usual_rate * len(of_unit) / float(whole_fleet), usual.priorities,
            np.array(usual.by_hour), shifts, work=usual.work,
        )  # fmt: skip
        stations = tuple(
            _station(network, name, int(node), depots)
            for name, node in zip(names, nodes, strict=True)
        )
        of_place = places.travel.roads
        assert of_place is not None  # it was made on roads
        return cls(network, fleet, stations, cells, of_place.nodes[fleet.hospital])


def _station(
    network: RoadNetwork, name: str, node: int, depots: Mapping[str, tuple[float, float]]
) -> Station:
    """A station with its depot: itself, or the nearest."""
    if name in depots:
        return Station(name, node, name, False)
    lon, lat = np.array(list(depots.values()), np.float64).T
    away_m: FloatArray = great_circle_m(lon, lat, network.lon[node], network.lat[node])
    return Station(name, node, list(depots)[int(away_m.argmin())], True)


def _nodes(
    network: RoadNetwork, usable: IntArray, places: Mapping[str, tuple[float, float]]
) -> IntArray:
    if not places:
        raise InputError("the service has no depots; a city without them has no units")
    lon, lat = np.array(list(places.values()), np.float64).T
    return snapped(network, usable, lon, lat, list(places))
