"""How stationary the output of Algorithm 1 is ([IDEAL] Theorem 6).

    python -m workshop.stationarity TRIPS NETWORK [EPOCHS]

trains as ``ideal train --paper`` does, measures, and prints the numbers.

Symbols: ``K`` steps done, ``p`` weights, ``α_k`` step sizes, ``r_k`` perturbation
radii, ``A_K`` = Σ α_k, ``B_K`` = Σ α_k²/r_k, ``L_J`` Lipschitz constant of J, ``D``
bound on E‖d_k‖², ``Δ`` the smoothed objective at the start less its infimum. With
weight decay λ, J has the term (λ/2)‖φ‖² and d_k the term λφ_k.

The constants of the theorem cannot be known; here are those of the points that were
visited, which are no larger. So the bound is an estimate, and a lower one.
"""

import math
import sys
from dataclasses import asdict, dataclass

import numpy as np
import torch
from scipy.optimize import nnls

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.learning import TrainingSettings
from ideal_dispatch.learning.lower_level import Rows
from ideal_dispatch.learning.splits import default_split
from ideal_dispatch.learning.trainer import Trainer, uniform_in_ball
from ideal_dispatch.learning.training import one_thread
from ideal_dispatch.learning.training_data import TrainingData
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.records import Trips

SMOOTHNESS = 1.0
"""C_sm: the smoothed objective's gradient is Lipschitz with C_sm L_J √p / r.

For the uniform ball the factor of √p is n!!/(n − 1)!! · (2/π or 1) / √n, which is at most 1.
"""
_TRIPS, _PAIRS, _DRAWS = 1024, 4, 4  # so many of each bound the cost
_STREAM = 6  # of random numbers, beside those of training


@dataclass(frozen=True, slots=True)
class Stationarity:
    """How stationary the output of ``steps`` plain steps is, and what the theorem says of it.

    ``gradient_norm`` is ‖∇J‖ at the output. ``stationarity`` is an upper estimate of the
    measure ‖∇J‖_δ at ``delta`` = 2r₀ from sampled points of the ball, ``bound`` the right-hand
    side of Theorem 6 with the measured constants; both are None without perturbation.
    ``start`` is the smoothed objective at the first weights, an upper estimate of Δ, for no
    loss is negative. All are over ``trips`` training trips.
    """

    steps: int
    trips: int
    weights: int
    delta: float
    gradient_norm: float
    stationarity: float | None
    bound: float | None
    lipschitz: float
    second_moment: float
    start: float


def finite_time_bound(
    sizes: FloatArray, radii: FloatArray, weights: int, lipschitz: float, second_moment: float,
    start: float,
) -> float:  # fmt: skip
    """((2Δ + 2 L_J (r₀ − r_{K−1}) + C_sm L_J √p D B_K) / 2A_K)^½."""
    drift = 2.0 * lipschitz * (radii[0] - radii[-1])
    noise = SMOOTHNESS * lipschitz * math.sqrt(weights) * second_moment * (sizes**2 / radii).sum()
    return math.sqrt((2.0 * start + drift + noise) / (2.0 * sizes.sum()))


def measure(trainer: Trainer) -> Stationarity:
    """Measure a finished training of plain steps, at the weights it chose.

    It costs 13 gradients over at most 1,024 training trips.
    """
    params, data = trainer.params, trainer.data
    rng = np.random.default_rng([params.seed, 0, _STREAM])
    rows = np.sort(rng.permutation(data.train)[:_TRIPS])
    sizes, radii, _, directions, _ = trainer.step_table.T
    count, radius = sizes.size, params.perturbation
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
    ends = range(trainer.steps_per_epoch, count, trainer.steps_per_epoch)
    second_moment = max(float(epoch.mean()) for epoch in np.array_split(directions**2, ends))
    lipschitz = max(*norms, float(directions.max()))
    start, weights, bound = float(np.mean([value for value, _ in starts])), last.here.size, None
    if (radii > 0).all():
        bound = finite_time_bound(sizes, radii, weights, lipschitz, second_moment, start)
    return Stationarity(
        count, rows.size, weights, 2.0 * radius, float(np.linalg.norm(gradient)), stationarity,
        bound, lipschitz, second_moment, start,
    )  # fmt: skip


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


def main(trips_file: str, network_file: str, epochs: str = "") -> None:
    """Train by Algorithm 1 and print what was measured."""
    trips, network = Trips.load(trips_file), RoadNetwork.load(network_file)
    options = {"epochs": int(epochs)} if epochs else {}
    settings = TrainingSettings.read(options=options, paper=True)
    with one_thread():
        parts = default_split(trips, settings.params.seed)
        data = TrainingData.prepare(network, trips, parts, settings.params)
        trainer = Trainer(data, settings.params)
        trainer.run()
        trainer.finish()
        for name, value in asdict(measure(trainer)).items():
            print(f"{name:14} {value if value is None else format(value, '.4g')}")


if __name__ == "__main__":
    main(*sys.argv[1:])
