"""Figures as PNG files small enough for a repository."""

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ideal_dispatch.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save_figures(drawn: "Mapping[str, Figure]", folder: str | os.PathLike[str]) -> list[Path]:
    """Write every figure as a PNG small enough for a repository; same figures, same bytes."""
    from PIL import Image

    files = [Path(folder) / f"{name}.png" for name in drawn]
    for file, figure in zip(files, drawn.values(), strict=True):
        drawing = io.BytesIO()
        figure.savefig(drawing, format="png", dpi=110)
        with atomic_write(file) as stream, Image.open(drawing) as image:
            image.convert("RGB").quantize(128).save(stream, "PNG", optimize=True)
    return files
