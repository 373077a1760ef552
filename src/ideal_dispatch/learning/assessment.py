"""A finished model on given trips: its errors, its coverage, and a local scale for it."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.forecast.model import Model
from ideal_dispatch.learning.radius_training import trip_radii
from ideal_dispatch.learning.scores import Scores, best_factor, scores
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.records import Trips

_FOLDS = 10
_LEAST_TRIPS = 10


@dataclass(frozen=True, slots=True, eq=False)
class Assessment:
    """A model's predictions of trips and how good they are.

    ``coverage`` is the share of trips that the scenario set explains,
    ``unusual`` counts the trips by how their context differs from training (a
    trip may count several times), ``unusual_share`` is the share of trips with
    any. ``ratio`` is the median of observed over predicted time. ``seen`` says
    that the model was trained on these very trips.
    """

    predicted_s: FloatArray
    scores: Scores
    ratio: float
    coverage: float
    unusual: Counter[str]
    unusual_share: float
    transferred: bool
    seen: bool


def assess(
    model: Model,
    network: RoadNetwork,
    trips: Trips,
    *,
    jobs: int | None = None,
    report: Callable[[float], None] | None = None,
) -> Assessment:
    """Predict the trips and compare with what was observed."""
    if not len(trips):
        raise InputError("there are no trips in the file; give at least one")
    if trips.encoding.checksum != model.encoding.checksum:
        raise InputError(
            f"the trips' contexts have other columns than the model's "
            f"({', '.join(trips.encoding.extra) or 'none'} beside the paper's, the model has "
            f"{', '.join(model.encoding.extra) or 'none'}); prepare them with the same settings"
        )
    trips.check(network)
    model.check(network)
    radii = trip_radii(model, network, trips, jobs=jobs, report=report)
    rule = model.radius_rule
    predicted = rule(model.weights, radii.contexts.astype(np.float32), radii.features)
    rows, count = np.unique(trips.contexts, axis=0, return_counts=True, equal_nan=True)
    unusual: Counter[str] = Counter()
    touched = 0
    for row, trips_of_it in zip(rows, count.tolist(), strict=True):
        reasons = model.seen.unusual(row, model.encoding)
        touched += trips_of_it if reasons else 0
        for reason in reasons:
            unusual[reason] += trips_of_it
    driven = radii.predicted_s > 0
    ratios = trips.observed_s[driven] / radii.predicted_s[driven]
    return Assessment(
        predicted_s=radii.predicted_s,
        scores=scores(trips.observed_s, radii.predicted_s),
        ratio=float(np.median(ratios)) if ratios.size else float("nan"),
        coverage=float((radii.targets <= predicted).mean()),
        unusual=unusual,
        unusual_share=touched / len(trips),
        transferred=network.checksum != model.network_checksum,
        seen=model.details.get("data", {}).get("checksum") == trips.checksum,
    )


def local_scale(observed_s: FloatArray, predicted_s: FloatArray) -> float:
    """The factor on all predicted drives that makes their absolute errors smallest.

    It is the one local number that a model carried to another place needs.
    """
    driven = predicted_s > 0
    if driven.sum() < _LEAST_TRIPS:
        raise InputError(
            f"{int(driven.sum())} local trips: at least {_LEAST_TRIPS} are needed for a scale"
        )
    return best_factor(observed_s[driven], predicted_s[driven])


@dataclass(frozen=True, slots=True, eq=False)
class Rescaling:
    """A model with all times of roads multiplied by one ``factor``, learned from local trips.

    The model's constant of a trip stays: turnout does not depend on traffic.

    ``before`` is the old model on these trips, ``after_s`` the mean absolute error of
    the new one, a little too good since it learned from them. ``fair_s`` judges each
    tenth of the trips with the factor of the others; None where they are too few.
    """

    model: Model
    factor: float
    before: Assessment
    after_s: float
    fair_s: float | None


def rescale(
    model: Model,
    network: RoadNetwork,
    trips: Trips,
    *,
    jobs: int | None = None,
    report: Callable[[float], None] | None = None,
) -> Rescaling:
    """The model carried to the place of these trips, by the factor of least mean error."""
    before = assess(model, network, trips, jobs=jobs, report=report)
    constant_s = model.trip_constant_s
    observed_s, drives_s = trips.observed_s, before.predicted_s - constant_s
    factor = local_scale(observed_s - constant_s, drives_s)
    fair_s = None
    if int((drives_s > 0).sum()) >= 2 * _LEAST_TRIPS:
        fold = np.random.default_rng(0).permutation(observed_s.size) % _FOLDS
        unseen_s = np.empty_like(drives_s)
        for number in range(_FOLDS):
            own = fold == number
            scale = local_scale(observed_s[~own] - constant_s, drives_s[~own])
            unseen_s[own] = constant_s + scale * drives_s[own]
        fair_s = scores(observed_s, unseen_s).mae_s
    local = model.rescaled(factor)
    origin = {"trips": len(trips), "checksum": trips.checksum, "network": network.checksum}
    return Rescaling(
        replace(local, details={**local.details, "rescaled_on": origin}),
        factor,
        before,
        scores(observed_s, constant_s + factor * drives_s).mae_s,
        fair_s,
    )
