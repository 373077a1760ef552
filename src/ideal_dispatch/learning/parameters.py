"""The settings of training, given in Python, in a TOML file or by options."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, Literal

from ideal_dispatch.errors import InputError
from ideal_dispatch.forecast.architecture import Architecture
from ideal_dispatch.ranges import (
    Count,
    Positive,
    Range,
    Seed,
    Whole,
    ZeroOrMore,
    check_fields,
)
from ideal_dispatch.toml_tables import built, complaints_about, read_toml

SplitBy = Literal["trip", "day"]

DECAY_STEPS = 1500 / 64
"""Weight decay times the steps of an epoch, chosen on held-out Manhattan trips."""

FEW = 0.1
"""Trips for each road below which ``ideal train`` takes :meth:`TrainParams.few`."""

_StepPower = Annotated[
    float, Range(0, 1, above=True, why=": the steps must sum to infinity and vanish")
]
_Dropped = Annotated[float, Range(0, 1, below=True)]
_Level = Annotated[float, Range(0, 1, above=True, below=True)]


@dataclass(frozen=True, slots=True)
class TrainParams:
    """Everything that training depends on, apart from network and trips.

    The defaults are the practical setting: Adam with a cosine schedule, kept
    paths, strong decay, and the last weights. :meth:`paper` is Algorithm 1 of
    the paper.

    ``path_refreshes`` 0 solves the lower level for every batch, as the
    theorems ask; otherwise paths are renewed that often an epoch. With
    ``rarer_paths`` only some epochs renew them: all up to the fourth, then
    every second, every third and so on, two times each. ``loss`` is "squared",
    "huber" (quadratic up to ``huber_s`` seconds), "relative" (the same of the
    error over the observed time, with ``huber_s`` over the mean time as its
    bend) or "log" (Huber's of log(predicted/observed), quadratic up to
    ``huber_log``). The first two are divided by the square of the mean trip
    time, which only changes the units of the step size and
    of ``smoothness``, β, the weight of the spatial regulariser. ``steps`` is
    α_k: "cosine" ends at zero, "power" is α₀ (1 + k/``step_delay``)^−``step_power``.
    ``perturbation`` is r₀ in r_k = r₀ (1 + k/``step_delay``)^−``perturbation_power``.
    ``weight_decay`` is λ: plain steps follow d_k + λφ_k, Adam's are AdamW's.
    None is :data:`DECAY_STEPS` over the steps of an epoch: training shrinks all
    weights by the same factor, however many trips there are. ``dropout`` is the share of θ's
    hidden layer that each step leaves out. ``trip_constant`` learns seconds that
    every trip takes beside its drive, such as turnout. Training stops early after
    more than ``patience`` epochs in a row without a smaller error on the held-out
    part; None never does. ``output`` is the best weights on the held-out part,
    the last, or φ_R with P(R = k) ∝ α_k over the steps that were done.

    ``combine`` "average" trains ``members`` networks of different seeds and
    averages the logarithms of their times: one network, that many times as wide.
    "distil" lets that average and gradient boosting teach one network of normal
    size (:mod:`ideal_dispatch.learning.combining`).
    """

    architecture: Architecture = field(default_factory=Architecture)
    loss: Literal["squared", "huber", "relative", "log"] = "log"
    huber_s: Positive = 60.0
    huber_log: Positive = 0.25
    smoothness: ZeroOrMore = 0.0
    optimiser: Literal["adam", "sgd"] = "adam"
    learning_rate: Positive = 3e-3
    weight_decay: ZeroOrMore | None = None
    dropout: _Dropped = 0.3
    trip_constant: bool = True
    steps: Literal["cosine", "power"] = "cosine"
    step_power: _StepPower = 0.75
    step_delay: Positive = 100.0
    perturbation: ZeroOrMore = 0.0
    perturbation_power: ZeroOrMore = 0.25
    epochs: Count = 24
    batch_size: Count = 64
    batches: Literal["shuffled", "uniform"] = "shuffled"
    path_refreshes: Whole = 1
    rarer_paths: bool = True
    patience: Count | None = None
    output: Literal["best", "last", "random"] = "last"
    combine: Literal["none", "average", "distil"] = "none"
    members: Count = 3
    seed: Seed = 0

    def __post_init__(self) -> None:
        check_fields(self)
        if self.combine != "none" and self.architecture.head == "plain":
            raise InputError(
                f"combine {self.combine!r}: networks with a plain head cannot be averaged; "
                "choose the polar one"
            )

    @classmethod
    def paper(cls, **changes: Any) -> "TrainParams":
        """Algorithm 1 with perturbed steps, weight decay and early stopping, as in the paper.

        Paths are solved for every batch, batches are drawn uniformly, steps are
        plain and meet the two conditions of Theorem 2, the head is plain, the
        hour is one number, and the output is the φ_R of Theorem 6. The paper
        names no radius r₀, weight decay, patience, step size, batch size or
        width: those numbers are ours. Of its two losses this has Huber's,
        because plain steps on the squared one soon diverge.
        """
        settings: dict[str, Any] = {
            "architecture": Architecture("attributes", "plain", hour_harmonics=0, crossings=False),
            "loss": "huber", "smoothness": 1e-6, "optimiser": "sgd", "learning_rate": 0.03,
            "weight_decay": 1e-4, "dropout": 0.0, "trip_constant": False, "steps": "power",
            "perturbation": 0.1, "batches": "uniform", "path_refreshes": 0, "rarer_paths": False,
            "patience": 8, "output": "random",
        }  # fmt: skip
        return cls(**settings | changes)

    @classmethod
    def few(cls, **changes: Any) -> "TrainParams":
        """The practical setting where trips are few for the roads, as in a large city's unit log.

        Places are distinguished more coarsely, and outliers count less: chosen on London's
        January to March.
        """
        return cls(**{"huber_log": 0.1} | changes).with_architecture(location_waves=8)

    def decay(self, trips: int) -> float:
        """λ for this many training trips."""
        if self.weight_decay is not None:
            return self.weight_decay
        return DECAY_STEPS * min(self.batch_size, trips) / trips

    def renews_paths(self, epoch: int) -> bool:
        """Whether this epoch, from 0, renews the paths: the first four, then 5, 7, 10, 13, 17."""
        # the quarter squares 0, 1, 2, 4, 6, 9, … of k = 0, 2, 3, …, one epoch later
        root = round(2 * max(epoch - 1, 0) ** 0.5)
        return not self.rarer_paths or epoch == 0 or root * root // 4 == epoch - 1

    def with_architecture(self, **changes: Any) -> "TrainParams":
        """The same parameters with another shape of model."""
        return replace(self, architecture=replace(self.architecture, **changes))


@dataclass(frozen=True, slots=True)
class RadiusParams:
    """How the radius is fitted.

    ``loss`` "mean_absolute" is the paper's; "quantile" aims at ``level``.
    ``coverage`` scales the result so that, on trips like those held out, at
    least this share is explained by the set (split-conformal); None leaves it.
    ``uses_trip`` lets the radius depend on the trip too, not on the context alone.
    """

    loss: Literal["mean_absolute", "quantile"] = "quantile"
    level: _Level = 0.8
    coverage: _Level | None = 0.8
    uses_trip: bool = False
    width: Count = 32
    epochs: Count = 300
    learning_rate: Positive = 5e-3
    weight_decay: ZeroOrMore = 1e-3
    seed: Seed = 0

    def __post_init__(self) -> None:
        check_fields(self, "radius ")


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """The settings of a whole training: of travel times and of the radius."""

    params: TrainParams = field(default_factory=TrainParams)
    radius: RadiusParams = field(default_factory=RadiusParams)

    @classmethod
    def read(
        cls,
        file: str | os.PathLike[str] | None = None,
        options: Mapping[str, Any] | None = None,
        *,
        paper: bool = False,
        trips_per_road: float = 1.0,
    ) -> "TrainingSettings":
        """The defaults, or the paper's, with a TOML file over them and options over both.

        The defaults are those of few trips where there are fewer than :data:`FEW` a road.
        File and ``options`` have the names of :class:`TrainParams`, a table
        ``architecture`` and a table ``radius`` with those of
        :class:`RadiusParams`; an option that is None changes nothing. Unless
        its level is given the radius aims at the coverage, and a coverage of 0
        leaves it unscaled.
        """
        usual = TrainParams.few() if trips_per_road < FEW else TrainParams()
        base = asdict(TrainParams.paper() if paper else usual)
        stored: Mapping[str, Any] = {}
        if file is not None:
            stored = read_toml(file)
            with complaints_about(file):
                cls._of(base, stored)
        params, radius = cls._of(base, _over(stored, options or {}))
        return cls(params, radius)

    @staticmethod
    def _of(base: dict[str, Any], table: Mapping[str, Any]) -> tuple[TrainParams, RadiusParams]:
        whole = _over(base, table)
        radius = whole.pop("radius", {})
        params = built(TrainParams, whole, "")
        given = {}
        if isinstance(radius, Mapping):
            radius = {"seed": params.seed, **radius}
            if not radius.get("coverage", True):
                given["coverage"] = radius.pop("coverage") or None
        made = built(RadiusParams, radius, "radius", **given)
        if made.coverage is not None and "level" not in radius:
            made = replace(made, level=made.coverage)
        return params, made


def _over(table: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """``table`` with ``changes``, also within its tables; what is None changes nothing."""
    whole = dict(table)
    for name, value in changes.items():
        if isinstance(value, Mapping) and isinstance(whole.get(name, {}), Mapping):
            value = _over(whole.get(name, {}), value)
        if value is not None:
            whole[name] = value
    return whole
