import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core import caching

from ideal_dispatch.compiled import kernel


def test_options_reach_numba() -> None:
    @kernel(error_model="numpy")
    def divide(a, b):  # type: ignore[no-untyped-def]
        return a / b

    assert np.isinf(divide(1.0, 0.0))
    assert divide.targetoptions["nogil"]


def test_kernels_compile_where_there_is_no_place_for_a_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])

    @kernel
    def double(a):  # type: ignore[no-untyped-def]
        return 2 * a

    assert double(4) == 8


def test_other_failures_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("disk on fire")

    monkeypatch.setattr(caching.CacheImpl, "__init__", fail)
    with pytest.raises(RuntimeError, match="disk on fire"):

        @kernel
        def double(a):  # type: ignore[no-untyped-def]
            return 2 * a


def test_a_cache_that_names_a_structure_that_is_gone_counts_as_empty(tmp_path: Path) -> None:
    program = (
        "from typing import NamedTuple\n"
        "from ideal_dispatch.compiled import kernel\n"
        "class NAME(NamedTuple):\n"
        "    a: int\n"
        "@kernel\n"
        "def doubled(pair):\n"
        "    return 2 * pair.a\n"
    )
    for name in ("Before", "After"):
        (tmp_path / "doubling.py").write_text(program.replace("NAME", name))
        done = subprocess.run(
            [sys.executable, "-c", f"import doubling as d; print(d.doubled(d.{name}(4)))"],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.stdout == "8\n", done.stderr
