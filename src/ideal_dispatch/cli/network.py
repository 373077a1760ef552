"""``ideal network``: road networks from OpenStreetMap, CSV or GraphML."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ideal_dispatch.cli.help import CommandLine
from ideal_dispatch.cli.options import check_file
from ideal_dispatch.cli.terminal import out, print_facts, stages, warn
from ideal_dispatch.errors import InputError
from ideal_dispatch.files import check_source

if TYPE_CHECKING:
    from ideal_dispatch.network import RoadNetwork

app = CommandLine("Build and look at road networks: the streets that ambulances can take.")


@dataclass(frozen=True, slots=True)
class MapOptions:
    """A map of the network, where one is asked for.

    Options:
      --map FILE  Also draw a map: .png, .svg or .pdf.
      --depots FILE  A .csv of depots, columns name, lon and lat, to mark on the map.
    """

    map_file: Path | None = None
    depots: Path | None = None

    def check(self, others: list[Path | None], force: bool) -> None:
        """Refuse before the work a map that would overwrite something or fail after it."""
        if self.map_file is None:
            if self.depots is not None:
                raise InputError("--depots marks a map: add --map FILE.png")
            return
        from ideal_dispatch.pages import figure_kind

        figure_kind(self.map_file)
        check_file(self.map_file, force, [self.depots, *others], "--map")

    def draw(self, network: "RoadNetwork", title: str) -> None:
        """Draw it, with the depots that are on the network."""
        if self.map_file is None:
            return
        from ideal_dispatch.network.drawing import draw_network
        from ideal_dispatch.network.readers.depot_table import read_depots
        from ideal_dispatch.pages import save_figure

        depots, elsewhere = read_depots(self.depots, network) if self.depots else ([], [])
        if elsewhere:
            first = f"the first: {elsewhere[0]}"
            warn(f"{len(elsewhere)} depots are not on this network; {first}", "note")
        with stages("Drawing"):
            save_figure(draw_network(network, depots, title=title), self.map_file)
        out.print(f"wrote {self.map_file}")


@app.command()
def build(
    output: Path,
    source: Path | None = None,
    nodes: Path | None = None,
    column: list[str] | None = None,
    directed: bool = False,
    bbox: str | None = None,
    place: str | None = None,
    simplify: bool = True,
    *,
    drawn: MapOptions,
    force: bool = False,
) -> None:
    r"""Read a road network, report what was kept and dropped, and write one file.

    Options:
      -o, --output FILE  The .network file to write.
      MAP  A map from OpenStreetMap (.osm.pbf, .osm, .osm.gz, .osm.bz2, .zip), the .json of an
          Overpass server or of OSMnx's cache, a .graphml, or a .csv of roads.
      --nodes FILE  The .csv of junctions that goes with a .csv of roads.
      --column FIELD=COLUMN  Which column of your .csv holds a field, where it is not found by its
          name: tail=start_node. Of several, as in length_m=measured,straight, the first with a
          value counts. Repeat it for every field.
      --directed  A row of the .csv is one direction of a street, not both.
      --bbox W,S,E,N  Only the area within these degrees: west, south, east, north. It is downloaded
          if no map is given.
      --place NAME  Download a place by its name (needs ideal-dispatch[geo]).
      --simplify/--no-simplify  Join small pieces of road from junction to junction, or keep them.

    Examples:
      ideal network build city.osm.pbf -o city.network --map city.png
      ideal network build edges.csv --nodes nodes.csv -o hk.network \
        --column tail=start_node --column head=end_node
      ideal network build --place "Monaco" -o monaco.network
    """
    from ideal_dispatch.network.readers import read_network
    from ideal_dispatch.network.readers.build import UNCONNECTED, UNCONNECTED_KM

    drawn.check([source, nodes, output], force)
    check_file(output, force, [drawn.depots, source, nodes])
    check_source(drawn.depots, source, nodes)
    with stages("Building") as progress:
        network = read_network(
            source,
            nodes=nodes,
            columns=_columns(column or []),
            directed=directed,
            box=_box(bbox),
            place=place,
            simplify=simplify,
            progress=progress,
        )
        progress("writing")
        network.save(output)
    _show(network, output.name)
    report = network.provenance["report"]
    lost = report["dropped"].get(UNCONNECTED, 0)
    if lost:
        km = report["dropped"].get(UNCONNECTED_KM, 0)
        whole = lost + report["read"].get("nodes before simplification", network.num_nodes)
        warn(
            f"{lost:,} of {whole:,} nodes and {km:,} km of road are dropped: they are outside the "
            "largest part in which every node can be reached from every other; is a road missing?"
        )
    drawn.draw(network, output.stem)
    out.print(f"wrote {output} ({output.stat().st_size / 1e6:.1f} MB)")


@app.command()
def info(file: Path, drawn: MapOptions, force: bool = False) -> None:
    """Show what a network file holds and how it was built.

    Options:
      FILE  A .network file.

    Example:
      ideal network info city.network --map city.svg
    """
    from ideal_dispatch.network import RoadNetwork

    drawn.check([file], force)
    check_source(drawn.depots, file)
    with stages("Loading"):
        network = RoadNetwork.load(file)
    _show(network, file.name)
    drawn.draw(network, file.stem)


def _columns(options: list[str]) -> dict[str, list[str]]:
    columns = {}
    for text in options:
        field, equals, names = text.partition("=")
        if not (field and equals and names):
            raise InputError(f"--column {text}: write it as FIELD=COLUMN")
        columns[field.strip()] = [name.strip() for name in names.split(",")]
    return columns


def _box(text: str | None) -> tuple[float, float, float, float] | None:
    if text is None:
        return None
    try:
        west, south, east, north = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--bbox {text}: write it as west,south,east,north") from None
    return west, south, east, north


def _show(network: "RoadNetwork", title: str) -> None:
    import numpy as np

    from ideal_dispatch.network.road_class import ROAD_CLASSES

    total_km = network.length_m.sum() / 1000

    def share(mask: Any) -> str:
        return f"{network.length_m[mask].sum() / 10 / total_km:.0f} %"

    rows = {
        "nodes": f"{network.num_nodes:,}",
        "directed edges": f"{network.num_edges:,}",
        "kilometres (each direction counted)": f"{total_km:,.0f}",
        "of them one-way": share(network.oneway),
        "of them with a known speed limit": share(~np.isnan(network.speed_kmh)),
        "of them with known lanes": share(~np.isnan(network.lanes)),
    }
    if not np.isnan(network.lon).any():
        rows["longitude"] = f"{network.lon.min():.5f} … {network.lon.max():.5f}"
        rows["latitude"] = f"{network.lat.min():.5f} … {network.lat.max():.5f}"
    rows["forbidden turns"] = _turns(network)
    rows["checksum"] = network.checksum
    print_facts(title, rows)
    counts = np.bincount(network.road_class, minlength=len(ROAD_CLASSES))
    classes = {
        name: f"{count:,} edges, {share(network.road_class == code)}"
        for code, (name, count) in enumerate(zip(ROAD_CLASSES, counts, strict=True))
        if count
    }
    print_facts("Road classes (share of the length)", classes)
    report = network.provenance.get("report", {})
    for part, heading in (
        ("read", f"Read from {report.get('source', '')}"),
        ("dropped", "Dropped"),
        ("assumed", "Assumed"),
    ):
        if report.get(part):
            print_facts(heading, {what: f"{n:,}" for what, n in report[part].items()})


def _turns(network: "RoadNetwork") -> str:
    """How many turns are forbidden, or why none is."""
    if network.forbidden_turns:
        return f"{len(network.forbidden_turns):,}"
    read = network.provenance.get("report", {}).get("read", {}).get("turn restrictions")
    if read is None:
        return "none known: not in the source"
    return f"none: its {read:,} restrictions do not apply" if read else "none in the source"
