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
