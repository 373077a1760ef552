"""Trips whose travel times follow a known rule, for tests that must find it again."""

from datetime import UTC, datetime, timedelta

import numpy as np

from ideal_dispatch import Context, RoadNetwork, Trip, Trips
from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.network.road_class import ROAD_CLASSES

START = datetime(2024, 3, 4, tzinfo=UTC)  # a Monday
HOURS = 24 * 7 * 6


def planted_times_s(network: RoadNetwork, hour: int) -> FloatArray:
    """Seconds per edge: a factor of its road class, and slow around 8 and 18 o'clock."""
    by_class = np.random.default_rng(99).uniform(0.9, 1.6, len(ROAD_CLASSES))
    rush = 0.4 * np.exp(-(((hour - 8) / 2) ** 2)) + 0.6 * np.exp(-(((hour - 18) / 2.5) ** 2))
    times: FloatArray = network.free_flow_times_s * by_class[network.road_class] * (1 + rush)
    return times


def planted_trips(network: RoadNetwork, count: int, seed: int = 0, noise: float = 0.15) -> Trips:
    """Fastest trips between random nodes under the planted times, times e^(noise · N(0, 1)).

    They spread over six weeks, so that some fall into the same hour.
    """
    rng = np.random.default_rng(seed)
    trips = []
    for _ in range(count):
        at = START + timedelta(hours=int(rng.integers(HOURS)), minutes=int(rng.integers(60)))
        origin, destination = map(int, rng.choice(network.num_nodes, 2, replace=False))
        times_s = planted_times_s(network, at.hour)
        seconds = network.shortest_path(times_s, origin, destination).time_s(times_s)
        observed_s = seconds * float(np.exp(noise * rng.standard_normal()))
        trips.append(Trip(origin, destination, Context(at=at), observed_s))
    return Trips.of(trips, network_checksum=network.checksum)
