from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import InputError
from ideal_dispatch.replay.run_folder import described, read_manifest


@dataclass(frozen=True)
class Part:
    limit_s: float
    values: Any = None


class Talker:
    def describe(self) -> dict[str, Any]:
        return {"kind": "talker", "part": Part(1.0)}


def test_parts_are_described_by_their_fields() -> None:
    assert described(Part(float("-inf"), ("a", 1, None))) == {
        "type": "Part", "limit_s": "-inf", "values": ["a", 1, None],
    }  # fmt: skip
    assert described(Talker())["kind"] == "talker"
    assert described(Talker())["part"] == {"type": "Part", "limit_s": 1.0, "values": None}
    assert described(object()) == {"type": "object"}


def test_other_contents_are_another_description(grid: RoadNetwork) -> None:
    one, same, other = (described(Part(1.0, np.arange(n))) for n in (3, 3, 4))
    assert one == same != other
    assert described(grid) == {"type": "RoadNetwork", "checksum": grid.checksum}


def test_a_folder_without_manifest(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no replay there, run.json is missing"):
        read_manifest(tmp_path)
