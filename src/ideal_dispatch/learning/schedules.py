"""Step sizes and perturbations of Algorithm 1."""

import math

import torch

from ideal_dispatch.learning.parameters import TrainParams


def step_size(params: TrainParams, step: int, total: int) -> float:
    """α_k. "power" meets Σα_k = ∞ and α_k log(k + 2) → 0; "cosine" ends at zero."""
    if params.steps == "cosine":
        return params.learning_rate * 0.5 * (1 + math.cos(math.pi * min(step / total, 1.0)))
    return params.learning_rate * math.pow(1 + step / params.step_delay, -params.step_power)


def perturbation_radius(params: TrainParams, step: int) -> float:
    """r_k, which never grows."""
    return params.perturbation * math.pow(1 + step / params.step_delay, -params.perturbation_power)


def uniform_in_ball(size: int, generator: torch.Generator) -> torch.Tensor:
    """A vector drawn uniformly from the unit ball of ℝ^size."""
    direction = torch.randn(size, generator=generator)
    radius = torch.rand((), generator=generator) ** (1.0 / size)
    scaled: torch.Tensor = direction * (radius / direction.norm())
    return scaled


def output_step(params: TrainParams, total: int) -> int:
    """R with P(R = k) = α_k / Σα, drawn before the first step from the seed alone."""
    weights = torch.tensor([step_size(params, k, total) for k in range(total)], dtype=torch.float64)
    generator = generator_of(params.seed, -1)
    return int(torch.multinomial(weights, 1, generator=generator))


def generator_of(seed: int, step: int) -> torch.Generator:
    """The random numbers of one step: nothing to store when training is resumed."""
    return torch.Generator().manual_seed(((seed + 1) << 32) + step)
