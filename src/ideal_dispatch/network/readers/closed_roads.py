"""Roads that somebody closes: edges by their numbers, or drawn in a GeoJSON file."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import shapely

from ideal_dispatch.errors import IdealError, InputError
from ideal_dispatch.files import check_source
from ideal_dispatch.network.closing import closed_edges
from ideal_dispatch.network.road_network import RoadNetwork


def read_closed(network: RoadNetwork, told: Sequence[str]) -> set[int]:
    """The edges that are closed, or one line on what was told wrong."""
    closed: set[int] = set()
    for text in told:
        try:
            for kind, drawn in _drawn(text):
                closed |= set(closed_edges(network, kind, drawn))
        except IdealError as error:
            raise InputError(f"--closed {text}: {error}") from None
    return closed


def _drawn(text: str) -> Iterator[tuple[str, list[int] | list[list[float]]]]:
    """The kinds and shapes that an option names."""
    parts = [part.strip() for part in text.split(",")]
    if all(part.isdecimal() for part in parts):
        yield "edges", [int(part) for part in parts]
        return
    if not text.lower().endswith((".geojson", ".json")):
        raise InputError("write numbers of edges, as in 12,13, or the name of a .geojson")
    check_source(Path(text))
    try:
        shapes = shapely.from_geojson(Path(text).read_text(encoding="utf-8-sig"))
    except (shapely.errors.GEOSException, UnicodeDecodeError) as error:
        raise InputError(f"no GeoJSON ({str(error).splitlines()[0]})") from None
    parts_left = [shapes]
    while parts_left:
        shape = parts_left.pop()
        if shape.geom_type == "Polygon" and not shape.is_empty:
            yield "polygon", shapely.get_coordinates(shape.exterior).tolist()
        elif shape.geom_type == "LineString" and not shape.is_empty:
            yield "line", shapely.get_coordinates(shape).tolist()
        elif hasattr(shape, "geoms") and not shape.is_empty:
            parts_left += shape.geoms
        else:
            raise InputError(f"a {shape.geom_type} closes no road; draw lines or polygons")
