import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.records.agency import AgencySettings
from tests.conftest import ROOT

AGENCY = {"time_zone": "Asia/Hong_Kong", "country": "HK"}
PAPER_MONTHS = ("2022-02", "2022-03", "2022-12")


def test_defaults_are_the_papers_limits() -> None:
    settings = AgencySettings.of({"agency": AGENCY})
    rules = settings.exclusions
    assert (rules.nearer_than_km, rules.farther_than_km, rules.longer_than_min) == (0.5, 10, 30)
    assert (rules.floor_above, rules.months, rules.floors) == (60, (), "needed")
    assert settings.weather.source == "none"


def test_the_papers_preset_and_what_overrides_it() -> None:
    paper = {"agency": AGENCY, "exclusions": {"preset": "paper"}}
    found = AgencySettings.of(paper)
    assert (found.exclusions.months, found.exclusions.floors) == (PAPER_MONTHS, "always")
    assert found.floors.blank == "unrecognised"
    assert AgencySettings.of(paper | {"floors": {"blank": "ground"}}).floors.blank == "ground"
    given = {"preset": "paper", "months": ["2020-01"], "longer_than_min": 45}
    rules = AgencySettings.of({"agency": AGENCY, "exclusions": given}).exclusions
    assert (rules.months, rules.longer_than_min, rules.floors) == (("2020-01",), 45.0, "always")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "[agency] is missing"),
        ({"agency": {"country": "HK"}}, "agency.time_zone is missing"),
        ({"agency": AGENCY | {"time_zone": "Asia/HongKong"}}, "did you mean Asia/Hong_Kong"),
        ({"agency": AGENCY | {"timezone": "UTC"}}, "agency.timezone is not known; did you mean"),
        ({"agency": AGENCY, "exclusion": {}}, "exclusion is not known; did you mean exclusions?"),
        ({"agency": AGENCY, "colums": {}}, "colums is not known; did you mean columns?"),
        ({"agency": AGENCY, "columns": {"latt": "y"}}, "columns.latt is not known; did you mean"),
        ({"agency": AGENCY, "columns": {"lat": 3}}, "columns.lat 3: a list is needed"),
        ({"agency": AGENCY, "input": {"delimiter": ";;"}}, "[input] delimiter ';;': one character"),
        ({"agency": AGENCY, "input": {"encoding": "utf-99"}}, "encoding 'utf-99' is not known"),
        ({"agency": AGENCY, "input": {"date_order": "ymd"}}, "input.date_order 'ymd': one of ''"),
        ({"agency": AGENCY, "input": {"time_formats": [1]}}, "input.time_formats 1: a text"),
        ({"agency": AGENCY, "input": {"time_formats": ["%Q"]}}, "time_formats '%Q': not as in"),
        ({"agency": AGENCY, "exclusions": {"floor_above": -1}}, "floor_above -1.0: zero or more"),
        ({"agency": AGENCY, "floors": {"seconds_per_floor": -3}}, "seconds_per_floor -3.0: zero"),
        ({"agency": AGENCY, "exclusions": {"months": ["2022-13"]}}, "'2022-13' is not like 2022"),
        ({"agency": AGENCY, "exclusions": {"longer_than_min": "30"}}, "'30': a number is needed"),
        ({"agency": AGENCY, "exclusions": {"floor_above": True}}, "True: a number is needed"),
        ({"agency": AGENCY, "exclusions": {"floor_above": float("nan")}}, "a number is needed"),
        ({"agency": AGENCY, "exclusions": {"nearer_than_km": 20}}, "must be below farther_than_km"),
        ({"agency": AGENCY, "snapping": {"limit_m": 0}}, "limit_m 0.0: more than 0"),
        ({"agency": AGENCY, "preparation": {"seconds": {"A": -1}}}, "seconds of A -1.0: zero"),
        ({"agency": AGENCY, "preparation": {"minimum_rows": 2.5}}, "a whole number is needed"),
        ({"agency": AGENCY, "preparation": []}, "[preparation] must be a table"),
        ({"agency": AGENCY, "weather": {"source": "recorded"}}, "needs files ="),
        ({"agency": AGENCY, "weather": {"columns": {"rain": "x"}}}, "columns.rain is not known"),
        ({"agency": AGENCY, "extra": {"floor": "x"}}, "extra: floor"),
    ],
)  # fmt: skip
def test_mistakes_are_named(table: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        AgencySettings.of(table)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files(tmp_path: Path) -> None:
    file = tmp_path / "agency.toml"
    file.write_text('[agency]\ntime_zone = "UTC"\ncountry = "GB"\n[floors]\nblank = "groud"\n')
    with pytest.raises(InputError, match="agency.toml: floors.blank 'groud': one of 'ground'"):
        AgencySettings.load(file)
    file.write_text("[agency\n")
    with pytest.raises(FileFormatError, match="agency.toml: not TOML"):
        AgencySettings.load(file)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(FileFormatError, match="agency.toml: not TOML"):
        AgencySettings.load(file)
    with pytest.raises(InputError, match="no such file"):
        AgencySettings.load(tmp_path / "none.toml")
    with pytest.raises(InputError, match="is a folder"):
        AgencySettings.load(tmp_path)


def test_what_is_stored_names_no_folder(tmp_path: Path) -> None:
    weather = {"source": "recorded", "files": [str(tmp_path / "w.csv")]}
    table = {"agency": AGENCY, "weather": weather}
    plain = AgencySettings.of(table, tmp_path / "agency.toml").plain()
    assert plain["weather"]["files"] == ["w.csv"]
    assert str(tmp_path) not in str(plain)


def test_the_example_has_every_key_and_the_defaults() -> None:
    example = ROOT / "examples" / "records.toml"
    text, settings = example.read_text(), AgencySettings.load(example)
    expected = AgencySettings(settings.agency, path=settings.path)
    assert settings == expected
    for section in fields(AgencySettings):
        if is_dataclass(section.type):
            part = text.partition(f"\n[{section.name}]\n")[2].partition("\n[")[0]
            for key in fields(section.type):
                assert re.search(rf"^(# )?{key.name} = ", part, re.M), f"{section.name}.{key.name}"
