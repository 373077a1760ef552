"""Road networks from files and downloads: one function for every kind of source."""

import os
from collections.abc import Mapping, Sequence

from ideal_dispatch.errors import InputError
from ideal_dispatch.network.readers.build import Box, Progress, build_network
from ideal_dispatch.network.road_network import RoadNetwork

_OSM = (".osm", ".osm.gz", ".osm.bz2", ".osm.pbf", ".pbf", ".osm.zip", ".zip", ".json")
_GRAPHML = (".graphml",)
_CSV = (".csv", ".csv.gz")


def read_network(
    source: str | os.PathLike[str] | None = None,
    *,
    nodes: str | os.PathLike[str] | None = None,
    columns: Mapping[str, Sequence[str]] | None = None,
    directed: bool = False,
    box: Box | None = None,
    place: str | None = None,
    simplify: bool = True,
    progress: Progress = lambda stage: None,
) -> RoadNetwork:
    """The network of a file, cut to ``box`` if given, or of a download where there is no file."""
    west, south, east, north = box or (-180, -90, 180, 90)
    if not (-180 <= west < east <= 180 and -90 <= south < north <= 90):
        raise InputError(f"box {box}: west,south,east,north in degrees are needed, in this order")
    if source is None:
        if (box is None) == (place is None):
            raise InputError("give a file, or one of --bbox and --place to download")
        from ideal_dispatch.network.readers.osmnx_graphs import download

        return build_network(download(box, place, progress), simplify=simplify, progress=progress)
    if place is not None:
        raise InputError("--place downloads; it cannot be combined with a file")
    where = os.fspath(source)
    if not where.endswith(_CSV) and (nodes is not None or columns or directed):
        raise InputError("--nodes, --column and --directed belong to CSV files")
    # each reader imports other libraries, which takes a while
    if where.endswith(_CSV):
        if nodes is None:
            raise InputError(f"{where}: an edge list needs its nodes: add --nodes NODES.csv")
        from ideal_dispatch.network.readers.csv_files import read_csv_pair

        roads = read_csv_pair(where, nodes, columns=columns, directed=directed, progress=progress)
    elif where.endswith(_GRAPHML):
        from ideal_dispatch.network.readers.osmnx_graphs import read_graphml

        roads = read_graphml(where, progress)
    elif where.endswith(_OSM):
        from ideal_dispatch.network.readers.osm import read_osm

        roads = read_osm(where, progress)
    else:
        known = ", ".join((*_OSM, *_GRAPHML, *_CSV))
        raise InputError(f"{where}: unknown kind of file; one of {known} is needed")
    return build_network(roads, box=box, simplify=simplify, progress=progress)
