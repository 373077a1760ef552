"""Training that survives being killed: one file, replaced whole after every epoch.

Random numbers depend on seed and step alone, and paths are solved anew at the
start of an epoch; so weights, the optimiser's moments and the history are all
there is to keep, and training goes on bit for bit.
"""

import hashlib
import json
import os
from dataclasses import asdict
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.files import atomic_write
from ideal_dispatch.learning.trainer import Epoch, Trainer

_ADVICE = "delete it to start anew"


def save_checkpoint(trainer: Trainer, path: str | os.PathLike[str]) -> None:
    """Write the trainer's state, or leave the last one whole."""
    tensors = {f"now.{k}": v for k, v in trainer.model.state_dict().items()}
    tensors |= {f"chosen.{k}": v for k, v in trainer.chosen.items()}
    state = trainer.optimiser.state_dict()["state"]
    tensors |= {f"moment.{i}.{k}": v for i, values in state.items() for k, v in values.items()
                if isinstance(v, torch.Tensor)}  # fmt: skip
    metadata = {
        "format": "ideal-dispatch checkpoint",
        "fingerprint": fingerprint(trainer),
        "history": json.dumps([asdict(epoch) for epoch in trainer.history]),
    }
    content = save({k: v.detach().contiguous() for k, v in tensors.items()}, metadata)
    with atomic_write(path) as file:
        file.write(content)


def load_checkpoint(trainer: Trainer, path: str | os.PathLike[str]) -> None:
    """Put the trainer into the stored state; refuse one of other trips or parameters."""
    where = os.fspath(path)
    try:
        with safe_open(where, "pt") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != "ideal-dispatch checkpoint":
                raise FileFormatError(f"{where}: not a checkpoint; {_ADVICE}")
            if metadata["fingerprint"] != fingerprint(trainer):
                raise InputError(
                    f"{where}: made with other trips, network or parameters; use the same, "
                    f"or {_ADVICE}"
                )
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            history = [Epoch(**row) for row in json.loads(metadata["history"])]
    except (SafetensorError, OSError) as error:
        raise FileFormatError(f"{where}: not a whole checkpoint ({error}); {_ADVICE}") from None
    parts: dict[str, dict[str, Any]] = {"now": {}, "chosen": {}, "moment": {}}
    for name, tensor in tensors.items():
        part, _, rest = name.partition(".")
        parts[part][rest] = tensor
    moments: dict[int, dict[str, torch.Tensor]] = {}
    for name, tensor in parts["moment"].items():
        index, _, moment = name.partition(".")
        moments.setdefault(int(index), {})[moment] = tensor
    trainer.model.load_state_dict(parts["now"])
    trainer.chosen = parts["chosen"]
    groups = trainer.optimiser.state_dict()["param_groups"]
    trainer.optimiser.load_state_dict({"state": moments, "param_groups": groups})
    trainer.history = history


def fingerprint(trainer: Trainer) -> str:
    """Hash of all that the course of training depends on."""
    problem = trainer.problem
    digest = hashlib.blake2b(digest_size=16)
    digest.update(json.dumps(trainer.params.as_dict(), sort_keys=True).encode())
    digest.update(problem.network.checksum.encode() + problem.trips.checksum.encode())
    for rows in (problem.train, problem.validation):
        digest.update(rows.astype("<i8").tobytes() + b"|")
    return digest.hexdigest()
