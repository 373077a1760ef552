"""Every benchmark by its name; ``ideal bench shortest_paths`` runs one."""

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
