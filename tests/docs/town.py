"""A made-up town with everything the pages name: an extract, depots, an agency's records."""

import csv
from pathlib import Path

import osmium

from ideal_dispatch import RoadNetwork
from ideal_dispatch.network.readers import read_network
from ideal_dispatch.network.readers.depot_table import read_depots
from ideal_dispatch.records.synthetic.records import RecordsParams, synthesise

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
    for name, seed in (("records.csv", 1), ("newer.csv", 2)):
        made = synthesise(
            network, depots, "Europe/London", seed=seed,
            params=RecordsParams(count=count, defects_each=3),
        )  # fmt: skip
        made.save(folder / name)
        with open(folder / name, encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
        with open(folder / name, "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([[COLUMNS.get(cell, cell) for cell in header], *rows])


def write_town(folder: Path) -> None:
    """The extract, the depots and the records."""
    write_extract(folder / "city.osm.pbf")
    (folder / "depots.csv").write_text(DEPOTS)
    write_records(folder, read_network(folder / "city.osm.pbf"))
