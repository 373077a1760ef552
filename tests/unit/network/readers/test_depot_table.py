from pathlib import Path

import pytest

from ideal_dispatch import Depot, RoadNetwork
from ideal_dispatch.errors import InputError
from ideal_dispatch.network.readers import read_network
from ideal_dispatch.network.readers.depot_table import read_depots
from ideal_dispatch.records.agency import Depots
from ideal_dispatch.records.places import read_depot_book
from tests.unit.network.readers.test_csv_files import _write


def test_depots(tmp_path: Path) -> None:
    network = read_network(**_write(tmp_path), simplify=False)
    table = tmp_path / "depots.csv"
    table.write_text(
        "stations,,source: somewhere\nname,x,y,beds\nNorth,7.0101,43.01,3\nSouth,7.0,43.0\n"
        "Far,9.0,43.0,1\n,,\n"
    )
    depots, elsewhere = read_depots(table, network)
    ids = network.node_ids.tolist()
    assert depots == [Depot("North", ids.index("3")), Depot("South", ids.index("A1"))]
    assert len(elsewhere) == 1
    assert "depot Far: longitude 9.000000" in elsewhere[0]
    table.write_text("name,x,y\nNorth,7.0,here\n")
    with pytest.raises(InputError, match=r"depots.csv line 2: lat is 'here'"):
        read_depots(table, network)


def test_depots_take_their_names_from_one_column(grid: RoadNetwork, tmp_path: Path) -> None:
    """Numbers of another column would meet those of the first."""
    lon, lat = grid.lon, grid.lat
    rows = [f"{i},{lon[i]},{lat[i]},{number}" for i, number in enumerate(("7", "8", "", "3"))]
    table = tmp_path / "stations.csv"
    table.write_text("\n".join(["index,lon,lat,station #", *rows]))
    depots, off = read_depots(table, grid)
    assert [depot.name for depot in depots] == ["7", "8", "line 4", "3"]
    assert off == []


def test_two_depots_of_one_name_are_refused(tmp_path: Path) -> None:
    network = read_network(**_write(tmp_path), simplify=False)
    table = tmp_path / "depots.csv"
    table.write_text("name,lon,lat\nNorth,7.0101,43.01\nSouth,7.0,43.0\nNorth,7.0,43.0\n")
    with pytest.raises(InputError, match=r"csv line 4: depot North is in line 2 already; give"):
        read_depots(table, network)


@pytest.mark.parametrize("column", ["station #", "index"])
def test_numbers_of_rows_are_names_only_if_there_are_no_others(
    column: str, grid: RoadNetwork, tmp_path: Path
) -> None:
    table = tmp_path / "depots.csv"
    for named, names in (("id", ["2", "1"]), ("code", ["KP", "GB"])):
        rows = [f"{i + 1},{name},{grid.lon[i]},{grid.lat[i]}" for i, name in enumerate(names)]
        table.write_text("\n".join([f"{column},{named},lon,lat", *rows]))
        assert [depot.name for depot in read_depots(table, grid)[0]] == names
        assert read_depot_book(table, grid, Depots()).names == tuple(names)


def test_units_on_the_road_have_a_row_of_their_own(tmp_path: Path) -> None:
    network = read_network(**_write(tmp_path), simplify=False)
    table = tmp_path / "depots.csv"
    table.write_text("name,lon,lat,on_road,kind\nNorth,7.0101,43.01,,\nA7,7.0,43.0,Yes,medic\n")
    depots, _ = read_depots(table, network)
    assert [(depot.on_road, depot.kind) for depot in depots] == [(False, ""), (True, "medic")]
    table.write_text("name,lon,lat,on_road\nNorth,7.0101,43.01,perhaps\n")
    with pytest.raises(InputError, match="line 2: on_road 'perhaps'; write yes or no"):
        read_depots(table, network)
