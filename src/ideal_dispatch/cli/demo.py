"""``ideal demo``: the story so far on the embedded city."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from numpy.random import Generator

    from ideal_dispatch.cities import City
    from ideal_dispatch.network import Depot
    from ideal_dispatch.network import Path as Route


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the map.")] = Path(
        "out/demo"
    ),
    seed: Annotated[int, typer.Option(min=0, help="Another number, another call.")] = 7,
) -> None:
    """One call on the embedded city: who can get there, how fast, and by which road.

    Example: ideal demo --seed 3
    """
    import numpy as np

    from ideal_dispatch.cities import harbour_city
    from ideal_dispatch.cli.terminal import out, print_facts, stages
    from ideal_dispatch.network.drawing import draw_network, save_figure

    with stages("Loading the embedded city"):
        city = harbour_city()
    network, rng = city.network, np.random.default_rng(seed)
    print_facts(
        f"{city.name}, a fictional harbour city",
        {
            "nodes": f"{network.num_nodes:,}",
            "directed edges": f"{network.num_edges:,}",
            "depots": ", ".join(depot.name for depot in city.depots),
            "hospitals": ", ".join(hospital.name for hospital in city.hospitals),
        },
        justify="left",
    )
    times = network.free_flow_times_s
    incident = _contested_node(city, rng)
    routes = [network.shortest_path(times, depot, incident) for depot in city.depots]
    region = city.depots[city.region[incident]]
    print_facts(
        f"A call in {city.districts[city.district[incident]]}, near {_street(city, routes[0])}",
        {
            f"from {depot.name}": _describe(city, route)
            for depot, route in zip(city.depots, routes, strict=True)
        },
        justify="left",
    )
    order = np.argsort([route.time_s(times) for route in routes])
    first, second = routes[order[0]], routes[order[1]]
    margin = second.time_s(times) - first.time_s(times)
    shared_km = network.length_m[np.intersect1d(first.edges, second.edges)].sum() / 1000
    _conclude(city.depots[order[0]], region, margin, shared_km)

    output.mkdir(parents=True, exist_ok=True)
    target = output / "city.png"
    with stages("Drawing"):
        figure = draw_network(network, city.depots, [first, second], f"{city.name}: one call")
        save_figure(figure, target)
    out.print(f"wrote {target}")
    out.print("next: [bold]ideal network build --help[/], with the roads of your own city")


def _contested_node(city: "City", rng: "Generator") -> int:
    """A random node that neither depot reaches much sooner than the other."""
    import numpy as np

    times = city.network.free_flow_times_s
    seconds = np.array([city.network.distances(times, depot) for depot in city.depots])
    seconds.sort(axis=0)
    contested = np.flatnonzero((seconds[1] < 1.15 * seconds[0]) & (seconds[0] > 150))
    return int(rng.choice(contested))


def _street(city: "City", route: "Route") -> str:
    named = [city.network.name[edge] for edge in route.edges if city.network.name[edge]]
    return named[-1] if named else "the shore"


def _describe(city: "City", route: "Route") -> str:
    network = city.network
    seconds = route.time_s(network.free_flow_times_s)
    metres: dict[str, float] = {}
    for edge in route.edges:
        name = network.name[edge]
        metres[name] = metres.get(name, 0.0) + float(network.length_m[edge])
    roads = sorted((name for name in metres if name), key=lambda name: -metres[name])[:2]
    minutes = f"{seconds // 60:.0f} min {seconds % 60:02.0f} s"
    return f"{minutes}, {route.length_m(network) / 1000:.1f} km by {' and '.join(roads)}"


def _conclude(quickest: "Depot", region: "Depot", margin_s: float, shared_km: float) -> None:
    from ideal_dispatch.cli.terminal import out

    agree = "as the territory map says too" if quickest == region else (
        f"though the territory map says {region.name}"
    )  # fmt: skip
    out.print(
        f"On empty roads {quickest.name} is {margin_s:.0f} s quicker, {agree}. "
        "Traffic decides the rest: that is what a second ambulance insures against."
    )
    if shared_km:
        out.print(f"The routes share {shared_km:.1f} km, where one jam would hold up both.\n")
    else:
        out.print("The routes share no road: one jam cannot hold up both.\n")
