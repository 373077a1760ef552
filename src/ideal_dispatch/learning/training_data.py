"""What is learned from: network, trips, their parts, and the inputs made of them."""

from dataclasses import dataclass

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.errors import InputError, UnreachableError
from ideal_dispatch.forecast.inputs import Standardisation, context_inputs, edge_inputs
from ideal_dispatch.forecast.seen_contexts import SeenContexts
from ideal_dispatch.learning.lower_level import Rows
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
    leaves, ``seen`` is what the training contexts show.
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

    @classmethod
    def prepare(
        cls, network: RoadNetwork, trips: Trips, parts: Split, params: TrainParams
    ) -> "TrainingData":
        """Check the trips, find their free-flow times, and fit all scales."""
        trips.check(network)
        train, shape = parts.train, params.architecture
        if train.size < 2:
            raise InputError(f"{train.size} trips to learn from: at least two are needed")
        times_s = network.free_flow_times_s
        try:
            paths = network.shortest_paths(times_s, trips.origin, trips.destination)
        except UnreachableError as error:
            raise UnreachableError(f"trip {str(error).removeprefix('row ')}") from None
        free_flow = np.array([path.time_s(times_s) for path in paths])
        driven = train[free_flow[train] > 0]
        if not driven.size:
            raise InputError("every trip ends where it starts: there is nothing to learn from")
        ratio = float(np.median(trips.observed_s[driven] / free_flow[driven]))
        bounds, base_s = TimeBounds(), ratio * times_s
        least, greatest = bounds.on(network).expected_s
        for wrong, words in ((base_s < least, "faster"), (base_s > greatest, "slower")):
            if wrong.mean() > 0.5:
                kmh = float(np.median(network.length_m / base_s)) * 3.6
                raise InputError(
                    f"the trips imply {kmh:.3g} km/h on a typical road, {words} than any "
                    "ambulance; check the seconds of the trips and the lengths and speed limits "
                    "of the network"
                )
        rng = np.random.default_rng(params.seed)
        frequencies = _WAVES_PER_KM * rng.standard_normal((2, shape.location_waves))
        centre = np.array([network.lon.mean(), network.lat.mean()])
        edges = edge_inputs(network, shape.features, centre, frequencies, shape.crossings)
        seen = SeenContexts.of(trips.contexts[train], trips.encoding, trips.weather_sources)
        held = seen.held(trips.contexts, trips.encoding)
        contexts = context_inputs(held, trips.encoding, shape.hour_harmonics)
        edge_scale = Standardisation.fit(edges)
        context_scale = Standardisation.fit(contexts[train])
        return cls(
            network, trips, train, parts.validation, free_flow, base_s, ratio, centre, frequencies,
            bounds, seen, edge_scale, context_scale, edge_scale(edges), context_scale(contexts),
        )  # fmt: skip
