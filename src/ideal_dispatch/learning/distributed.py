"""Data-parallel training: each process takes its share of every batch.

A single process works on everything. Several processes are started by torch's
own runner; see ``ideal train --distributed``.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist

from ideal_dispatch.errors import InputError


@contextmanager
def joined() -> Iterator[bool]:
    """Be one of the processes of ``torchrun``; true for the first, which prints and writes."""
    if not dist.is_torchelastic_launched():
        raise InputError(
            "distributed training is started by torch's runner: "
            "torchrun --nproc-per-node 2 --no-python ideal train … --distributed"
        )
    dist.init_process_group("gloo")
    try:
        yield is_first()
        dist.barrier()  # who leaves while another still sends may end that one
    finally:
        dist.destroy_process_group()


def is_first() -> bool:
    """Whether this process writes files and prints."""
    return not _together() or dist.get_rank() == 0


def own(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The rows that this process works on; a row always has the same owner."""
    return rows[rows % dist.get_world_size() == dist.get_rank()] if _together() else rows


def total(values: torch.Tensor) -> torch.Tensor:
    """The sum of ``values`` over all processes, in place."""
    if _together():
        dist.all_reduce(values)
    return values


def check_same_epoch(epoch: int) -> None:
    """Refuse processes that did not all start from the same checkpoint."""
    if not _together():
        return
    ends = torch.tensor([epoch, -epoch])
    dist.all_reduce(ends, dist.ReduceOp.MAX)
    if int(ends[0]) != -int(ends[1]):
        raise InputError(
            f"one process resumes after epoch {int(ends[0])}, another after {-int(ends[1])}; "
            "all must see the same output folder"
        )


def sum_gradients(model: torch.nn.Module) -> None:
    """Replace every gradient by its sum over all processes."""
    if not _together():
        return
    for parameter in model.parameters():
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        dist.all_reduce(parameter.grad)


def _together() -> bool:
    return dist.is_available() and dist.is_initialized()
