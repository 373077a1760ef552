import hashlib
from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch.dispatch import Assignment
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.replay import read_log
from ideal_dispatch.replay.log import drive_key, dropped_text, line_text, plain
from tests.unit.replay.small import diamond


def test_keys_name_station_and_prefix() -> None:
    town = diamond()
    told = Assignment(4, town.path([0, 4, 3]), 2)
    digest = hashlib.blake2b(np.array([0, 4], np.int32).tobytes(), digest_size=4).hexdigest()
    assert drive_key(told) == f"s4+{digest}"
    assert drive_key(Assignment(4, town.path([0, 4, 3]))) == "s4"
    assert drive_key(Assignment(4, town.path([0, 1]), 1)) == drive_key(
        Assignment(4, town.path([0, 4, 3]), 1)
    )
    assert drive_key(Assignment(1, town.path([], 2), 5)) == "s1", "nothing to keep to"


def test_details_become_plain_json() -> None:
    details = {
        "gap": np.float64(1.5), "none": float("nan"), "ways": np.arange(2), "flag": np.bool_(True),
        "deep": {"t": (1, float("-inf"))}, "text": "ü",
    }  # fmt: skip
    assert line_text(plain(details)) == (
        '{"gap":1.5,"none":null,"ways":[0,1],"flag":true,"deep":{"t":[1,null]},"text":"ü"}'
    )


def test_a_log_is_read_line_by_line(tmp_path: Path) -> None:
    log = tmp_path / "incidents.jsonl"
    log.write_text('{"incident": {"name": "a"}}\n{"incident": {"name": "b"}}\n')
    assert [entry["incident"]["name"] for entry in read_log(log)] == ["a", "b"]


@pytest.mark.parametrize("line", ["{", "[]", '{"other": 1}', dropped_text("a", "b")])
def test_lines_that_are_no_incident(tmp_path: Path, line: str) -> None:
    log = tmp_path / "incidents.jsonl"
    log.write_text('{"incident": {"name": "a"}}\n' + line + "\n")
    with pytest.raises(FileFormatError, match="line 2: no incident of a replay"):
        list(read_log(log))


def test_a_log_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        list(read_log(tmp_path / "none.jsonl"))
