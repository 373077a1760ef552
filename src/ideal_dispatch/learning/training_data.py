"""What is learned from: network, trips, their parts, and the inputs made of them."""

from dataclasses import dataclass

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.errors import InputError, UnreachableError
from ideal_dispatch.forecast.inputs import Standardisation, context_inputs, edge_inputs
from ideal_dispatch.forecast.seen_contexts import SeenContexts
from ideal_dispatch.learning.lower_level import Routes, Rows
from ideal_dispatch.learning.parameters import TrainParams
from ideal_dispatch.learning.splits import Split
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.time_bounds import TimeBounds
from ideal_dispatch.records import Trips

_WAVES_PER_KM = 0.35  # spread of the random frequencies, chosen on held-out Manhattan trips


@dataclass(frozen=True, slots=True, eq=False)
class TrainingData:
    """Trips on a network, ready for training.

    ``train`` and ``validation`` are rows of ``trips``; all that is fitted here
    (scales, base times) is fitted on ``train``. ``base_s`` are free-flow times
    times the median ratio of observed to free-flow time: the better a constant
    already does, the less the networks have to learn. ``bounds`` are what no time
    leaves, ``seen`` is what the training contexts show. ``target_s`` is what
    predictions are held against. With ``routes`` the path of every trip is
    known and not searched for.
    """

    network: RoadNetwork
    trips: Trips
    train: Rows
    validation: Rows
    free_flow_s: FloatArray
    base_s: FloatArray
    base_ratio: float
    centre: FloatArray
    frequencies: FloatArray
    bounds: TimeBounds
    seen: SeenContexts
    edge_scale: Standardisation
    context_scale: Standardisation
    edges: FloatArray
    contexts: FloatArray
    target_s: FloatArray
    routes: Routes | None = None

    @classmethod
    def prepare(
        cls,
        network: RoadNetwork,
        trips: Trips,
        parts: Split,
        params: TrainParams,
        *,
        routes: Routes | None = None,
        quoted_s: FloatArray | None = None,
    ) -> "TrainingData":
        """Check the trips, find their free-flow times, and fit all scales.

        The target of a trip is its observed time. With ``quoted_s`` it is what
        it took beyond its quote, on top of its base time, and may be negative.
        """
        trips.check(network)
        train, shape = parts.train, params.architecture
        if train.size < 2:
            raise InputError(f"{train.size} trips to learn from: at least two are needed")
        free_flow = _free_flow_s(network, trips, routes)
        driven = train[free_flow[train] > 0]
        if not driven.size:
            raise InputError("every trip ends where it starts: there is nothing to learn from")
        ratio = float(np.median(trips.observed_s[driven] / free_flow[driven]))
        target_s = trips.observed_s
        if quoted_s is not None:
            target_s = target_s - quoted_s + ratio * free_flow
        rng = np.random.default_rng(params.seed)
        frequencies = _WAVES_PER_KM * rng.standard_normal((2, shape.location_waves))
        centre = np.array([network.lon.mean(), network.lat.mean()])
        edges = edge_inputs(network, shape.features, centre, frequencies, shape.crossings)
        bounds, base_s = TimeBounds(), ratio * network.free_flow_times_s
        _check_base(bounds, network, base_s)
        seen = SeenContexts.of(trips.contexts[train], trips.encoding, trips.weather_sources)
        held = seen.held(trips.contexts, trips.encoding)
        contexts = context_inputs(held, trips.encoding, shape.hour_harmonics)
        edge_scale = Standardisation.fit(edges)
        context_scale = Standardisation.fit(contexts[train])
        return cls(
            network, trips, train, parts.validation, free_flow, base_s, ratio, centre, frequencies,
            bounds, seen, edge_scale, context_scale, edge_scale(edges), context_scale(contexts),
            target_s, routes,
        )  # fmt: skip


def _check_base(bounds: TimeBounds, network: RoadNetwork, base_s: FloatArray) -> None:
    """Refuse trips that would have most roads driven faster or slower than is possible."""
    least, greatest = bounds.on(network).expected_s
    for wrong, words in ((base_s < least, "faster"), (base_s > greatest, "slower")):
        if wrong.mean() > 0.5:
            kmh = float(np.median(network.length_m / base_s)) * 3.6
            raise InputError(
                f"the trips imply {kmh:.3g} km/h on a typical road, {words} than any ambulance; "
                "check the seconds of the trips and the lengths and speed limits of the network"
            )


def _free_flow_s(network: RoadNetwork, trips: Trips, routes: Routes | None) -> FloatArray:
    """Free-flow seconds of every trip, along its route where that is given."""
    times_s = network.free_flow_times_s
    if routes is not None:
        edges, owner = routes.of(np.arange(len(trips)))
        along = np.zeros(len(trips))
        np.add.at(along, owner, times_s[edges])
        return along
    try:
        paths = network.shortest_paths(times_s, trips.origin, trips.destination)
    except UnreachableError as error:
        raise UnreachableError(f"trip {str(error).removeprefix('row ')}") from None
    return np.array([path.time_s(times_s) for path in paths])
