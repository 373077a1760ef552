"""The plausibility page from end to end, on a small town."""

import re
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch import Depot, RoadNetwork
from ideal_dispatch.cities import TRAINING_DAYS, harbour_city, harbour_traffic
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.traffic.recording import RecordedTraffic
from ideal_dispatch.traffic.synthetic import SyntheticParams, synthetic_traffic
from tests.unit.workshop.traffic.small import CALENDAR, recording
from workshop.pictures import save_figures
from workshop.traffic.__main__ import plausibility
from workshop.traffic.contests import ContestParams
from workshop.traffic.page import (
    Plausibility,
    examine,
    markdown,
    nearest_region,
)

DEPOTS = (Depot("West", 48), Depot("East", 59))
FIGURES = ["by_hour", "example", "issues", "memory", "reach", "speeds"]
DEPOTS_CSV = "name,lon,lat\nWest,114.0,22.004\nEast,114.011,22.004\n"


def _recorded(grid: RoadNetwork, days: int = 2) -> RecordedTraffic:
    params = SyntheticParams(days=days, hours=((16, 20),), incidents_per_hour=40, seed=2)
    return synthetic_traffic(grid, CALENDAR, params)


@pytest.fixture(scope="module")
def found(grid: RoadNetwork) -> Plausibility:
    broken = np.random.default_rng(0).lognormal(0.0, 0.3, (1, 180, grid.num_edges))
    broken[0, :40] = np.nan
    recordings = {
        "town": _recorded(grid),
        "broken": recording(grid, [date(2023, 5, 8)], broken, first_hour=17),
    }
    contests = ContestParams(nodes=10, calls=3)
    return examine(recordings, DEPOTS, nearest_region(grid, DEPOTS), contests=contests)


@pytest.fixture(scope="module")
def folder(grid: RoadNetwork, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with town.network, depots.csv and three days in town.traffic."""
    place = tmp_path_factory.mktemp("town")
    grid.save(place / "town.network")
    (place / "depots.csv").write_text(DEPOTS_CSV)
    _recorded(grid, 3).save(place / "town.traffic")
    return place


def test_the_page_has_every_figure_and_the_table(found: Plausibility) -> None:
    drawn = found.figures()
    html = found.html(drawn)
    assert sorted(name.removeprefix("traffic_") for name in drawn) == FIGURES
    assert html.count("<img") == len(FIGURES)
    for row in found.table()[1]:
        assert row[0].replace("'", "&#39;").replace("<", "&lt;") in html


def test_what_broke_off_is_a_warning(found: Plausibility) -> None:
    assert found.warnings() == ["broken: Mon 08 May 2023: no vehicle seen from 17:00 to 17:40"]
    assert found.warnings()[0] in found.html({})


def test_the_table_says_what_the_checks_found(found: Plausibility) -> None:
    header, rows = found.table()
    assert header == ["", "town", "broken", "paper"]
    table = {row[0]: row[1:] for row in rows}
    assert all(len(row) == len(header) for row in rows)
    assert table["days: working + others"] == ["2 + 0", "1 + 0", "–"]
    assert table["days differ at an hour by, whole city"][1] == "–"
    town = found.columns[0]
    assert table["calls contested"][0] == str(len(town.contests))
    a, b = 100 * town.contests.reversal_share()
    assert table["2: promised best loses, inst. / exp."][0] == f"{a:.0f} % / {b:.0f} %"
    assert table["1: region's depot is best, inst. / exp."][-1] == "56 %"


def test_a_table_in_markdown_is_even() -> None:
    lines = markdown(["", "a"], [["long name", "1"], ["x", "22,000"]]).splitlines()
    assert lines[0] == "|           |      a |"
    assert lines[1] == "| --------- | -----: |"
    assert lines[3] == "| x         | 22,000 |"


def test_figures_are_small_and_the_same_every_time(found: Plausibility, tmp_path: Path) -> None:
    written = []
    for _ in range(2):
        drawn = {"traffic_example": found.figures()["traffic_example"]}
        (file,) = save_figures(drawn, tmp_path)
        written.append(file.read_bytes())
    assert written[0] == written[1]
    assert 5_000 < len(written[0]) < 150_000


def test_a_town_without_coordinates_has_no_map(grid: RoadNetwork) -> None:
    bare = RoadNetwork.from_arrays(
        grid.tail, grid.head, grid.length_m, road_class=grid.road_class, speed_kmh=grid.speed_kmh
    )
    region = nearest_region(bare, DEPOTS)
    found = examine(
        {"bare": _recorded(bare)}, DEPOTS, region, contests=ContestParams(nodes=5, calls=2)
    )
    assert "traffic_example" not in found.figures()
    assert np.isnan(found.columns[0].checks.swings.value).all()
    assert found.table()[1][8][1] == "– / –"


def test_real_speeds_stand_beside(grid: RoadNetwork, shared_data: Path) -> None:
    found = examine(
        {"town": _recorded(grid)}, DEPOTS, nearest_region(grid, DEPOTS),
        real_folder=shared_data / "hong_kong", contests=ContestParams(nodes=5, calls=2),
    )  # fmt: skip
    assert [window.places for window in found.real] == [152, 407, 4401]
    assert len(found.figures()["traffic_speeds"].axes[0].lines) == 5  # one, three, and the half


def test_command_writes_page_figures_and_table(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plausibility(
        [folder / "town.traffic"], tmp_path / "page.html", days=2, synthetic_days=0,
        figures_folder=tmp_path, network_file=folder / "town.network",
        depots_file=folder / "depots.csv",
    )  # fmt: skip
    printed = capsys.readouterr().out
    assert printed.startswith("| ")
    assert re.search(r"working \+ others +\| +2 \+ 0 \|", printed)  # the third day is unseen
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert len(list(tmp_path.glob("traffic_*.png"))) == len(FIGURES)


def test_command_refuses_what_it_cannot_use(folder: Path, tmp_path: Path) -> None:
    page, town = tmp_path / "page.html", folder / "town.network"
    given = {"network_file": town, "depots_file": folder / "depots.csv"}
    with pytest.raises(InputError, match="another column is called town; rename the file"):
        plausibility([folder / "town.traffic"] * 2, page, **given)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no such folder; create it first"):
        plausibility([folder / "town.traffic"], page, figures_folder=tmp_path / "none")
    with pytest.raises(FileFormatError, match="recorded on another network"):
        plausibility([folder / "town.traffic"], page)
    with pytest.raises(InputError, match="--network needs --depots"):
        plausibility([folder / "town.traffic"], page, network_file=town)
    assert not page.exists()


def test_test_days_of_the_embedded_city_are_not_shown(tmp_path: Path) -> None:
    city = harbour_city()
    whole = harbour_traffic(city)
    whole.only([TRAINING_DAYS]).save(tmp_path / "hidden.traffic")
    with pytest.raises(InputError, match="all its days are test days of the embedded city"):
        plausibility([tmp_path / "hidden.traffic"], tmp_path / "page.html")
