"""A small world to decide in: a recorded town, and models of it made without training."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ideal_dispatch.dispatch.candidate as candidate
from ideal_dispatch import Calendar, Depot, Model, OptimisticGap, RoadNetwork, optimistic_gap
from ideal_dispatch.context import ContextEncoding
from ideal_dispatch.dispatch import Incident, Readiness, Situation, observe
from ideal_dispatch.dispatch.price import PriceTables
from ideal_dispatch.dispatch.threshold import PricedThreshold
from ideal_dispatch.forecast import Architecture
from ideal_dispatch.forecast.inputs import Standardisation, edge_inputs
from ideal_dispatch.forecast.radius import RadiusRule
from ideal_dispatch.forecast.response_time import Effects, ResponseModel
from ideal_dispatch.forecast.seen_contexts import SeenContexts
from ideal_dispatch.network.time_bounds import TimeBounds
from ideal_dispatch.traffic.recording import RecordedTraffic, Stretch
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic

CALENDAR = Calendar("Asia/Hong_Kong", "HK")
START = datetime.fromisoformat("2023-05-08T07:00:00+08:00")
NODES = (0, 11, 108, 119)
"""The corners of the grid, where the depots are."""

MORNING = Path(__file__).parent / "data" / "morning.npz"


@cache
def world(network: RoadNetwork) -> ReplayedTraffic:
    """Two hours of a busy morning on the grid, as version 0.2 drew it."""
    stored = np.load(MORNING)
    stretch = Stretch(START, stored["codes"], stored["weather"], {}, stored["truth"])
    return ReplayedTraffic(
        RecordedTraffic(network, CALENDAR, 60, (stretch,), {"engine": "synthetic"})
    )


def moment(network: RoadNetwork, minutes: float = 70.0) -> datetime:
    return world(network).recording.stretches[0].start + timedelta(minutes=minutes)


def depots(count: int) -> list[Depot]:
    return [Depot(f"D{number}", node) for number, node in enumerate(NODES[:count])]


def poisoned(network: RoadNetwork, minutes: float) -> ReplayedTraffic:
    """The same morning until the given minute, and nonsense afterwards."""
    recording = world(network).recording
    stretch = recording.stretches[0]
    codes, truth = (np.array(values) for values in (stretch.codes, stretch.truth))
    codes[int(minutes) :] = 250
    truth[:] = 250  # no dispatcher ever sees the truth
    spoilt = Stretch(stretch.start, codes, stretch.weather, stretch.notes, truth)
    return ReplayedTraffic(replace(recording, stretches=(spoilt,)))


def situation(
    network: RoadNetwork,
    node: int = 65,
    units: Sequence[int] = (2, 2),
    *,
    minutes: float = 70.0,
    region: int | None = 0,
    traffic: ReplayedTraffic | None = None,
) -> Situation:
    """What is known of a call in the small world, with a depot for each number of units."""
    at, traffic = moment(network, minutes), traffic or world(network)
    return observe(
        traffic, network, Incident(f"call {node}", node, at), traffic.recording.context(at),
        Readiness(depots(len(units)), units, region),
    )  # fmt: skip


def fleet_threshold(
    network: RoadNetwork, calls_per_day: float = 40.0, **rule: Any
) -> PricedThreshold:
    """The priced threshold of the four corners with three units each, calls at all nodes."""
    times_s = network.free_flow_times_s
    drive_s = np.array([network.distances(times_s, node) for node in NODES])
    prices = PriceTables.of_deaths(
        ResponseModel.published().of(drive_s), np.ones(network.num_nodes), calls_per_day / 24.0,
        12, 3600.0,
    )  # fmt: skip
    return PricedThreshold(prices, {depot.name: 3 for depot in depots(4)}, **rule)


def random_model(network: RoadNetwork, seed: int = 0, radius: float = 0.05) -> Model:
    """A model with random weights: its times are plausible, and nobody learned them."""
    rng = np.random.default_rng(seed)
    shape = Architecture("attributes", dimension=4, width=8, hour_harmonics=1, crossings=False)
    encoding = ContextEncoding()
    edges = edge_inputs(network, "attributes", np.zeros(2), np.zeros((2, 0)))
    columns = len(encoding.columns) + 1
    sizes = {
        "static.0": (8, edges.shape[1]), "static.2": (4, 8), "dynamic.0": (8, columns),
        "dynamic.2": (4, 8), "cross.edge": (8, 4), "cross.context": (8, 4), "cross.out": (1, 8),
        "direction": (4, 8),
    }  # fmt: skip
    weights = {}
    for name, size in sizes.items():
        weights[f"{name}.weight"] = (rng.normal(size=size) / size[1] ** 0.5).astype(np.float32)
        weights[f"{name}.bias"] = rng.normal(0, 0.1, size[0]).astype(np.float32)
    weights["direction.context"] = rng.normal(size=8).astype(np.float32)
    weights |= Standardisation.fit(edges).rows("edge")
    contexts = np.vstack([np.zeros(columns), np.full(columns, 30.0)])
    weights |= Standardisation.fit(contexts).rows("context")
    weights |= {"location.centre": np.zeros(2), "location.frequencies": np.zeros((2, 0))}
    weights |= {"range.least": np.full(network.num_edges, 1e-3)}
    weights |= {"range.greatest": np.full(network.num_edges, 1e3)}
    return Model(
        shape, encoding, weights, 1.3, RadiusRule(constant=radius),
        SeenContexts.of(np.zeros((1, len(encoding.columns))), encoding),
        network.checksum, (0, 0, 0, 0),
    )  # fmt: skip


def bounded_model(network: RoadNetwork) -> Model:
    """A model whose times are all held at the bound of what can be driven."""
    slow = TimeBounds((20.0,) * 14, over_limit_kmh=1e-3, over_limit=1.0, crawl_kmh=1.0)
    return replace(random_model(network), bounds=slow)


TIMES = ResponseModel(
    Effects(60.0, 0.3, station={"D1": 0.5}), drive_scale=0.5, source="900 responses of a log"
)
"""Response times as fitted on a log: the crew of D1 is quick."""


def count_searches(patch: pytest.MonkeyPatch) -> list[OptimisticGap]:
    """A list to which every gap that is searched from now on is added."""
    found = []

    def search(*question: Any, **how: Any) -> OptimisticGap:
        found.append(optimistic_gap(*question, **how))
        return found[-1]

    patch.setattr(candidate, "optimistic_gap", search)
    return found
