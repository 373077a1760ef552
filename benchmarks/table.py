"""Every benchmark by its name; ``ideal bench shortest_paths`` runs one."""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from rich.console import Console
from threadpoolctl import threadpool_limits

from ideal_dispatch.errors import InputError

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 140
Benchmark = Callable[[Console], None]

NAMES = (
    "shortest_paths", "map_matching", "target_radius", "gap", "algorithm_2", "training", "traffic",
    "replay", "decision", "service", "fleet", "price",
)  # fmt: skip
"""Modules of this package, each with a function ``run``."""


def chosen(names: Sequence[str]) -> list[str]:
    """Those named, each once, or all."""
    for name in names:
        if name not in NAMES:
            raise InputError(f"no benchmark {name!r}; there are: {', '.join(NAMES)}")
    return list(dict.fromkeys(names or NAMES))


def benchmark(name: str) -> Benchmark:
    """A benchmark; what it is compared with must be installed."""
    try:
        found: Benchmark = import_module(f"benchmarks.{name}").run
    except ModuleNotFoundError as error:
        raise InputError(
            f"benchmark {name}: {error.name} is not installed; `make bench` installs what it needs"
        ) from None
    return found


def run(made: Benchmark, console: Console) -> None:
    """Run a benchmark on one BLAS thread, also without the environment of `make bench`."""
    with threadpool_limits(1):
        made(console)
