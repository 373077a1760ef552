"""A small recorded world that the traffic tests share."""

from datetime import UTC, datetime, timedelta

import numpy as np

from ideal_dispatch import Calendar, RoadNetwork
from ideal_dispatch.traffic.recording import RecordedTraffic, Stretch, encode

CALENDAR = Calendar("Asia/Hong_Kong", "HK")
START = datetime(2023, 5, 8, 22, tzinfo=UTC)  # 06:00 in Hong Kong


def recording(
    network: RoadNetwork, days: int = 3, bins: int = 120, seed: int = 0
) -> RecordedTraffic:
    """Days of random traffic, two thirds of the cells not seen."""
    rng = np.random.default_rng(seed)
    stretches = []
    for day in range(days):
        times = network.free_flow_times_s * rng.lognormal(0.3, 0.3, (bins, network.num_edges))
        times[rng.random(times.shape) < 2 / 3] = np.nan
        weather = np.tile([20.0, day, 70.0, 10.0, 1010.0], (3, 1))
        start = START + timedelta(days=day)
        stretches.append(Stretch(start, encode(times, network), weather, {"demand": 1.0}))
    return RecordedTraffic(network, CALENDAR, 60, tuple(stretches), {"engine": "test"})
