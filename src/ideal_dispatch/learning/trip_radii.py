"""Predicted time, path and target radius of many past trips, in parallel."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.forecast.model import Model
from ideal_dispatch.forecast.radius import trip_features
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.records import Trips
from ideal_dispatch.scenarios import target_radius

_TRIPS_PER_TASK = 32
_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class TripRadii:
    """One entry per trip: predicted seconds and path, proved bounds on the target radius.

    ``contexts`` are θ(𝒯) and ``features`` the trip features, the inputs of ϱ.
    ``greatest`` is the radius beyond which scenarios would leave physical bounds.
    """

    predicted_s: FloatArray
    paths: tuple[Path, ...]
    lower: FloatArray
    upper: FloatArray
    contexts: FloatArray
    features: FloatArray
    greatest: FloatArray


def trip_radii(
    model: Model,
    network: RoadNetwork,
    trips: Trips,
    *,
    jobs: int | None = None,
    report: Callable[[float], None] | None = None,
) -> TripRadii:
    """Target radii of all trips under the model ([IDEAL] equation 14), by the cut method.

    Work is shared by joblib: threads here, or whatever backend the caller has
    chosen with ``joblib.parallel_config``, such as dask on many machines.
    Trips with equal contexts share one forecast.
    """
    from joblib import Parallel, delayed

    if not len(trips):
        raise InputError("no trips: there is nothing to solve")
    model.forecast(trips.contexts[0], network)  # fills the cache before threads share it
    _, group = np.unique(trips.contexts, axis=0, return_inverse=True)
    order = np.argsort(group.reshape(-1), kind="stable")
    chunks = [order[i : i + _TRIPS_PER_TASK] for i in range(0, order.size, _TRIPS_PER_TASK)]
    tasks = (delayed(_solve)(model, network, trips.select(chunk)) for chunk in chunks)
    parallel = Parallel(n_jobs=jobs or -1, prefer="threads", return_as="generator")
    results = []
    for result in parallel(tasks):
        results.append(result)
        if report is not None:
            report(len(results) / len(chunks))
    back = np.argsort(order)
    names = ("predicted_s", "lower", "upper", "contexts", "features", "greatest")
    columns = [np.concatenate([getattr(r, name) for r in results])[back] for name in names]
    paths = [path for result in results for path in result.paths]
    predicted, *rest = columns
    return TripRadii(predicted, tuple(paths[i] for i in back), *rest)


def _solve(model: Model, network: RoadNetwork, trips: Trips) -> TripRadii:
    """The same for a few trips."""
    rows, n = trips.contexts, len(trips)
    lower, upper, predicted, greatest = np.zeros((4, n))
    contexts = np.zeros((n, model.architecture.dimension))
    paths: list[Path] = []
    times: list[FloatArray] = []
    forecast = None
    for i in range(n):
        if forecast is None or not np.array_equal(rows[i], rows[i - 1], equal_nan=True):
            forecast = model.forecast(rows[i], network)
            nominal = forecast.nominal_times
        origin, destination = int(trips.origin[i]), int(trips.destination[i])
        path = network.shortest_path(nominal, origin, destination)
        predicted[i] = path.time_s(nominal)
        observed = float(trips.observed_s[i])
        if observed > predicted[i]:
            found = target_radius(
                network, forecast.embeddings, origin, destination, observed, tolerance=_TOLERANCE
            )
            lower[i], upper[i] = found.lower, found.upper
        contexts[i] = forecast.context_representation
        greatest[i] = forecast.bounds.greatest_radius(nominal)
        paths.append(path)
        times.append(nominal)
    features = trip_features(network, paths, times)
    return TripRadii(predicted, tuple(paths), lower, upper, contexts, features, greatest)
