"""The pages of the documentation, and what stands in their fences."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
_FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.S | re.M)


@dataclass(frozen=True)
class Fence:
    """A block of code: its language, the file it is the text of (or ""), and the text."""

    language: str
    file: str
    text: str

    @property
    def commands(self) -> list[str]:
        """The lines of a shell block without their comments."""
        text = self.text.replace("\\\n", "")  # a long command goes on in the next line
        lines = text.splitlines() if self.language == "sh" else []
        return [command for line in lines if (command := re.split(r"\s+#", line)[0].strip())]


def fences(page: Path) -> Iterator[Fence]:
    """The fences of a page in their order."""
    for found in _FENCE.finditer(page.read_text(encoding="utf-8")):
        yield Fence(found[1], found[2] or "", found[3])
