"""Trips on the embedded city at the paper's size, for benchmarks of training."""

from datetime import UTC, datetime, timedelta

import numpy as np

from ideal_dispatch import Calendar, Trip, Trips
from ideal_dispatch.cities import harbour_city
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.records.synthetic.records import TypicalTravelTime
from ideal_dispatch.records.synthetic.weather import SyntheticWeather

PAPER_TRIPS = 1781


def city_trips(count: int = PAPER_TRIPS, seed: int = 0) -> tuple[RoadNetwork, Trips]:
    """The network and trips from its depots to random nodes through one synthetic year."""
    city, rng = harbour_city(), np.random.default_rng(seed)
    network = city.network
    calendar = Calendar(city.time_zone, city.country)
    weather = SyntheticWeather.of_year(2023, city.time_zone, seed)
    seconds = TypicalTravelTime(network, rng, city.time_zone)
    trips: list[Trip] = []
    while len(trips) < count:
        origin = city.depots[rng.integers(len(city.depots))].node
        destination = int(rng.integers(network.num_nodes))
        if origin == destination:
            continue
        at = datetime(2023, 1, 2, tzinfo=UTC) + timedelta(minutes=int(rng.integers(363 * 1440)))
        lon, lat = float(network.lon[destination]), float(network.lat[destination])
        context = calendar.context(at, weather.reading(at, lon, lat))
        trips.append(
            Trip(origin, destination, context, seconds(origin, destination, at, context.weather))
        )
    return network, Trips.of(trips, network_checksum=network.checksum)
