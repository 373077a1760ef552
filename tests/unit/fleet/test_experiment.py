"""The file of a fleet's experiment: what it says, and what it refuses in one line."""

from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch.dispatch.threshold import USUAL_COST
from ideal_dispatch.errors import InputError
from ideal_dispatch.fleet.experiment import (
    Case,
    FleetExperiment,
    plain,
    with_units,
)
from ideal_dispatch.fleet.simulation import SecondRule
from tests.unit.fleet.small_runs import FarSecond, small_city

FILE = """\
name = "two"
utilisation = [0.3, 0.5]
entitled = 0.03
years = 7
seeds = [3, 4]
recall = ["worth"]
[cities.one]
[cities.two]
arrests = 0.02
[policies.priced]
kind = "priced"
limit = 0.5
[policies.far]
kind = "tests.unit.fleet.small_runs:FarSecond"
options = {least = 3}
"""


def loaded(folder: Path, text: str) -> FleetExperiment:
    (folder / "x.toml").write_text(text)
    return FleetExperiment.load(folder / "x.toml")


def test_a_file_says_it_all(tmp_path: Path) -> None:
    found = loaded(tmp_path, FILE.replace("0.03", "[0.03]"))
    assert list(found.cases()) == [
        Case(city, None, load, 0.03) for city in ("one", "two") for load in (0.3, 0.5)
    ]
    assert found.rules == {
        "never": SecondRule("never"), "priced": SecondRule("priced", 0.5), "far": FarSecond(3),
    }  # fmt: skip
    assert found.runs == [("never", "none"), ("priced", "worth"), ("far", "worth")]
    assert found.folder == tmp_path
    assert FleetExperiment.of(found.tables, tmp_path) == found
    two = found.city("two")
    assert (two.name, two.arrests, two.num_units) == ("two", 0.02, 11)


def test_nothing_at_all_is_the_usual_experiment_on_the_embedded_city(tmp_path: Path) -> None:
    found = loaded(tmp_path, "")
    assert list(found.rules) == ["never", "always", "random half", "fixed C", "priced C"]
    assert found.rules["fixed C"] == SecondRule("fixed", USUAL_COST)
    assert len(found.runs) == 13
    assert found.city("").name == "Port Almery"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("years = 0", r"x\.toml: years 0: at least 1 is needed"),
        ("entitled = 0.03", r"x\.toml: entitled 0\.03: a list is needed"),
        (
            'recall = ["never"]',
            "recall 'never': one of 'none', 'first arrival', 'worth', 'live' is n",
        ),
        ("recall = []", r"recall \[\]: one or more are needed, each once"),
        ("seeds = [1, 1]", r"seeds \[1, 1\]: one or more are needed, each once"),
        ("[city]\n[cities.a]", r"both \[city\] and \[cities.NAME\]: give one or the other"),
        ("policy = 1", "policy is not known; did you mean policies"),
        ('[policies.never]\nkind = "always"', r'\[policies.never\]: it is kept for kind = "never"'),
        ('[policies.a]\nkind = "magic"', "policies.a.kind 'magic': choose one of never, always"),
        ('[policies.a]\nkind = "magic"', "priced, region, router, router-dual, .* ideal, "),
        (
            '[policies.a]\nkind = "ideal"\nlimit = 1',
            "policies.a.limit is not known; known: threshold, ",
        ),
        ('[policies.a]\nkind = "interval"\nthreshold = "x"', r"policies.a.threshold 'x': seconds"),
        ('[policies.a]\nkind = "fixed"\nlimit = -1', r"\[policies.a\] rule fixed: limit -1"),
        (
            '[policies.a]\nkind = "tests.unit.fleet.small_runs:small_city"',
            r"policies.a.kind .*: it has no name and choose\(view\); see docs/fleet.md",
        ),
        ("[cities.a-b]\n[cities.a_b]", "case 'a_b': the files of two cases would have this name"),
        ("units = [4, 4]", "case 'units_4': the files of two cases"),
        ("utilisation = [0.3, 0.30000001]", "units, utilisation and entitled once"),
        ("[policies.a-b]\n[policies.a_b]", "never, a-b, a_b: their names are too much alike"),
    ],
)
def test_what_cannot_be_simulated_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        loaded(tmp_path, text)


def test_names_of_files_are_plain() -> None:
    assert plain("Always / first arrival") == "always_first_arrival"
    assert Case("Port Almery", 12, 0.5, 0.03).name == "port_almery_units_12_load_0.5_entitled_0.03"
    assert Case("").name == ""


def test_a_fleet_of_another_size_answers_where_the_calls_are() -> None:
    city = small_city()  # West is nearest to two cells with 0.6 of the calls, East to 0.4
    assert with_units(city, 4).units.tolist() == city.units.tolist()
    assert with_units(city, 5).units.tolist() == [0, 0, 1, 1, 0]  # 0.6 / 3 against 0.4 / 3
    assert with_units(city, 6).units.tolist() == [0, 0, 1, 1, 0, 0]  # 0.6 / 4 against 0.4 / 3
    assert with_units(city, 3).units.tolist() == [0, 0, 1]  # leaves 0.4 for one rather than 0.6
    night = city.changed(shifts=np.array([[0.0, 24.0], [20.0, 6.0], [0.0, 24.0], [0.0, 24.0]]))
    assert with_units(night, 2).shifts.tolist() == [[0.0, 24.0], [0.0, 24.0]]
    assert with_units(night, 5).shifts[4].tolist() == [0.0, 24.0]
