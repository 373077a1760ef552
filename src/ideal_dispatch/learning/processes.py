"""Several processes that train one model, started by torch's own runner."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.distributed as dist

from ideal_dispatch.errors import InputError
from ideal_dispatch.learning import distributed
from ideal_dispatch.learning.checkpoint import load_checkpoint
from ideal_dispatch.learning.parameters import TrainParams
from ideal_dispatch.learning.problem import LearningProblem
from ideal_dispatch.learning.splits import Split
from ideal_dispatch.learning.trainer import Trainer
from ideal_dispatch.learning.training import CHECKPOINT
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.records import Trips


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
        yield distributed.is_first()
    finally:
        dist.destroy_process_group()


def take_part(
    network: RoadNetwork,
    trips: Trips,
    params: TrainParams,
    parts: Split,
    folder: str | os.PathLike[str],
    resume: bool,
) -> None:
    """Train beside the first process, with the same arguments; what comes after is its own."""
    torch.set_num_threads(1)  # as :func:`train` does
    problem = LearningProblem.prepare(
        network, trips, parts.train, parts.validation, params.architecture, params.seed
    )
    trainer = Trainer(problem, params)
    checkpoint = Path(folder) / CHECKPOINT
    if resume and checkpoint.exists():
        load_checkpoint(trainer, checkpoint)
    trainer.run()
