"""After the warm-up nothing is left to compile, whatever the caller's arrays look like."""

import subprocess
import sys

PROGRAM = """
import numpy as np
from ideal_dispatch import Depot, RoadNetwork
from ideal_dispatch.network import map_matching_kernels, shortest_path
from ideal_dispatch.network.map_matching import match_route
from ideal_dispatch.gap.warm_up import warm_up

def compiled():
    kernels = {**vars(shortest_path), **vars(map_matching_kernels)}
    return {n: len(k.signatures) for n, k in kernels.items() if hasattr(k, "signatures")}

warm_up()
before = compiled()
tail, head = [0, 1, 2, 1, 2, 3], [1, 2, 3, 0, 1, 2]
lon = [0.0, 0.001, 0.002, 0.003]
network = RoadNetwork.from_arrays(tail, head, [111.0] * 6, lon, [0.0] * 4)
writable = np.array(network.length_m)
unaligned = np.frombuffer(b"x" + writable.tobytes(), np.uint8)[1:].view(np.float64)
strided = np.repeat(writable, 2)[::2]
uneven, plateau = writable * [1, 1, 1e9, 1, 1, 1], writable * [1, 0, 0, 1, 1, 1]
potential = network.distances_to(writable, 3)
for times in (writable, network.length_m, writable.tolist(), writable.astype("f4"), strided,
              unaligned, uneven, plateau):
    path = network.shortest_path(times, 0, 3)
    network.shortest_path(times, [0, Depot("B", 1)], np.int64(3))
    network.shortest_path(times, np.array([0, 1]), 3, potential_s=potential)
    network.shortest_path(times, 0, 3, potential_s=[0.0] * 4)
    network.distances(times, 0)
    network.shortest_paths(times, [0, 1], [3, 3])
batch = np.tile(writable, (40, 1))
network.shortest_paths(batch, [0] * 40, [3] * 40, threads=2)
network.shortest_paths(np.asfortranarray(batch), np.zeros(40), np.full(40, 3))
line = path.coordinates(network)
for route in (line, line.tolist(), np.asfortranarray(line)):
    match_route(network, route)
    match_route(network, route, 0, Depot("D", 3))
assert writable.flags.writeable, "the caller's array stays as it was"
assert compiled() == before, (before, compiled())
assert not any(array.flags.writeable for array in network.outgoing)
"""


def test_nothing_is_compiled_after_the_warm_up() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
