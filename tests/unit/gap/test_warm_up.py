import numpy as np

from benchmarks.networks import smooth_embeddings
from ideal_dispatch import ScenarioSet, optimistic_gap, target_radius
from ideal_dispatch.cities import harbour_city
from ideal_dispatch.gap import certificate_kernels, corridor, dca, starts
from ideal_dispatch.gap.warm_up import warm_up
from ideal_dispatch.scenarios import metric_paths, spectrum

KERNELS = (
    dca.iterate,
    dca.descend_to_new_paths,
    dca.linear_minimum,
    starts.promising_directions,
    certificate_kernels.explore,
    certificate_kernels.corridor_lengths,
    certificate_kernels.dominates,
    corridor.off_directions,
    metric_paths.fastest_edges,
    spectrum.largest_product,
)


def test_nothing_is_left_to_compile() -> None:
    """After warming up, real questions meet compiled kernels."""
    warm_up()
    before = [len(kernel.signatures) for kernel in KERNELS]
    city = harbour_city()
    scenarios = ScenarioSet(smooth_embeddings(city.network, 4), 0.1)
    rng = np.random.default_rng(0)
    for destination in (100, 900):
        times = scenarios.nominal_times * rng.uniform(0.8, 1.25, city.network.num_edges)
        primary = city.network.shortest_path(times, city.depots, destination)
        question = (city.network, scenarios, city.depots, destination, primary)
        optimistic_gap(*question, method="dca")
        optimistic_gap(*question, method="multistart")
        optimistic_gap(*question, threshold_s=30.0)
        optimistic_gap(*question, time_limit_s=1.0)
        observed_s = 1.3 * city.network.distances(scenarios.nominal_times, 0)[destination]
        target_radius(city.network, scenarios.embeddings, 0, destination, observed_s)
    assert [len(kernel.signatures) for kernel in KERNELS] == before
