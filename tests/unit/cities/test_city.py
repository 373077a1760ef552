from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch.cities import City, Hospital
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.network import Depot, RoadNetwork


@pytest.fixture
def hamlet() -> City:
    return City(
        name="Hamlet",
        network=RoadNetwork.from_arrays([0, 1], [1, 0], [50.0, 50.0]),
        depots=(Depot("Mill", 0),),
        hospitals=(Hospital("Infirmary", 1),),
        region=np.zeros(2, np.int32),
        districts=("Upper", "Lower"),
        district=np.array([0, 1], np.int32),
        time_zone="Asia/Hong_Kong",
        country="HK",
    )


def test_a_saved_city_comes_back(hamlet: City, tmp_path: Path) -> None:
    hamlet.save(tmp_path / "hamlet")
    again = City.load(tmp_path / "hamlet")
    assert again.network.checksum == hamlet.network.checksum
    assert again.depots == hamlet.depots
    assert again.hospitals == hamlet.hospitals
    assert again.district.tolist() == [0, 1]


def test_territories_are_read_only(hamlet: City) -> None:
    with pytest.raises(ValueError, match="read-only"):
        hamlet.region[0] = 1


def test_a_territory_without_a_depot_is_refused(hamlet: City) -> None:
    with pytest.raises(InputError, match="region: every node needs one of 1 numbers from 0"):
        replace(hamlet, region=np.array([0, 1], np.int32))


def test_a_hospital_outside_the_network_is_refused(hamlet: City) -> None:
    with pytest.raises(InputError, match=r"Infirmary: 7 is not a node \(0 … 1\)"):
        replace(hamlet, hospitals=(Hospital("Infirmary", 7),))


def test_files_that_are_no_city(hamlet: City, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none.json: no such file"):
        City.load(tmp_path / "none")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(FileFormatError, match="bad.json: not a city file"):
        City.load(tmp_path / "bad")
