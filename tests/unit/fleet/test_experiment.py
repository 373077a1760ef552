"""The file of a fleet's experiment: what it says, and what it refuses in one line."""

from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch.dispatch.threshold import USUAL_COST
from ideal_dispatch.errors import InputError
from ideal_dispatch.fleet.experiment import FleetExperiment, FleetScenario, plain
from ideal_dispatch.fleet.load import with_units
from ideal_dispatch.fleet.policies import PolicyTable
from ideal_dispatch.fleet.simulation import SecondRule
from tests.unit.fleet.small_runs import small_city

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
kind = "survival"
threshold = {cost = 0.002}
[policies.ours]
kind = "ideal"
threshold = "priced"
"""


def loaded(folder: Path, text: str) -> FleetExperiment:
    (folder / "x.toml").write_text(text)
    return FleetExperiment.load(folder / "x.toml")


def test_a_file_says_it_all(tmp_path: Path) -> None:
    found = loaded(tmp_path, FILE.replace("0.03", "[0.03]"))
    assert list(found.scenarios()) == [
        FleetScenario(city, None, load, 0.03) for city in ("one", "two") for load in (0.3, 0.5)
    ]
    assert found.rules == {
        "never": SecondRule("never"), "priced": SecondRule("survival", 0.002),
        "ours": PolicyTable("ours", {"kind": "ideal", "threshold": "priced"}),
    }  # fmt: skip
    assert found.runs == [("never", "none"), ("priced", "worth"), ("ours", "worth")]
    assert found.folder == tmp_path
    assert FleetExperiment.of(found.tables | {"cities": found.cities}, tmp_path) == found
    two = found.city("two")
    assert (two.name, two.arrests, two.num_units) == ("two", 0.02, 11)


def test_nothing_at_all_is_the_usual_experiment_on_the_embedded_city(tmp_path: Path) -> None:
    found = loaded(tmp_path, "")
    assert list(found.rules) == ["never", "always", "random half", "fixed C", "priced C"]
    assert found.rules["fixed C"] == SecondRule("survival", USUAL_COST)
    assert found.rules["priced C"] == SecondRule("survival", "priced")
    assert len(found.runs) == 13
    assert found.city("").name == "Port Almery"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("years = 0", "years"),
        ("entitled = 0.03", "entitled"),
        ('recall = ["never"]', "recall"),
        ("recall = []", "recall"),
        ("seeds = [1, 1]", "seeds"),
        ("[city]\n[cities.a]", "cities.NAME"),
        ("policy = 1", "policies"),
        ('[policies.never]\nkind = "always"', "policies.never"),
        ('[policies.a]\nkind = "magic"', "policies.a.kind"),
        ('[policies.a]\nkind = "ideal"\nlimit = 1', "policies.a.limit"),
        ('[policies.a]\nkind = "interval"\nthreshold = "x"', "policies.a.threshold"),
        ('[policies.a]\nkind = "always"\nthreshold = 1', "policies.a"),
        ('[policies.a]\nkind = "always"\nlimit = 1', "policies.a.limit"),
        ('[policies.a]\nkind = "random"\nthreshold = 2', "threshold 2"),
        ('[policies.a]\nkind = "random"\nthreshold = "priced"', "threshold 'priced'"),
        ('[policies.a]\nkind = "survival"\nthreshold = 0.1', "policies.a.threshold"),
        ('[policies.a]\nkind = "survival"\nthreshold = {cost = -1}', "threshold -1"),
        ('[policies.a]\nkind = "tests.unit.fleet.small_runs:small_city"', "policies.a"),
        ("[cities.a-b]\n[cities.a_b]", "a_b"),
        ("units = [4, 4]", "units_4"),
        ("utilisation = [0.3, 0.30000001]", "utilisation"),
        ('[policies.a-b]\nkind = "always"\n[policies.a_b]\nkind = "always"', "a-b, a_b"),
    ],
)
def test_what_cannot_be_simulated_is_refused(tmp_path: Path, text: str, key: str) -> None:
    with pytest.raises(InputError, match="x.toml: ") as caught:
        loaded(tmp_path, text)
    assert key in str(caught.value)


def test_a_file_that_is_missing_is_named_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none.toml") as caught:
        FleetExperiment.load(tmp_path / "none.toml")
    assert str(caught.value).count("none.toml") == 1


def test_names_of_files_are_plain() -> None:
    assert plain("Always / first arrival") == "always_first_arrival"
    assert (
        FleetScenario("Port Almery", 12, 0.5, 0.03).name
        == "port_almery_units_12_load_0.5_entitled_0.03"
    )
    assert FleetScenario("").name == ""


def test_a_fleet_of_another_size_answers_where_the_calls_are() -> None:
    city = small_city()  # West is nearest to two cells with 0.6 of the calls, East to 0.4
    assert with_units(city, 4).units.tolist() == city.units.tolist()
    assert with_units(city, 5).units.tolist() == [0, 0, 1, 1, 0]  # 0.6 / 3 against 0.4 / 3
    assert with_units(city, 6).units.tolist() == [0, 0, 1, 1, 0, 0]  # 0.6 / 4 against 0.4 / 3
    assert with_units(city, 3).units.tolist() == [0, 0, 1]  # leaves 0.4 for one rather than 0.6
    night = city.changed(shifts=np.array([[0.0, 24.0], [20.0, 6.0], [0.0, 24.0], [0.0, 24.0]]))
    assert with_units(night, 2).shifts.tolist() == [[0.0, 24.0], [0.0, 24.0]]
    assert with_units(night, 5).shifts[4].tolist() == [0.0, 24.0]
