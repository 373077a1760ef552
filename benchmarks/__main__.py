"""Run every benchmark, or those named: ``python -m benchmarks shortest_paths``."""

import importlib
import platform
import sys

from rich.console import Console

NAMES = ("shortest_paths", "map_matching")


def main() -> None:
    console = Console(width=100)
    console.print(f"{platform.machine()}, Python {platform.python_version()}, one process")
    for name in sys.argv[1:] or NAMES:
        importlib.import_module(f"benchmarks.{name}").run(console)


main()
