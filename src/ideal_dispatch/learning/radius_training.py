"""Target radii of past trips, and the network that predicts them ([IDEAL] section 4.2)."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.forecast.model import Model
from ideal_dispatch.forecast.radius import RadiusRule, trip_features
from ideal_dispatch.learning.parameters import RadiusParams
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.records import Trips
from ideal_dispatch.scenarios import target_radius

_TRIPS_PER_TASK = 32
_TOLERANCE = 1e-6
COLLAPSED = 0.05  # of the targets' mean: a smaller median radius predicts no uncertainty


# --- target radii of trips ------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class TripRadii:
    """One entry per trip: predicted seconds and path, proved bounds on the target radius.

    Predicted seconds have the model's constant of a trip, and scenarios explain what
    was observed beyond it.
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

    @property
    def targets(self) -> FloatArray:
        """Radii that explain the trips; infinite where scenarios would leave physical bounds."""
        return np.where(self.upper > self.greatest, np.inf, self.upper)


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
    known = np.where(np.isnan(trips.contexts), -np.inf, trips.contexts)  # no NaN equals another
    _, group = np.unique(known, axis=0, return_inverse=True)
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
    paths = [path for result in results for path in result.paths]
    columns = {
        name: np.concatenate([getattr(result, name) for result in results])[back]
        for name in ("predicted_s", "lower", "upper", "contexts", "features", "greatest")
    }
    return TripRadii(paths=tuple(paths[i] for i in back), **columns)


def _solve(model: Model, network: RoadNetwork, trips: Trips) -> TripRadii:
    """The same for a few trips."""
    lower, upper, predicted, greatest = np.zeros((4, len(trips)))
    constant_s, last, forecast = model.trip_constant_s, np.empty(0), None
    contexts, paths, times = [], [], []
    for i, row in enumerate(trips.contexts):
        if forecast is None or not np.array_equal(row, last, equal_nan=True):
            forecast, last = model.forecast(row, network), row
            nominal = forecast.nominal_times
        origin, destination = int(trips.origin[i]), int(trips.destination[i])
        path = network.shortest_path(nominal, origin, destination)
        drive_s = path.time_s(nominal)
        predicted[i] = drive_s + constant_s
        driven_s = float(trips.observed_s[i]) - constant_s
        if driven_s > drive_s:
            found = target_radius(
                network, forecast.embeddings, origin, destination, driven_s, tolerance=_TOLERANCE
            )
            lower[i], upper[i] = found.lower, found.upper
        greatest[i] = forecast.bounds.greatest_radius(nominal)
        contexts.append(forecast.context_representation)
        paths.append(path)
        times.append(nominal)
    features = trip_features(network, paths, times)
    return TripRadii(predicted, tuple(paths), lower, upper, np.array(contexts), features, greatest)


# --- the network that predicts them ---------------------------------------------------


@dataclass(frozen=True, slots=True)
class FittedRadius:
    """The rule and its weights, with what should be known about them.

    ``promised`` is the coverage that the rule was scaled to, None where it was not.
    """

    rule: RadiusRule
    weights: dict[str, npt.NDArray[Any]]
    warnings: tuple[str, ...]
    promised: float | None = None


def fit_radius(
    params: RadiusParams,
    contexts: FloatArray,
    trips: FloatArray,
    targets: FloatArray,
    held_out: npt.NDArray[np.bool_],
) -> FittedRadius:
    """Fit ϱ on the rows not held out, and scale it on those that are.

    ``contexts`` are θ(𝒯), ``trips`` the trip features, one row per trip.
    Infinite targets (no metric explains the trip) are learned as the largest
    finite one; held out, they count as never explained.
    """
    learn = ~held_out
    finite = np.isfinite(targets)
    if not (finite & learn).any():
        raise InputError("no trip has a finite target radius; there is nothing to fit")
    held_out_targets = targets[held_out]
    targets = np.where(finite, targets, targets[finite & learn].max())
    mean, spread = trips[learn].mean(axis=0), trips[learn].std(axis=0)
    inverse = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 1e-9)
    inputs = np.column_stack([contexts, (trips - mean) * inverse]) if params.uses_trip else contexts
    network = _train(params, inputs[learn], targets[learn])
    weights = {f"radius.{k}": v.numpy() for k, v in network.state_dict().items()}
    weights |= {"radius.trip_mean": mean, "radius.trip_scale": inverse}
    level = params.level if params.loss == "quantile" else None
    rule = RadiusRule(params.loss, level, uses_trip=params.uses_trip)
    greatest = float(rule(weights, contexts[learn].astype(np.float32), trips[learn]).max())
    rule = replace(rule, greatest=greatest)
    predicted = rule(weights, contexts.astype(np.float32), trips)
    warnings, promised = [], None
    if np.median(predicted[learn]) < COLLAPSED * targets[learn].mean():
        covered = 100 * (targets[learn] <= predicted[learn]).mean()
        advice = "use the quantile loss" if level is None else f"choose a level above {level:g}"
        warnings.append(
            f"the radius has collapsed: with the {params.loss.replace('_', ' ')} loss it explains "
            f"{covered:.0f} % of the trips; {advice}"
        )
    if params.coverage is not None:
        factor = conformal_factor(held_out_targets, predicted[held_out], params.coverage)
        if factor is None:
            warnings.append(
                f"{int(held_out.sum())} held-out trips are too few, or too many of them "
                f"({int(np.isinf(held_out_targets).sum())}) beyond any radius, to promise a "
                f"coverage of {params.coverage:g}; the radius is not scaled"
            )
        else:
            promised = params.coverage
            rule = replace(rule, level=params.coverage, scale=factor)
    return FittedRadius(rule, weights, tuple(warnings), promised)


def conformal_factor(targets: FloatArray, predicted: FloatArray, coverage: float) -> float | None:
    """The factor that makes predictions cover new trips with at least this chance.

    Split-conformal: the ⌈(n + 1) · coverage⌉-th smallest ratio of target to
    prediction over n held-out trips. For a further trip, exchangeable with
    them, P(target ≤ factor · prediction) ≥ coverage. None where n is too small,
    or where no factor is large enough.
    """
    rank = math.ceil((targets.size + 1) * coverage)
    if rank > targets.size:
        return None
    ratios = np.divide(targets, predicted, out=np.full(targets.size, np.inf), where=predicted > 0)
    ratios[targets == 0] = 0.0
    factor = float(np.sort(ratios)[rank - 1])
    return factor if factor < math.inf else None


def _train(params: RadiusParams, inputs: FloatArray, targets: FloatArray) -> nn.Sequential:
    """Full-batch Adam on the targets, in units of their mean."""
    generator = torch.Generator().manual_seed(params.seed)
    first, last = nn.Linear(inputs.shape[1], params.width), nn.Linear(params.width, 1)
    network = nn.Sequential(first, nn.SiLU(), last)
    x = torch.tensor(inputs, dtype=torch.float32)
    y = torch.tensor(targets, dtype=torch.float32)
    unit = float(targets.mean()) or 1.0
    with torch.no_grad():
        for layer in (first, last):
            size = (1.0 / layer.weight.shape[1]) ** 0.5
            layer.weight.copy_(size * torch.randn(layer.weight.shape, generator=generator))
            layer.bias.zero_()
        last.weight.mul_(0.1)
        mean = max(unit, 1e-6)
        last.bias.fill_(mean + math.log(-math.expm1(-mean)))  # softplus starts at the mean
    optimiser = torch.optim.AdamW(
        network.parameters(), lr=params.learning_rate, weight_decay=params.weight_decay
    )
    level = params.level if params.loss == "quantile" else 0.5  # half the mean absolute error
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, params.epochs)
    for _ in range(params.epochs):
        optimiser.zero_grad()
        missing = (y - nn.functional.softplus(network(x).squeeze(1))) / unit
        loss = torch.maximum(level * missing, (level - 1.0) * missing).mean()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        schedule.step()
    return network
