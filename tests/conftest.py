"""Fixtures shared by all tests."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from ideal_dispatch import RoadNetwork
from tests.postgres import postgres as postgres

ROOT = Path(__file__).resolve().parent.parent

# kernels compile inside the first example, and CI machines pause: no deadlines
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("house", patient, derandomize=True)
settings.register_profile("search", patient)  # other examples each time: --hypothesis-profile
settings.load_profile("house")


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: many tests wait for a process, a page or a lock."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data beside the project, or a plain reason to skip."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("real data is not here: ../shared/data")
    return folder


@pytest.fixture(scope="session")
def grid() -> RoadNetwork:
    """A 12 × 10 grid of two-way streets, 111 m apart, near 22° N 114° E, with all classes."""
    columns, rows = 12, 10
    node = np.arange(columns * rows).reshape(rows, columns)
    a = np.concatenate([node[:, :-1].ravel(), node[:-1].ravel()])
    b = np.concatenate([node[:, 1:].ravel(), node[1:].ravel()])
    tail, head = np.concatenate([a, b]), np.concatenate([b, a])
    lon = 114.0 + 0.001 * (np.arange(node.size) % columns)
    lat = 22.0 + 0.001 * (np.arange(node.size) // columns)
    rng = np.random.default_rng(1)
    edges = tail.size
    return RoadNetwork.from_arrays(
        tail,
        head,
        rng.uniform(112, 140, edges),
        lon,
        lat,
        speed_kmh=np.where(rng.random(edges) < 0.3, np.nan, rng.choice([30, 50, 70], edges)),
        lanes=np.where(rng.random(edges) < 0.5, np.nan, rng.integers(1, 5, edges)),
        oneway=rng.random(edges) < 0.4,
        road_class=np.arange(edges) % 14,
        name=[f"Street {i % 17}" for i in range(edges)],
    )
