"""Run every benchmark, or those named: ``python -m benchmarks shortest_paths``."""

import platform
import sys
from collections.abc import Callable

from rich.console import Console

from benchmarks import (
    gap,
    map_matching,
    replay,
    service,
    shortest_paths,
    target_radius,
    traffic,
    training,
)

BENCHMARKS: dict[str, Callable[[Console], None]] = {
    "shortest_paths": shortest_paths.run,
    "map_matching": map_matching.run,
    "target_radius": target_radius.run,
    "gap": gap.run,
    "training": training.run,
    "traffic": traffic.run,
    "replay": replay.run,
    "service": service.run,
}


def main() -> None:
    console = Console(width=140)
    names = sys.argv[1:] or list(BENCHMARKS)
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        sys.exit(f"no benchmark {unknown[0]!r}; there are: {', '.join(BENCHMARKS)}")
    console.print(f"{platform.machine()}, Python {platform.python_version()}, one process")
    for name in names:
        BENCHMARKS[name](console)


if __name__ == "__main__":
    main()
