"""A made-up town with everything the pages name: an extract, depots, an agency's records."""

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import osmium

from ideal_dispatch import RoadNetwork
from ideal_dispatch.files import write_csv
from ideal_dispatch.network.readers import read_network
from ideal_dispatch.network.readers.depot_table import read_depots
from workshop.samples import Service, records

WEST, SOUTH, STEP, SIDE = -1.520, 53.800, 0.003, 15
DEPOTS = "name,call_sign,lon,lat\nWest,W,-1.5190,53.8010\nEast,E,-1.4785,53.8090\n"
COLUMNS = {
    "call_id": "Incident", "call_at": "Received", "en_route_at": "Mobile", "depot": "Station",
    "on_scene_at": "At scene", "cpr_at": "CPR", "floor": "Floor", "lon": "Longitude",
    "lat": "Latitude",
}  # fmt: skip


def write_extract(file: Path) -> None:
    """Streets on a grid, as OpenStreetMap has them: avenues are quicker, one is one-way."""
    ids = [[1 + row * SIDE + column for column in range(SIDE)] for row in range(SIDE)]
    with osmium.SimpleWriter(str(file)) as writer:
        for row in range(SIDE):
            for column in range(SIDE):
                place = (WEST + STEP * column, SOUTH + STEP / 3 * row)
                writer.add_node(osmium.osm.mutable.Node(id=ids[row][column], location=place))
        for number in range(SIDE):
            across, along = ids[number], [line[number] for line in ids]
            kind = {"highway": "secondary", "maxspeed": "60"} if number % 4 == 0 else {}
            for offset, nodes, name in ((1000, across, "Row"), (2000, along, "Lane")):
                tags = {"highway": "residential", "name": f"{name} {number + 1}"} | kind
                if number == 3:
                    tags["oneway"] = "yes"
                writer.add_way(osmium.osm.mutable.Way(id=offset + number, nodes=nodes, tags=tags))


def write_records(folder: Path, network: RoadNetwork, count: int = 300) -> None:
    """Past calls, and newer ones, in columns called as the town's agency calls them."""
    depots, _ = read_depots(folder / "depots.csv", network)
    times = {one.node: network.distances(network.free_flow_times_s, one) for one in depots}

    def drive_s(origin: int, destination: int, at: datetime) -> float:
        return (1.2 + 0.1 * (at.hour % 3)) * float(times[origin][destination])

    there = Service(network, depots, ZoneInfo("Europe/London"), drive_s, 2023, on_road=0.0)
    for name, seed in (("records.csv", 1), ("newer.csv", 2)):
        rows = [cells for cells, _ in records(there, seed, count, each=3)]
        header = [COLUMNS.get(cell, cell) for cell in rows[0]]
        write_csv(folder / name, header, [list(cells.values()) for cells in rows])


def write_town(folder: Path) -> None:
    """The extract, the depots and the records."""
    write_extract(folder / "city.osm.pbf")
    (folder / "depots.csv").write_text(DEPOTS)
    write_records(folder, read_network(folder / "city.osm.pbf"))
