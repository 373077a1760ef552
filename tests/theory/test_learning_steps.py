"""[IDEAL] Algorithm 1, Theorems 2 and 6: steps, radii, batches, decay and the random output."""

from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ideal_dispatch.errors import InputError
from ideal_dispatch.learning import TrainParams
from ideal_dispatch.learning.trainer import (
    output_steps,
    perturbation_radius,
    perturbation_rng,
    step_size,
    uniform_in_ball,
)
from tests.unit.learning.worlds import SMALL, gradient, in_double, town, trainer, trips, weights

powers = st.floats(0.0, 1.0, exclude_min=True)
delays = st.floats(1e-3, 1e6)
steps = st.integers(0, 10**15)


@given(powers, delays, steps)
def test_steps_sum_to_infinity_and_vanish_faster_than_the_logarithm(
    power: float, delay: float, k: int
) -> None:
    params = TrainParams(steps="power", step_power=power, step_delay=delay, learning_rate=0.5)
    alpha = step_size(params, k, total=10)
    # Σα_k = ∞ by comparison with a harmonic series, as the power is at most one
    assert alpha >= 0.5 / (1 + k / delay) * (1 - 1e-9)
    # α_k log(k + 2) → 0, as 1 + k/delay ≥ (k + 2) / (2 max(1, delay)) and the power is positive
    bound = 0.5 * (2 * max(1.0, delay) / (k + 2)) ** power
    assert alpha * np.log(k + 2) <= bound * np.log(k + 2) * (1 + 1e-9)
    assert step_size(params, k + 1, total=10) <= alpha


@pytest.mark.parametrize("power", [0.0, -0.5, 1.0001, 2.0, float("nan"), float("inf")])
def test_powers_that_break_a_condition_are_refused(power: float) -> None:
    with pytest.raises(InputError, match="steps must sum to infinity and vanish|a finite number"):
        TrainParams(step_power=power)


def test_the_papers_setting_is_that_of_theorem_6() -> None:
    params = TrainParams.paper()
    assert (params.steps, params.optimiser, params.architecture.head) == ("power", "sgd", "plain")
    assert (params.path_refreshes, params.batches, params.output) == (0, "uniform", "random")
    assert perturbation_radius(params, 0) == params.perturbation > 0
    assert params.weight_decay
    assert params.patience is not None
    assert params.patience < params.epochs, "it may stop early"


def test_a_step_is_that_of_algorithm_1_with_weight_decay() -> None:
    """φ_{k+1} = φ_k − α_k (d_k + λφ_k), where d_k belongs to φ_k + r_k u_k."""
    network = town()
    params = TrainParams.paper(
        architecture=SMALL, perturbation=0.5, weight_decay=0.3, batch_size=8, seed=5
    )
    made, other = (in_double(trainer(network, trips(network, 24), params)) for _ in range(2))
    for k, rows in enumerate(made._batches(0)):
        before = weights(made)
        made._step(rows, k)
        drawn = uniform_in_ball(before.size, perturbation_rng(params.seed, k)).numpy()
        moved = torch.from_numpy(before + perturbation_radius(params, k) * drawn)
        torch.nn.utils.vector_to_parameters(moved, other.model.parameters())
        other.direction(rows)
        wanted = before - step_size(params, k, 1) * (gradient(other) + 0.3 * before)
        np.testing.assert_allclose(weights(made), wanted, rtol=1e-9, atol=1e-12)


@given(st.floats(0.0, 3.0), delays, steps)
def test_radii_never_grow_and_stay_positive(power: float, delay: float, k: int) -> None:
    params = TrainParams(perturbation=0.2, perturbation_power=power, step_delay=delay)
    assert perturbation_radius(params, 0) == 0.2
    assert 0 < perturbation_radius(params, k + 1) <= perturbation_radius(params, k) <= 0.2


@pytest.mark.parametrize("done", [1, 3, 8])
@pytest.mark.parametrize("kind", ["power", "cosine"])
def test_the_output_is_drawn_by_step_size_wherever_training_stops(kind: Any, done: int) -> None:
    total, count = 8, 4000
    params = [TrainParams(steps=kind, step_delay=2.0, seed=seed) for seed in range(count)]
    drawn = Counter(int(np.flatnonzero(output_steps(p, total)[:done])[-1]) for p in params)
    alpha = np.array([step_size(params[0], k, total) for k in range(done)])
    observed = [drawn[k] for k in range(done)]
    assert sum(observed) == count
    assert done == 1 or stats.chisquare(observed, count * alpha / alpha.sum()).pvalue > 1e-3


@pytest.mark.parametrize("stops_early", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_random_output_holds_the_weights_before_its_step(
    seed: int, stops_early: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = town()
    made = trainer(
        network, trips(network, 20), output="random", optimiser="sgd", steps="power", seed=seed,
        epochs=6, patience=2 if stops_early else 6,
    )  # fmt: skip
    seen: list[Any] = []
    step = made._step

    def watched(rows: Any, k: int) -> float:
        seen.append(made._weights())
        return step(rows, k)

    monkeypatch.setattr(made, "_step", watched)
    if stops_early:
        monkeypatch.setattr(made, "validation_error_s", lambda: float(len(seen)))
    made.run()
    assert len(made.history) == (4 if stops_early else 6)
    wanted = seen[int(np.flatnonzero(output_steps(made.params, made.total_steps)[: len(seen)])[-1])]
    made.finish()
    kept = made.model.state_dict()
    assert all((kept[name] == wanted[name]).all() for name in wanted)


def test_uniform_batches_are_unbiased() -> None:
    network = town()
    params = TrainParams(SMALL, batches="uniform", batch_size=2, seed=3)
    made = trainer(network, trips(network, 7), params, held_out=2)
    batches = [batch for epoch in range(1000) for batch in made._batches(epoch)]
    assert len(batches) == 3000
    counts = Counter(tuple(sorted(batch.tolist())) for batch in batches)
    # every subset of the training rows is as likely as any other, which is more than unbiased
    subsets = list(combinations(range(5), 2))
    assert set(counts) == set(subsets)
    assert stats.chisquare([counts[s] for s in subsets]).pvalue > 1e-3


def test_shuffled_batches_use_every_trip_once_an_epoch() -> None:
    network = town()
    made = trainer(network, trips(network, 21), held_out=2)
    for epoch in range(3):
        batches = made._batches(epoch)
        assert [batch.size for batch in batches] == [8, 8, 3]
        assert sorted(np.concatenate(batches).tolist()) == list(range(19))


def test_a_batch_larger_than_all_trips_is_all_of_them() -> None:
    network = town()
    made = trainer(network, trips(network, 5), batches="uniform", batch_size=64)
    (batch,) = made._batches(0)
    assert sorted(batch.tolist()) == list(range(5))
