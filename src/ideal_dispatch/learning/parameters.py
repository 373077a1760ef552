"""How a model is trained: one frozen set of parameters, with two useful settings."""

from dataclasses import asdict, dataclass, field, fields, replace
from numbers import Real
from typing import Any, Literal

from ideal_dispatch.arrays import whole_number
from ideal_dispatch.errors import InputError
from ideal_dispatch.forecast.architecture import Architecture

_CHOICES = {
    "loss": ("squared", "huber", "relative"),
    "optimiser": ("adam", "sgd"),
    "steps": ("cosine", "power"),
    "batches": ("shuffled", "uniform"),
    "output": ("best", "last", "random"),
}


def check_numbers(params: object, *names: str) -> None:
    """Refuse values, such as those of a TOML file, that are no numbers."""
    for name in names:
        value = getattr(params, name)
        if isinstance(value, bool) or not isinstance(value, Real):
            raise InputError(f"{name} {value!r}: a number is needed")


@dataclass(frozen=True, slots=True)
class TrainParams:
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
    huber_s: float = 60.0
    smoothness: float = 1e-6
    optimiser: Literal["adam", "sgd"] = "adam"
    learning_rate: float = 3e-3
    weight_decay: float = 1e-4
    steps: Literal["cosine", "power"] = "cosine"
    step_power: float = 0.75
    step_delay: float = 100.0
    perturbation: float = 0.0
    perturbation_power: float = 0.25
    epochs: int = 24
    batch_size: int = 64
    batches: Literal["shuffled", "uniform"] = "shuffled"
    path_refreshes: int = 2
    patience: int = 8
    output: Literal["best", "last", "random"] = "best"
    seed: int = 0

    def __post_init__(self) -> None:
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                raise InputError(f"{name} {getattr(self, name)!r}: choose {', '.join(known)}")
        check_numbers(
            self, "learning_rate", "huber_s", "smoothness", "weight_decay", "step_power",
            "step_delay", "perturbation", "perturbation_power",
        )  # fmt: skip
        for name in ("learning_rate", "huber_s", "step_delay"):
            if not 0 < getattr(self, name) < float("inf"):
                raise InputError(f"{name} {getattr(self, name)}: a positive number is needed")
        for name in ("smoothness", "weight_decay", "perturbation", "perturbation_power"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise InputError(f"{name} {getattr(self, name)}: zero or more is needed")
        for name, least in (
            ("epochs", 1), ("batch_size", 1), ("path_refreshes", 0), ("patience", 1), ("seed", 0),
        ):  # fmt: skip
            if whole_number(getattr(self, name), name) < least:
                raise InputError(f"{name} {getattr(self, name)}: at least {least} is needed")
        if self.seed >= 2**32:
            raise InputError(f"seed {self.seed}: it must be below 2**32")
        if not 0 < self.step_power <= 1:
            raise InputError(
                f"step_power {self.step_power}: the steps must sum to infinity and vanish, "
                "so it lies above 0 and at most at 1"
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
            "architecture": Architecture("attributes", "plain", hour_harmonics=0),
            "loss": "huber", "optimiser": "sgd", "learning_rate": 0.03, "weight_decay": 1e-4,
            "steps": "power", "perturbation": 0.1, "batches": "uniform", "path_refreshes": 0,
            "patience": 8, "output": "random",
        }  # fmt: skip
        return cls(**settings | changes)

    def with_architecture(self, **changes: Any) -> "TrainParams":
        """The same parameters with another shape of model."""
        return replace(self, architecture=replace(self.architecture, **changes))

    def as_dict(self) -> dict[str, Any]:
        """Plain values for a manifest; :meth:`from_dict` reads them."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "TrainParams":
        """Parameters of a manifest or of a TOML table; unknown names are refused."""
        own, shape = {f.name for f in fields(cls)}, {f.name for f in fields(Architecture)}
        given = dict(values)
        architecture = given.pop("architecture", {})
        if not isinstance(architecture, dict):
            raise InputError(f"architecture {architecture!r}: a table is needed")
        for name, known in [(n, own) for n in given] + [(n, shape) for n in architecture]:
            if name not in known:
                raise InputError(f"{name}: no such training parameter; there are {sorted(known)}")
        try:
            return cls(architecture=Architecture(**architecture), **given)
        except TypeError as error:
            raise InputError(f"training parameters: {error}") from None
