"""Archives that reach out of their folder, tables that hold formulas, odd bytes and odd dates."""

import csv
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.context.recorded_weather import RecordedWeather
from ideal_dispatch.errors import FileFormatError
from ideal_dispatch.network.readers import read_network
from tests.service_town import Town, serving
from tests.unit.network.readers.test_osm import _xml
from tests.unit.records.towns import GOOD, HEADER, run

OUTSIDE = ("../outside", "/outside", "..\\outside", "a/../../outside")


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to work in; afterwards nothing lies beside or above it."""
    folder = tmp_path / "outer" / "inner"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    yield folder
    assert [*tmp_path.iterdir(), *(tmp_path / "outer").iterdir()] == [folder.parent, folder]
    assert not list(folder.rglob("*outside*"))
    assert not Path("/outside").exists()


@pytest.mark.parametrize("name", OUTSIDE)
def test_zip_slip(inside: Path, name: str) -> None:
    """Members are read, never unpacked: their names lead nowhere."""
    with zipfile.ZipFile(inside / "roads.zip", "w") as archive:
        archive.writestr(f"{name}.osm", _xml())
    with zipfile.ZipFile(inside / "weather.zip", "w") as archive:
        table = "obstime,Air Temperature in degree C\n2023-09-08,26.5\n"
        archive.writestr(f"{name}.csv", table)
    assert read_network(inside / "roads.zip").num_edges > 0
    at = datetime(2023, 9, 8, tzinfo=ZoneInfo("Asia/Hong_Kong"))
    weather = RecordedWeather.read(inside / "weather.zip").reading(at, 114.2, 22.3)
    assert weather.temperature_c.value == 26.5


def test_zip_slip_in_a_file_of_our_own(inside: Path, grid: RoadNetwork) -> None:
    path = inside / "town.network"
    grid.save(path)
    with zipfile.ZipFile(path, "a") as archive:
        for name in OUTSIDE:
            archive.writestr(name, "x")
    try:
        assert RoadNetwork.load(path).checksum == grid.checksum
    except FileFormatError as error:
        assert "\n" not in str(error)  # noqa: PT017


def test_csv_injection_from_a_call_to_the_auditors_table(town: Town) -> None:
    """What a caller says becomes no formula in the spreadsheet of an export."""
    config = town.config("formula.toml")
    formulas = ('=HYPERLINK("http://x")', "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1")
    with serving(config) as served:
        served.report()
        for number, formula in enumerate(formulas):
            body = town.call(f"={number}+1", note=formula, primary={"depot": "D0", "unit": "=1"})
            made = served.advice(body)
            assert served.reply(made, "override", text=formula).status_code == 200
    table = town.folder / "formula.csv"
    ideal = Path(sys.executable).with_name("ideal")
    subprocess.run(
        [ideal, "audit", "export", f"sqlite:///{config}.db", "-o", table],
        check=True, capture_output=True,
    )  # fmt: skip
    with table.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.reader(file))
    assert len(rows) > 2 * len(formulas)
    assert any("=0+1" in cell for row in rows for cell in row)
    assert [
        cell for row in rows for cell in row if cell.startswith(("=", "+", "@", "\t", "\r"))
    ] == []
    assert [cell for row in rows for cell in row if cell[:1] == "-" and cell[1:2].isalpha()] == []


def test_bad_encoding(tmp_path: Path, grid: RoadNetwork) -> None:
    """Bytes that are no text we know end it with the line they are in."""
    rows = f"{HEADER}\n{GOOD}\n2{GOOD[1:]}".encode().replace(b"West", b"W\xbc\xaf\xb2st", 1)
    with pytest.raises(FileFormatError, match="line 2: byte 0xbc is not utf-8; save the"):
        run(tmp_path, grid, rows)


def test_mixed_dates(tmp_path: Path, grid: RoadNetwork) -> None:
    """A date that could be read in two ways is quarantined with its row, the others stay."""
    rows = [
        GOOD,
        "2" + GOOD.replace("2023-01-02", "02/01/2023")[1:],
        "3" + GOOD.replace("2023-01-02", "2 Jan 2023")[1:],
        "4" + GOOD.replace("2023-01-02", "20230102")[1:],
        "5" + GOOD[1:],
    ]
    prepared = run(tmp_path, grid, "\n".join(rows))
    assert list(prepared.quarantined) == [1]
    assert prepared.quarantined[1][0].startswith("call_at could be two days, day or month first;")
    assert prepared.trips.row.tolist() == [2, 4, 5, 6]  # type: ignore[union-attr]
    assert len(set(prepared.trips.observed_s.tolist())) == 1
