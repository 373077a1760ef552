"""Compiling numerical kernels, cached on disk where there is a place for it."""

from collections.abc import Callable
from functools import partial
from typing import Any

from numba import njit


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """``function`` compiled by numba without the interpreter lock, as a decorator.

    Write ``@kernel`` or ``@kernel(fastmath=…)`` with numba's own options. A kernel that
    makes no array may be ``@kernel(counted=False)``: numba then counts no references, which
    costs a hundred times the work of a small kernel that is given many arrays. One that is
    called by kernels with structures of many arrays should be ``forceinline=True`` as well:
    else each call copies all their descriptions, a hundred nanoseconds. Where
    numba finds no folder that it may write its cache to (a read-only
    installation without a home), the kernel is compiled in every process.
    """
    if function is None:
        return partial(kernel, **options)
    if not options.pop("counted", True):
        options |= {"_nrt": False, "error_model": "numpy"}
    try:
        return _forgiving(njit(cache=True, nogil=True, **options)(function))
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
        return njit(nogil=True, **options)(function)


def plain(structure: tuple[Any, ...]) -> tuple[Any, ...]:
    """A named structure as plain tuples, whose types numba resolves in a tenth of the time."""
    return tuple(plain(part) if isinstance(part, tuple) else part for part in structure)


def _forgiving(compiled: Any) -> Any:
    """The kernel, for which a cache that cannot be read counts as empty.

    A cache that another version left may name a structure that is gone.
    """
    file = compiled._cache._cache_file
    load_index = file._load_index

    def known() -> dict[Any, str]:
        try:
            return dict(load_index())
        except (AttributeError, ImportError):
            return {}

    file._load_index = known
    return compiled
