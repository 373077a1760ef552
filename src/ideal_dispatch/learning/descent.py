"""What plain steps did, and how stationary their output is ([IDEAL] Theorem 6).

Symbols: ``K`` steps done, ``p`` weights, ``α_k`` step sizes, ``r_k`` perturbation
radii, ``A_K`` = Σ α_k, ``B_K`` = Σ α_k²/r_k, ``L_J`` Lipschitz constant of J, ``D``
bound on E‖d_k‖², ``Δ`` the smoothed objective at the start less its infimum. With
weight decay λ, J has the term (λ/2)‖φ‖² and d_k the term λφ_k.

The constants of the theorem cannot be known; here are those of the points that were
visited, which are no larger. So the bound is an estimate, and a lower one.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import nnls

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.learning.lower_level import Rows
from ideal_dispatch.learning.trainer import (
    Trainer,
    perturbation_radius,
    step_size,
    uniform_in_ball,
)

COLUMNS = ("step_size", "perturbation_radius", "batch_objective", "direction_norm", "weight_norm")
SMOOTHNESS = 1.0
"""C_sm: the smoothed objective's gradient is Lipschitz with C_sm L_J √p / r.

For the uniform ball the factor of √p is n!!/(n − 1)!! · (2/π or 1) / √n, which is at most 1.
"""
_TRIPS, _PAIRS, _DRAWS = 1024, 4, 4  # so many of each bound the cost
_STREAM = 6  # of random numbers, beside those of training


@dataclass(frozen=True, slots=True, eq=False)
class Descent:
    """The steps of Algorithm 1, a row each under :data:`COLUMNS`, and its output's stationarity.

    ``gradient_norm`` is ‖∇J‖ at the output. ``stationarity`` is an upper estimate of the
    measure ‖∇J‖_δ at δ = 2r₀ from sampled points of the ball, and None without
    perturbation. ``start`` is the smoothed objective at the first weights, an upper
    estimate of Δ, for no loss is negative. Both are over ``trips`` training trips.
    """

    steps: FloatArray
    trips: int
    weights: int
    gradient_norm: float
    stationarity: float | None
    lipschitz: float
    second_moment: float
    start: float

    @property
    def bound(self) -> float | None:
        """The right-hand side of Theorem 6 with the measured constants; None without r_k > 0."""
        sizes, radii = self.steps[:, 0], self.steps[:, 1]
        if not (radii > 0).all():
            return None
        return finite_time_bound(
            sizes, radii, self.weights, self.lipschitz, self.second_moment, self.start
        )

    def as_dict(self) -> dict[str, float | int | None]:
        """The numbers for a report, without the steps."""
        return {
            "steps": len(self.steps),
            "trips": self.trips,
            "weights": self.weights,
            "delta": 2.0 * float(self.steps[0, 1]),
            "gradient_norm": self.gradient_norm,
            "stationarity": self.stationarity,
            "bound": self.bound,
            "lipschitz": self.lipschitz,
            "second_moment": self.second_moment,
            "start": self.start,
            "sum_of_steps": float(self.steps[:, 0].sum()),
        }

    def csv(self) -> str:
        """A line for every step, under the names of its columns."""
        lines = [",".join(("step", *COLUMNS))]
        lines += [
            ",".join((f"{k}", *(f"{v:.9g}" for v in row))) for k, row in enumerate(self.steps)
        ]
        return "\n".join(lines) + "\n"


def finite_time_bound(
    sizes: FloatArray, radii: FloatArray, weights: int, lipschitz: float, second_moment: float,
    start: float,
) -> float:  # fmt: skip
    """((2Δ + 2 L_J (r₀ − r_{K−1}) + C_sm L_J √p D B_K) / 2A_K)^½."""
    drift = 2.0 * lipschitz * (radii[0] - radii[-1])
    noise = SMOOTHNESS * lipschitz * math.sqrt(weights) * second_moment * (sizes**2 / radii).sum()
    return math.sqrt((2.0 * start + drift + noise) / (2.0 * sizes.sum()))


def describe_descent(trainer: Trainer) -> Descent:
    """Measure a finished training of plain steps, at the weights it chose.

    It costs 13 gradients over at most 1,024 training trips.
    """
    params, data = trainer.params, trainer.data
    rng = np.random.default_rng([params.seed, 0, _STREAM])
    rows = np.sort(rng.permutation(data.train)[:_TRIPS])
    measured = np.array(trainer.steps)
    count, radius = len(measured), params.perturbation
    sizes = [step_size(params, k, trainer.total_steps) for k in range(count)]
    radii = [perturbation_radius(params, k) for k in range(count)]
    first, last = Objective(Trainer(data, params), rows), Objective(trainer, rows)
    starts = [first(first.here + radius * _draw(first.here.size, rng)) for _ in range(_DRAWS)]
    _, gradient = last(last.here)
    norms = [float(np.linalg.norm(found[1])) for found in (*starts, (0.0, gradient))]
    stationarity = None
    if radius:
        means = [gradient]
        for _ in range(_PAIRS):
            away = 2.0 * radius * _draw(last.here.size, rng)
            pair = [last(last.here + sign * away)[1] for sign in (1.0, -1.0)]
            norms += [float(np.linalg.norm(one)) for one in pair]
            means.append(np.mean(pair, axis=0))
        stationarity = float(np.linalg.norm(least_mean(np.array(means))))
    squares = measured[:, 1] ** 2
    epochs = np.array_split(squares, range(trainer.steps_per_epoch, count, trainer.steps_per_epoch))
    return Descent(
        steps=np.column_stack([sizes, radii, measured]),
        trips=rows.size,
        weights=last.here.size,
        gradient_norm=float(np.linalg.norm(gradient)),
        stationarity=stationarity,
        lipschitz=max(*norms, float(measured[:, 1].max())),
        second_moment=max(float(epoch.mean()) for epoch in epochs),
        start=float(np.mean([value for value, _ in starts])),
    )


def least_mean(gradients: FloatArray) -> FloatArray:
    """The shortest vector among the weighted means of the rows.

    Every row belongs to points that average to the centre, and points may be taken
    as often as wanted, a little apart: so weighted means count in the infimum.
    """
    scale = float(np.linalg.norm(gradients, axis=1).max()) or 1.0
    matrix = np.vstack([gradients.T / scale, np.ones(len(gradients))])
    share = nnls(matrix, np.append(np.zeros(gradients.shape[1]), 1.0))[0]
    shortest: FloatArray = (share / share.sum()) @ gradients
    return shortest


class Objective:
    """J of given trips and its gradient ([IDEAL] Lemma 2), at any weights; they are put back."""

    def __init__(self, trainer: Trainer, rows: Rows) -> None:
        self._trainer, self._rows = trainer, rows
        self.here = self._vector()

    def __call__(self, weights: FloatArray) -> tuple[float, FloatArray]:
        self._set(weights)
        value = self._trainer.direction(self._rows)
        gradient = self._trainer.direction_vector().double().numpy()
        self._set(self.here)
        decay = self._trainer.decay
        return value + 0.5 * decay * float(weights @ weights), gradient + decay * weights

    def _vector(self) -> FloatArray:
        parameters = self._trainer.model.parameters()
        flat: FloatArray = torch.nn.utils.parameters_to_vector(parameters).detach().double().numpy()
        return flat.copy()

    @torch.no_grad()
    def _set(self, weights: FloatArray) -> None:
        kind = next(self._trainer.model.parameters()).dtype
        moved = torch.from_numpy(weights).to(kind)
        torch.nn.utils.vector_to_parameters(moved, self._trainer.model.parameters())


def _draw(size: int, rng: np.random.Generator) -> FloatArray:
    drawn: FloatArray = uniform_in_ball(size, rng).numpy()
    return drawn
