"""``ideal bench``: measure here what the benchmark page says."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from ideal_dispatch.cli.options import argument, flag
from ideal_dispatch.cli.terminal import out
from ideal_dispatch.errors import InputError

EPILOG = """\
Examples:
  ideal bench shortest_paths
  ideal bench shortest_paths gap
"""


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

    table = benchmark_table()
    chosen = table.chosen(names or ())
    if list_only:
        out.print("\n".join(chosen), markup=False)
        return
    for name in chosen:
        table.run(table.benchmark(name), Console(width=table.WIDTH))


def benchmark_table() -> Any:
    """The module ``benchmarks.table`` of the clone that this package is installed from."""
    root = Path(__file__).resolve().parents[3]
    if not (root / "benchmarks" / "table.py").is_file():
        raise InputError(
            "ideal bench: works in a clone of the project, installed from there; "
            "get one and run `make bench`"
        )
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))  # and stays: processes that a benchmark starts look there
    return import_module("benchmarks.table")
