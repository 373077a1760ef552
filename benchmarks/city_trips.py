"""Trips on the embedded city at the paper's size, for benchmarks of training."""

from datetime import UTC, datetime, timedelta

import numpy as np

from ideal_dispatch import Calendar, Trip, Trips
from ideal_dispatch.cities import harbour_city
from ideal_dispatch.context import WEATHER_VARIABLES, Weather, WeatherValue
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.traffic.sumo.plan import made_up_weather

PAPER_TRIPS = 1781


def city_trips(count: int = PAPER_TRIPS, seed: int = 0) -> tuple[RoadNetwork, Trips]:
    """The network and trips from its depots to random nodes through one synthetic year."""
    city, rng = harbour_city(), np.random.default_rng(seed)
    network = city.network
    calendar = Calendar(city.time_zone, city.country)
    start_s, weather = made_up_weather(2023, city.time_zone, seed)
    free_flow_s = {
        depot.node: network.distances(network.free_flow_times_s, depot) for depot in city.depots
    }
    trips: list[Trip] = []
    while len(trips) < count:
        origin = city.depots[rng.integers(len(city.depots))].node
        destination = int(rng.integers(network.num_nodes))
        if origin == destination:
            continue
        at = datetime(2023, 1, 2, tzinfo=UTC) + timedelta(minutes=int(rng.integers(363 * 1440)))
        hour = weather[round((at.timestamp() - start_s) / 3600)].tolist()
        values = {
            name: WeatherValue(value, "made up", "", at)
            for name, value in zip(WEATHER_VARIABLES, hour, strict=True)
        }
        context = calendar.context(at, Weather(**values))
        busy = 1.1 + 0.5 * np.exp(-(((at.hour + 8) % 24 - 18) ** 2) / 4)  # the evening there
        seconds = busy * np.exp(0.12 * rng.normal()) * free_flow_s[origin][destination]
        trips.append(Trip(origin, destination, context, float(seconds)))
    return network, Trips.of(trips, network_checksum=network.checksum)
