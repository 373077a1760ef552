"""Step sizes and perturbations of Algorithm 1, and the output of Theorem 6."""

import math

import numpy as np
import torch

from ideal_dispatch.arrays import BoolArray
from ideal_dispatch.learning.parameters import TrainParams

_PERTURBATION, _OUTPUT = 1, 2  # streams of random numbers of one seed; batches have stream 0


def step_size(params: TrainParams, step: int, total: int) -> float:
    """α_k. "power" meets Σα_k = ∞ and α_k log(k + 2) → 0; "cosine" ends at zero."""
    if params.steps == "cosine":
        return params.learning_rate * 0.5 * (1 + math.cos(math.pi * min(step / total, 1.0)))
    return params.learning_rate * math.pow(1 + step / params.step_delay, -params.step_power)


def perturbation_radius(params: TrainParams, step: int) -> float:
    """r_k, which never grows."""
    return params.perturbation * math.pow(1 + step / params.step_delay, -params.perturbation_power)


def uniform_in_ball(size: int, rng: np.random.Generator) -> torch.Tensor:
    """A vector drawn uniformly from the unit ball of ℝ^size."""
    direction = rng.standard_normal(size)
    radius = rng.random() ** (1.0 / size)
    return torch.from_numpy(direction * (radius / np.linalg.norm(direction)))


def output_steps(params: TrainParams, total: int) -> BoolArray:
    """At which steps k the weights before the step become the output φ_R so far.

    A step replaces the earlier choice with the chance α_k / (α_0 + … + α_k). So
    P(R = k) = α_k / A_K holds after any number K of steps, also where training
    stops early. The draws depend on the seed alone.
    """
    sizes = np.array([step_size(params, k, total) for k in range(total)])
    draws = np.random.default_rng([params.seed, 0, _OUTPUT]).random(total)
    chosen: BoolArray = draws * np.cumsum(sizes) < sizes
    return chosen


def perturbation_rng(seed: int, step: int) -> np.random.Generator:
    """The random numbers of one step: nothing to store when training is resumed."""
    return np.random.default_rng([seed, step, _PERTURBATION])
