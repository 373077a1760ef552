"""Made-up unit logs whose truth is known, on the grid of the tests."""

import numpy as np

from ideal_dispatch import RoadNetwork
from ideal_dispatch.records.responses import Responses

STATIONS = {"North": 113, "East": 65, "South": 6, "West": 48}
TURNOUT_S, SLOWNESS = 70.0, 1.5
PROVENANCE = {"source": "made up", "agency": {"time_zone": "Asia/Hong_Kong", "country": "HK"}}


def town_log(
    network: RoadNetwork, calls: int = 400, days: int = 60, seed: int = 0, *, places: bool = True
) -> Responses:
    """Two units to every call, from two of four stations, their times log-normal around the truth.

    Every tenth call has one unit alone, every twentieth a second that was recalled.
    """
    rng = np.random.default_rng(seed)
    names, nodes = list(STATIONS), list(STATIONS.values())
    times_s = network.free_flow_times_s
    rows: dict[str, list[object]] = {
        name: [] for name in
        ("incident", "station", "unit", "at", "node", "start", "on_scene", "cleared")
    }  # fmt: skip
    first = np.datetime64("2023-01-01T00:00:00")
    elsewhere = np.setdiff1d(np.arange(network.num_nodes), nodes)
    for call in range(calls):
        node = int(rng.choice(elsewhere))
        at = first + np.timedelta64(int(rng.integers(days * 86400)), "s")
        trouble = 0.1 * rng.standard_normal()
        free_s = [network.shortest_path(times_s, [start], node).time_s(times_s) for start in nodes]
        two = np.argsort(free_s, kind="stable")[: 1 if call % 10 == 9 else 2]
        for place in two.tolist():
            noise = np.exp(trouble + 0.25 * rng.standard_normal())
            took = int(TURNOUT_S + SLOWNESS * free_s[place] * noise) + 1
            recalled = call % 20 == 8 and place == two[-1]
            rows["incident"].append(f"C{call:04d}")
            rows["station"].append(names[place])
            rows["unit"].append(f"{names[place]} 1")
            rows["at"].append(at)
            rows["node"].append(node)
            rows["start"].append(nodes[place])
            arrival = np.datetime64("NaT") if recalled else at + np.timedelta64(took, "s")
            rows["on_scene"].append(arrival)
            rows["cleared"].append(at + np.timedelta64(40 if recalled else took + 900, "s"))
    scenes, starts = np.array(rows["node"], int), np.array(rows["start"], int)
    where = {
        "lon": network.lon[scenes], "lat": network.lat[scenes],
        "from_lon": network.lon[starts], "from_lat": network.lat[starts],
    } if places else {}  # fmt: skip
    moments = np.array(rows["at"], "M8[s]")
    return Responses.of(
        np.array(rows["incident"]),
        unit=np.array(rows["unit"]),
        station=np.array(rows["station"]),
        kind=np.full(moments.size, "ambulance"),
        district=np.where(scenes < 60, "Lower town", "Upper town"),
        received=moments,
        dispatched=moments,
        on_scene=np.array(rows["on_scene"], "M8[s]"),
        cleared=np.array(rows["cleared"], "M8[s]"),
        time_zone="Asia/Hong_Kong",
        provenance=PROVENANCE,
        **where,
    )
