"""``ideal bench``: measure here what the benchmark page says."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from ideal_dispatch.cli.terminal import out
from ideal_dispatch.errors import InputError


def bench(names: list[str] | None = None, list_: bool = False) -> None:
    """Measure how fast this program is here, beside others; for its developers.

    Works in a clone of the project with the packages of `make bench`. All
    benchmarks take an hour and want a quiet machine. `make bench WRITE=1`
    also puts the tables on the benchmark page.

    Options:
      NAME...  Which benchmarks; all of them by default.
      --list  Print the names of the benchmarks and exit.

    Examples:
      ideal bench shortest_paths
      ideal bench shortest_paths gap
    """
    from rich.console import Console

    table = benchmark_table()
    chosen = table.chosen(names or ())
    if list_:
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
