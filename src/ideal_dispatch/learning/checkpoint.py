"""Training that survives being killed: one file, replaced whole after every epoch.

Random numbers depend on seed and step alone, and paths on the weights that
solved them; so both kinds of weights, the optimiser's moments and the history
are all there is to keep, and training goes on bit for bit.
"""

import hashlib
import json
import os
from dataclasses import asdict
from pathlib import Path

import torch

from ideal_dispatch.archive import FileKind
from ideal_dispatch.errors import InputError
from ideal_dispatch.files import atomic_write
from ideal_dispatch.learning.trainer import Epoch, Trainer

_KIND = FileKind(
    "ideal-dispatch training checkpoint", 1, "checkpoint", "delete it to start from the beginning"
)


def checkpoint_name(member: int = 0) -> str:
    """The file beside a model in the making, or of one of the networks that it combines."""
    return f"checkpoint-{member}.pt" if member else "checkpoint.pt"


def checkpoints(folder: str | os.PathLike[str]) -> list[Path]:
    """All checkpoints in the folder of a model in the making."""
    return sorted([*Path(folder).glob("checkpoint.pt"), *Path(folder).glob("checkpoint-*.pt")])


def save_checkpoint(trainer: Trainer, path: str | os.PathLike[str]) -> None:
    """Write the trainer's state, or leave the last one whole."""
    state = {
        "format": _KIND.format,
        "fingerprint": fingerprint(trainer),
        "history": [asdict(epoch) for epoch in trainer.history],
        "steps": trainer.steps,
        "now": trainer.model.state_dict(),
        "chosen": trainer.chosen,
        "routed_by": trainer.routed_by,
        "optimiser": trainer.optimiser.state_dict(),
    }
    with atomic_write(path) as file:
        torch.save(state, file)


def load_checkpoint(trainer: Trainer, path: str | os.PathLike[str]) -> None:
    """Put the trainer into the stored state; refuse one of other trips or parameters."""
    where = os.fspath(path)
    with _KIND.complaints(path):
        # nothing in it is executed
        state = _KIND.checked(torch.load(where, weights_only=True))
    if state["fingerprint"] != fingerprint(trainer):
        raise InputError(
            f"{where}: made with other trips, network or parameters; use the same, or "
            f"{_KIND.advice}"
        )
    if state["routed_by"] is not None:
        trainer.model.load_state_dict(state["routed_by"])
        trainer.renew_paths()
    trainer.model.load_state_dict(state["now"])
    trainer.chosen = state["chosen"]
    trainer.optimiser.load_state_dict(state["optimiser"])
    trainer.history = [Epoch(**row) for row in state["history"]]
    trainer.steps = [tuple(row) for row in state["steps"]]


def remove_checkpoints(folder: str | os.PathLike[str]) -> None:
    """Remove the checkpoints of a folder: training is finished, or starts from the beginning."""
    for done in checkpoints(folder):
        done.unlink()


def fingerprint(trainer: Trainer) -> str:
    """Hash of all that the course of training depends on."""
    data = trainer.data
    digest = hashlib.blake2b(digest_size=16)
    digest.update(json.dumps(asdict(trainer.params), sort_keys=True).encode())
    digest.update(data.network.checksum.encode() + data.trips.checksum.encode())
    for rows in (data.train, data.validation):
        digest.update(rows.astype("<i8").tobytes() + b"|")
    return digest.hexdigest()
