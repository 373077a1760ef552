"""The model directory: weights named by their contents, a manifest and a card in words."""

import json
import os
from pathlib import Path

from safetensors.numpy import load as load_tensors

from ideal_dispatch.archive import FileKind
from ideal_dispatch.context import ContextEncoding
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.files import write_file
from ideal_dispatch.forecast.architecture import Architecture
from ideal_dispatch.forecast.model import Model, content_hash
from ideal_dispatch.forecast.radius import RadiusRule
from ideal_dispatch.forecast.seen_contexts import SeenContexts
from ideal_dispatch.network.time_bounds import TimeBounds
from ideal_dispatch.pages import render

MANIFEST, CARD = "manifest.json", "card.md"
RESPONSE_TIMES = "response_times.json"
"""What a model directory has to read beside the weights.

The last one says how much times vary about this model, where trips or a unit log have shown it.
"""
FILES = (MANIFEST, CARD, RESPONSE_TIMES)
_KIND = FileKind("ideal-dispatch model", 2, "model", "make one with `ideal train`", oldest=2)


def save(model: Model, folder: str | os.PathLike[str]) -> None:
    """Write the model into ``folder``, or leave the one that was there whole.

    The weights' file is named by its contents and the manifest, written
    last, names it: at every moment the manifest on disk has its weights. What
    was fitted there with another model is removed.
    """
    place, tensors = Path(folder), model.tensors()
    if place.exists() and not place.is_dir():
        raise InputError(f"{place}: is a file; name a folder for the model")
    weights = f"weights-{content_hash(tensors)[:12]}.safetensors"
    manifest = {
        "format": _KIND.format,
        "version": _KIND.version,
        "checksum": model.checksum,
        "weights": weights,
        **model.settings(),
        "details": dict(model.details),
    }
    text = json.dumps(manifest, indent=2, ensure_ascii=False, sort_keys=True, allow_nan=False)
    place.mkdir(parents=True, exist_ok=True)
    (place / RESPONSE_TIMES).unlink(missing_ok=True)
    write_file(place / weights, tensors)
    write_file(place / CARD, model_card(model))
    write_file(place / MANIFEST, f"{text}\n")
    for old in place.glob("weights-*.safetensors"):
        if old.name != weights:
            old.unlink()


def model_card(model: Model) -> str:
    """What a model is, learned from and good for: Markdown made of the manifest alone."""
    details = model.details
    parts = {name: details.get(name, {}) for name in ("data", "radius", "shape")}
    return render(
        "card.md",
        model=model,
        details=details,
        bounds=model.bounds,
        rule=model.radius_rule,
        number=lambda value: "unknown" if value is None else f"{value:.2f}",
        **parts,
    )


def load(folder: str | os.PathLike[str]) -> Model:
    """The model of a directory; an error gives the reason in one line."""
    where = Path(folder)
    if not where.exists():
        raise InputError(f"{where}: no such folder; {_KIND.advice}")
    if not where.is_dir():
        raise FileFormatError(f"{where}: a file, not a model directory; {_KIND.advice}")
    with _KIND.complaints(where):
        try:
            return _read(where)
        except FileNotFoundError as error:
            missing = Path(error.filename or "").name
            raise FileFormatError(f"not a model, {missing} is missing; {_KIND.advice}") from None


def _read(where: Path) -> Model:
    manifest = _KIND.checked(json.loads((where / MANIFEST).read_text(encoding="utf-8")))
    encoding = ContextEncoding(tuple(manifest["extra_context"]))
    if encoding.checksum != manifest["encoding"]:
        raise FileFormatError(
            "the contexts it was trained on are encoded otherwise than by this version; train again"
        )
    model = Model(
        architecture=Architecture.from_dict(manifest["architecture"]),
        encoding=encoding,
        weights=load_tensors((where / Path(manifest["weights"]).name).read_bytes()),
        base_ratio=float(manifest["base_ratio"]),
        radius_rule=RadiusRule(**manifest["radius"]),
        seen=SeenContexts.from_dict(manifest["seen"]),
        network_checksum=manifest["network"],
        network_bounds=tuple(manifest["network_bounds"]),
        bounds=TimeBounds.from_dict(manifest["bounds"]),
        details=manifest["details"],
    )
    if model.checksum != manifest["checksum"]:
        raise FileFormatError(f"weights and manifest do not belong together; {_KIND.advice}")
    return model
