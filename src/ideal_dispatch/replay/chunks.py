"""Files of a replay under way: the lines of a few incidents each."""

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from ideal_dispatch.dispatch.situation import Incident
from ideal_dispatch.files import atomic_write
from ideal_dispatch.replay.log import DROPPED

INCIDENTS_PER_CHUNK = 32


class Chunks:
    """The incidents in groups of neighbours, and a folder with those that are done."""

    def __init__(self, folder: Path, incidents: Sequence[Incident]) -> None:
        self._folder = folder
        self._incidents = incidents

    def missing(self) -> list[tuple[int, Sequence[Incident]]]:
        """Number and incidents of every chunk that has no file."""
        return [
            (number, self._of(number))
            for number in range(self._count)
            if not self._file(number).exists()
        ]

    def write(self, number: int, text: bytes) -> int:
        """Keep the lines of a chunk; returns how many incidents it has."""
        self._folder.mkdir(exist_ok=True)
        with atomic_write(self._file(number)) as file:
            file.write(text)
        return len(self._of(number))

    def merge(self, log: Path) -> tuple[int, list[dict[str, str]]]:
        """Write the log; returns how many incidents it has, and those left out."""
        kept, dropped = 0, []
        with atomic_write(log) as file:
            for line in self._lines():
                if line.startswith(DROPPED):
                    dropped.append(json.loads(line)["dropped"])
                else:
                    kept += 1
                    file.write(line)
        return kept, dropped

    def remove(self) -> None:
        """Delete the folder."""
        if self._folder.exists():
            shutil.rmtree(self._folder)

    def _lines(self) -> Iterator[bytes]:
        for number in range(self._count):
            with open(self._file(number), "rb") as file:
                yield from file

    @property
    def _count(self) -> int:
        return -(-len(self._incidents) // INCIDENTS_PER_CHUNK)

    def _of(self, number: int) -> Sequence[Incident]:
        first = number * INCIDENTS_PER_CHUNK
        return self._incidents[first : first + INCIDENTS_PER_CHUNK]

    def _file(self, number: int) -> Path:
        return self._folder / f"{number:06d}.jsonl"
