"""The map of CONTRIBUTING.md: the paths it names exist."""

import re

import pytest

from tests.conftest import ROOT

_TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
_ROWS = [line.split("|")[1:3] for line in _TEXT.splitlines() if line.startswith("| ")][1:]
_PATHS = sorted({path for _, cell in _ROWS for path in re.findall(r"`([\w./]+(?:\.py|/))`", cell)})


@pytest.mark.parametrize("path", _PATHS)
def test_the_path_is_there(path: str) -> None:
    places = [ROOT / "src" / "ideal_dispatch" / path, ROOT / path]
    assert any(place.exists() for place in places), f"{path}: correct the map"
