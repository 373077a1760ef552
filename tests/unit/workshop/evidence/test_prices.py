"""The evidence of prices: every city, load and absence, and those that are not right."""

from pathlib import Path

import pytest

from ideal_dispatch.dispatch.price import UNCALIBRATED
from ideal_dispatch.fleet.calibration import Calibration, PriceCheck
from ideal_dispatch.fleet.prices import Harm
from workshop.evidence.prices import findings, load_of, page, read, table

FACTORS: dict[Harm, tuple[float, ...]] = {"deaths": UNCALIBRATED, "late": UNCALIBRATED}


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    checks = (
        PriceCheck("deaths", 360.0, 2e-4, 1e-5, 3e-4, 2.2e-4, 0.5, 0.6),
        PriceCheck("late", 4800.0, 0.5, 0.05, 0.55, 0.4, 0.3, 0.25),
    )
    made = [tmp_path / f"town_{load}.json" for load in (0.7, 0.3)]
    for file in made:
        Calibration("Town", ("a",), 60.0, 0, FACTORS, checks).save(file)
    return made


def test_rows_are_by_load_and_absence(files: list[Path]) -> None:
    assert table(read(files), "deaths").text_rows() == [
        ["Town", load, "6 min", "2.00e-04 ± 5 %", "1.50", "1.10", "0.50", "0.60"]
        for load in ("30 %", "70 %")
    ]


def test_prices_that_are_not_right_are_named(files: list[Path]) -> None:
    before, after, far, single = findings(read(files))
    assert before == (
        "Before the correction 2 of 4 prices are within 15 % of the referee; they are 1.10 to "
        "1.50 of it."
    )
    assert "2 of 4 prices" in after
    assert "Town, 30 % busy, 80 min, late arrivals: 0.80 ± 0.08; Town, 70 % busy" in far
    assert "R² is 0.25 to 0.60 (Town, 30 % busy), 0.25 to 0.60 (Town, 70 % busy)." in single
    assert far in page(read(files))


def test_the_load_is_in_the_name_of_the_file() -> None:
    assert load_of(Path("out/port_almery_0.5.json")) == 0.5
    with pytest.raises(SystemExit, match=r"price.json: name it CITY_LOAD.json"):
        load_of(Path("price.json"))
