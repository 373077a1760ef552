"""``ideal bench``: measure here what the benchmark page says."""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ideal_dispatch.cli.options import argument, flag
from ideal_dispatch.cli.terminal import out
from ideal_dispatch.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

EPILOG = """\
Examples:
  ideal bench shortest_paths
  ideal bench shortest_paths gap
"""

WIDTH = 140
Benchmark = Callable[["Console"], None]


def bench(
    names: Annotated[
        list[str] | None, argument("NAME...", "Which benchmarks; all of them by default.")
    ] = None,
    list_only: Annotated[
        bool, flag("--list", "Print the names of the benchmarks and exit.")
    ] = False,
) -> None:
    """Measure how fast this program is here, beside others; for its developers.

    Works in a clone of the project with the packages of `make bench`. All
    benchmarks take an hour and want a quiet machine. `make bench WRITE=1`
    also puts the tables on the benchmark page.
    """
    from rich.console import Console

    chosen = chosen_benchmarks(checkout(), names or ())
    if list_only:
        out.print("\n".join(chosen), markup=False)
        return
    for benchmark in chosen.values():
        run(benchmark, Console(width=WIDTH))


def checkout() -> Path:
    """The clone that this package is installed from: benchmarks are not part of the package."""
    root = Path(__file__).resolve().parents[3]
    if not (root / "benchmarks" / "table.py").is_file():
        raise InputError(
            "ideal bench: works in a clone of the project, installed from there; "
            "get one and run `make bench`"
        )
    return root


def chosen_benchmarks(root: Path, names: Sequence[str]) -> dict[str, Benchmark]:
    """The benchmarks of a clone by name: those named, or all."""
    known = _benchmarks(root)
    for name in names:
        if name not in known:
            raise InputError(f"no benchmark {name!r}; there are: {', '.join(known)}")
    return {name: known[name] for name in names or known}


def _benchmarks(root: Path) -> dict[str, Benchmark]:
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))  # and stays: processes that a benchmark starts look there
    try:
        found: dict[str, Benchmark] = import_module("benchmarks.table").BENCHMARKS
    except ModuleNotFoundError as error:
        raise InputError(
            f"ideal bench: {error.name} is not installed; `make bench` installs what it needs"
        ) from None
    return found


def run(benchmark: Benchmark, console: "Console") -> None:
    """Run a benchmark on one BLAS thread, also without the environment of `make bench`."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        benchmark(console)
