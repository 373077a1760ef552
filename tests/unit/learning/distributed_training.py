"""What each process of a distributed training runs in ``test_distributed``."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from ideal_dispatch.learning import distributed
from ideal_dispatch.learning.checkpoint import load_checkpoint, save_checkpoint
from ideal_dispatch.learning.trainer import Trainer
from tests.unit.learning.worlds import town, trainer, trips, weights


def made(changes: dict[str, Any], count: int = 43) -> Trainer:
    """A trainer of a small town; the number of trips shares badly among processes."""
    network = town()
    return trainer(network, trips(network, count), held_out=9, **changes)


def run(changes: dict[str, Any], checkpoint: Path | None = None, resume: bool = False) -> Trainer:
    """Train to the end in this process, alone or as one of several."""
    one = made(changes)
    if resume and checkpoint is not None:
        load_checkpoint(one, checkpoint)

    def keep(now: Trainer) -> None:
        if checkpoint is not None and distributed.is_first() and len(now.history) == 2:
            save_checkpoint(now, checkpoint)

    one.run(keep)
    one.finish()
    return one


def main(folder: Path) -> None:
    """Train once for every set of parameters; each process writes what it got."""
    torch.set_num_threads(1)
    with distributed.joined():
        rank = dist.get_rank()
        for number, changes in enumerate(json.loads((folder / "changes.json").read_text())):
            checkpoint = folder / f"{number}.pt"
            whole = run(changes, checkpoint)
            dist.barrier()
            resumed = run(changes, checkpoint, resume=True)
            np.savez(
                folder / f"{number}-{rank}.npz",
                whole=weights(whole),
                resumed=weights(resumed),
                errors=[epoch.validation_mae_s for epoch in whole.history],
                losses=[epoch.loss for epoch in whole.history],
            )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
