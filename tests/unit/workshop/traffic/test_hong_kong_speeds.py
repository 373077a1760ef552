"""The reader on a made folder, and on the published files where they are."""

import gzip
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch.errors import InputError
from workshop.traffic.hong_kong_speeds import read_evening, read_instant

SPEEDS = """\
snapshot,link_id,region,road_type,saturation,speed_kmh,capture_date
a,1-2,HK,URBAN ROAD,TRAFFIC GOOD,25.0,2016-10-14T17:56:35
a,2-3,HK,MAJOR ROUTE,TRAFFIC GOOD,70.0,2016-10-14T17:56:16
a,3-4,HK,MAJOR ROUTE,TRAFFIC GOOD,70.0,2016-10-14T17:56:16
b,1-2,HK,URBAN ROAD,TRAFFIC BAD,0.0,2016-10-14T18:00:35
b,2-3,HK,MAJOR ROUTE,TRAFFIC GOOD,35.0,2016-10-14T18:00:16
b,3-4,HK,MAJOR ROUTE,TRAFFIC GOOD,35.0,2016-10-14T18:00:16
"""
LINKS = """\
Link ID,Start Node Eastings,Start Node Northings,Start Node Latitude,Start Node Longitude,\
End Node Eastings,End Node Northings,End Node Latitude,End Node Longitude,Road Type
3-4,0,0,22,114,0,500,22.01,114,MAJOR ROUTE
2-3,0,0,22,114,300,400,22.004,114.003,MAJOR ROUTE
1-2,0,0,22.2,114.2,0,50,22.3,114.4,URBAN ROAD
9-9,0,0,22.2,114.2,0,50,22.3,114.4,URBAN ROAD
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with gzip.open(tmp_path / "tsm_speed_20161014_peak.csv.gz", "wt") as file:
        file.write(SPEEDS)
    (tmp_path / "tsm_links.csv").write_text(LINKS)
    return tmp_path


def test_evening_is_read_link_by_link(folder: Path) -> None:
    evening = read_evening(folder)
    assert np.exp(evening.values) == pytest.approx(np.array([[2, 1], [25, 2]]), rel=1e-5)
    assert np.diff(evening.seconds).tolist() == [240]
    assert evening.length_m.tolist() == [50, 500]
    assert (evening.lon[0], evening.lat[0]) == pytest.approx((114.3, 22.25))


def test_a_link_that_repeats_another_counts_once(folder: Path) -> None:
    assert read_evening(folder, "MAJOR ROUTE").values.shape == (2, 1)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"tsm_speed_20161014_peak.csv.gz: no such file"):
        read_evening(tmp_path)


def test_the_published_files(shared_data: Path) -> None:
    evening = read_evening(shared_data / "hong_kong")
    assert evening.values.shape == (22, 559)
    clock = [f"{datetime.fromtimestamp(s, UTC):%H:%M}" for s in evening.seconds]
    assert (clock[0], clock[-1]) == ("17:56", "18:50")
    instant = read_instant(shared_data / "hong_kong")
    assert instant.values.shape == (1, 4401)
    assert 0.7 < np.median(np.exp(-instant.values)) < 1.0
