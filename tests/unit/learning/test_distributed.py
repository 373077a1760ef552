"""Two processes of torch's own runner train the model that one process trains."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ideal_dispatch.learning import distributed
from tests.unit.learning import distributed_training
from tests.unit.learning.worlds import weights

ROOT = Path(__file__).resolve().parents[3]
CHANGES: list[dict[str, Any]] = [
    {"epochs": 4},
    {"epochs": 4, "optimiser": "sgd", "perturbation": 0.05, "path_refreshes": 0,
     "batches": "uniform", "batch_size": 1, "output": "last"},
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where two processes left their results."""
    place = tmp_path_factory.mktemp("distributed")
    (place / "changes.json").write_text(json.dumps(CHANGES))
    command = [
        sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2",
        "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1",
        "-m", "tests.unit.learning.distributed_training", str(place),
    ]  # fmt: skip
    surroundings = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    with subprocess.Popen(
        command, cwd=ROOT, env=surroundings, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            _, errors = process.communicate(timeout=600)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # the runner and both processes
            raise
    assert process.returncode == 0, errors
    return place


@pytest.mark.parametrize("number", range(len(CHANGES)))
def test_two_processes_train_what_one_trains(folder: Path, number: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    alone = distributed_training.run(CHANGES[number])
    torch.set_num_threads(before)
    first, second = (np.load(folder / f"{number}-{rank}.npz") for rank in range(2))
    for name in ("whole", "resumed", "errors", "losses"):
        np.testing.assert_array_equal(first[name], second[name], "both processes agree")
    np.testing.assert_allclose(first["whole"], weights(alone), rtol=2e-3, atol=2e-5)
    errors = [epoch.validation_mae_s for epoch in alone.history]
    np.testing.assert_allclose(first["errors"], errors, rtol=1e-4)
    np.testing.assert_allclose(first["losses"], [e.loss for e in alone.history], rtol=1e-4)
    np.testing.assert_array_equal(first["resumed"], first["whole"])


def test_alone_a_process_is_the_whole_world() -> None:
    rows = np.arange(5)
    assert distributed.is_first()
    assert distributed.own(rows) is rows
    assert distributed.total(torch.ones(2)).tolist() == [1.0, 1.0]
