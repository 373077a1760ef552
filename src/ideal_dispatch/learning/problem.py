"""What is learned from: network, trips, their parts, and the inputs made of them."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.errors import InputError, UnreachableError
from ideal_dispatch.forecast.architecture import Architecture
from ideal_dispatch.forecast.inputs import Standardisation, context_inputs, edge_inputs
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.records import Trips

Rows = npt.NDArray[np.int64]
_WAVES_PER_KM = 0.35  # spread of the random frequencies, chosen on held-out Manhattan trips


@dataclass(frozen=True, slots=True, eq=False)
class LearningProblem:
    """Trips on a network, ready for training.

    ``train`` and ``validation`` are rows of ``trips``; all that is fitted here
    (scales, base times) is fitted on ``train``. ``base_s`` are free-flow times
    times the median ratio of observed to free-flow time: the better a constant
    already does, the less the networks have to learn.
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
    edge_scale: Standardisation
    context_scale: Standardisation
    edges: FloatArray
    contexts: FloatArray

    @classmethod
    def prepare(
        cls,
        network: RoadNetwork,
        trips: Trips,
        train: npt.ArrayLike,
        validation: npt.ArrayLike,
        architecture: Architecture,
        seed: int,
    ) -> "LearningProblem":
        """Check the trips, find their free-flow times, and fit all scales."""
        trips.check(network)
        parts = [np.asarray(rows, np.int64) for rows in (train, validation)]
        if parts[0].size < 2:
            raise InputError(f"{parts[0].size} trips to learn from: at least two are needed")
        times_s = network.free_flow_times_s
        try:
            paths = network.shortest_paths(times_s, trips.origin, trips.destination)
        except UnreachableError as error:
            raise UnreachableError(f"trip {str(error).removeprefix('row ')}") from None
        free_flow = np.array([path.time_s(times_s) for path in paths])
        driven = parts[0][free_flow[parts[0]] > 0]
        if not driven.size:
            raise InputError("every trip ends where it starts: there is nothing to learn from")
        ratio = float(np.median(trips.observed_s[driven] / free_flow[driven]))
        rng = np.random.default_rng(seed)
        frequencies = _WAVES_PER_KM * rng.standard_normal((2, architecture.location_waves))
        centre = np.array([network.lon.mean(), network.lat.mean()])
        edges = edge_inputs(network, architecture.features, centre, frequencies)
        contexts = context_inputs(trips.contexts, trips.encoding, architecture.hour_harmonics)
        edge_scale = Standardisation.fit(edges)
        context_scale = Standardisation.fit(contexts[parts[0]])
        return cls(
            network, trips, parts[0], parts[1], free_flow, ratio * network.free_flow_times_s,
            ratio, centre, frequencies, edge_scale, context_scale, edge_scale(edges),
            context_scale(contexts),
        )  # fmt: skip
