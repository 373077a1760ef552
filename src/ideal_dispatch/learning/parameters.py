"""The settings of training, given in Python, in a TOML file or by options."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, Literal

from ideal_dispatch.forecast.architecture import Architecture
from ideal_dispatch.ranges import (
    Checked,
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

_StepPower = Annotated[
    float, Range(0, 1, above=True, why=": the steps must sum to infinity and vanish")
]
_Level = Annotated[float, Range(0, 1, above=True, below=True)]


@dataclass(frozen=True, slots=True)
class TrainParams(Checked):
    """Everything that training depends on, apart from network and trips.

    The defaults are the practical setting: Adam with a cosine schedule, paths
    renewed ``path_refreshes`` times an epoch, and the weights that did best on
    the held-out part. :meth:`paper` is Algorithm 1 of the paper.

    ``path_refreshes`` 0 solves the lower level anew for every batch, as the
    theorems ask. ``loss`` is "squared", "huber" (quadratic up to ``huber_s``
    seconds) or "relative" (the same of the error over the observed time, with
    ``huber_s`` over the mean time as its bend). Losses are divided by the
    square of the mean trip time, which only changes the units of the step size and
    of ``smoothness``, β, the weight of the spatial regulariser. ``steps`` is
    α_k: "cosine" ends at zero, "power" is α₀ (1 + k/``step_delay``)^−``step_power``.
    ``perturbation`` is r₀ in r_k = r₀ (1 + k/``step_delay``)^−``perturbation_power``.
    ``weight_decay`` is λ: plain steps follow d_k + λφ_k, Adam's are AdamW's.
    Training stops early after more than ``patience`` epochs in a row without a
    smaller error on the held-out part; a ``patience`` of ``epochs`` never does.
    ``output`` is the best weights on the held-out part, the last, or φ_R with
    P(R = k) ∝ α_k over the steps that were done.
    """

    architecture: Architecture = field(default_factory=Architecture)
    loss: Literal["squared", "huber", "relative"] = "huber"
    huber_s: Positive = 60.0
    smoothness: ZeroOrMore = 1e-6
    optimiser: Literal["adam", "sgd"] = "adam"
    learning_rate: Positive = 3e-3
    weight_decay: ZeroOrMore = 1e-4
    steps: Literal["cosine", "power"] = "cosine"
    step_power: _StepPower = 0.75
    step_delay: Positive = 100.0
    perturbation: ZeroOrMore = 0.0
    perturbation_power: ZeroOrMore = 0.25
    epochs: Count = 24
    batch_size: Count = 64
    batches: Literal["shuffled", "uniform"] = "shuffled"
    path_refreshes: Whole = 2
    patience: Count = 8
    output: Literal["best", "last", "random"] = "best"
    seed: Seed = 0

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
            "architecture": Architecture("attributes", "plain", hour_harmonics=0),
            "loss": "huber", "optimiser": "sgd", "learning_rate": 0.03, "weight_decay": 1e-4,
            "steps": "power", "perturbation": 0.1, "batches": "uniform", "path_refreshes": 0,
            "patience": 8, "output": "random",
        }  # fmt: skip
        return cls(**settings | changes)

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
    """The settings of a whole training: of travel times, of the radius, and of the split.

    ``split`` by "day" keeps whole days together, by "trip" draws single trips;
    None takes days where at least ten are known.
    """

    params: TrainParams = field(default_factory=TrainParams)
    radius: RadiusParams = field(default_factory=RadiusParams)
    split: SplitBy | None = None

    @classmethod
    def read(
        cls,
        file: str | os.PathLike[str] | None = None,
        options: Mapping[str, Any] | None = None,
        *,
        paper: bool = False,
        split: SplitBy | None = None,
    ) -> "TrainingSettings":
        """The defaults, or the paper's, with a TOML file over them and options over both.

        File and ``options`` have the names of :class:`TrainParams`, a table
        ``architecture`` and a table ``radius`` with those of
        :class:`RadiusParams`; an option that is None changes nothing. Without a
        level of its own the radius aims at the coverage, and a coverage of 0
        leaves it unscaled.
        """
        base = asdict(TrainParams.paper() if paper else TrainParams())
        told: Mapping[str, Any] = {}
        if file is not None:
            told = read_toml(file)
            with complaints_about(file):
                cls._of(base, told)
        params, radius = cls._of(base, _over(told, options or {}))
        return cls(params, radius, split)

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
