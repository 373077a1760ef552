from pathlib import Path

import pytest

from ideal_dispatch.errors import InputError
from ideal_dispatch.replay.run_folder import read_manifest


def test_a_folder_without_manifest(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no replay there, run.json is missing"):
        read_manifest(tmp_path)
