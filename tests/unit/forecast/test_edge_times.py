"""Compiled times of edges: the activation is silu, and edges do not depend on each other."""

from typing import Any

import numpy as np
import pytest

from ideal_dispatch.forecast.edge_times import activate, log_ratios


@pytest.mark.parametrize(("kind", "most"), [(np.float32, 4e-7), (np.float64, 2e-15)])
def test_the_activation_is_silu(kind: Any, most: float) -> None:
    x = np.linspace(-40.0, 40.0, 100_001).astype(kind)
    hidden = np.empty_like(x)
    activate(x - kind(0.5), np.full_like(x, 0.5), hidden)
    wide = x.astype(np.float64)
    exact = wide / (1.0 + np.exp(-wide))
    assert (np.abs(hidden - exact) / np.maximum(np.abs(wide), 1.0)).max() < most


def test_an_edge_is_the_same_among_all_and_alone() -> None:
    rng = np.random.default_rng(0)
    edges = rng.standard_normal((101, 37)).astype(np.float32)
    context, weight = rng.standard_normal((2, 37)).astype(np.float32)
    logs = np.empty(101, np.float32)
    log_ratios(edges, context, weight, np.float32(0.3), logs)
    for e in range(0, 101, 7):
        alone = np.empty(1, np.float32)
        log_ratios(edges[e : e + 1], context, weight, np.float32(0.3), alone)
        assert alone[0] == logs[e]
    hidden = (edges + context).astype(float)
    np.testing.assert_allclose(logs, hidden / (1 + np.exp(-hidden)) @ weight + 0.3, atol=3e-6)


def test_what_is_no_number_stays_none() -> None:
    edges = np.zeros((3, 8), np.float32)
    edges[1, 2] = np.nan
    logs = np.empty(3, np.float32)
    log_ratios(edges, edges[0], np.ones(8, np.float32), np.float32(0.0), logs)
    assert np.isnan(logs).tolist() == [False, True, False]
