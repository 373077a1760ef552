"""The fleet of the embedded city, and one like it for a city of which only depots are known."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ideal_dispatch.fleet.city import FleetCity
from ideal_dispatch.fleet.inputs.city_files import city_from
from ideal_dispatch.fleet.inputs.places import Places, cells_by_junctions, snapped
from ideal_dispatch.fleet.load import with_units
from ideal_dispatch.fleet.travel import connected_nodes
from ideal_dispatch.network import RoadNetwork

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
