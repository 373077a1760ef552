"""The map of CONTRIBUTING.md: what it tells to open is there."""

import re

import pytest

from tests.conftest import ROOT

_TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
_ROWS = [line.split("|")[1:3] for line in _TEXT.splitlines() if line.startswith("| ")][1:]
_PATHS = sorted({path for _, cell in _ROWS for path in re.findall(r"`([\w./]+(?:\.py|/))`", cell)})


def test_the_map_has_rows() -> None:
    assert len(_ROWS) >= 25
    assert len(_PATHS) >= 25


@pytest.mark.parametrize("path", _PATHS)
def test_the_path_is_there(path: str) -> None:
    assert (ROOT / "src" / "ideal_dispatch" / path).exists(), f"{path}: mend the map"
