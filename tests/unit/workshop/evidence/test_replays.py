"""The dispatch part of the evidence page, from runs written by hand."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the train extra is not installed")

from ideal_dispatch import RoadNetwork
from ideal_dispatch.traffic.recording import KIND
from tests.unit.evaluation.logs import town_run
from workshop.evidence.replays import replace_part, section


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evidence") / "town"
    versions = {"python": "3"}
    for world in ("instantaneous", "experienced"):
        town_run(folder / world / "training", versions=versions)
        town_run(folder / world / "test", first_day=20, versions=versions)
    write_experiment(folder, "")
    return folder


def write_experiment(folder: Path, transfer: str, traffic: str = "", network: str = "") -> None:
    experiment = {
        "name": "A town", "seed": 3, "training_days": 5, "warm_up_days": 1, "recording": "abc",
        "printed": "sha-tin", "transfer": {"run": transfer},
        "city": {"traffic": traffic, "network": network},
    }  # fmt: skip
    folder.mkdir(exist_ok=True)
    (folder / "experiment.json").write_text(json.dumps(experiment))
    starts = [
        {"at": "2025-01-01T00:00:00+00:00", "experiment_file": "d1", "test_days": False},
        {"at": "2025-01-02T00:00:00+00:00", "experiment_file": "d1", "test_days": True},
    ]
    if transfer:
        starts = [{**start, "transfer": transfer} for start in starts]
    (folder / "starts.jsonl").write_text("\n".join(json.dumps(start) for start in starts))


def test_a_section_has_both_worlds_and_says_what_was_run(run: Path) -> None:
    text = "\n".join(section(run))
    assert text.startswith("### A town\n")
    assert "Experiment file `d1`, begun 2025-01-01T00:00:00+00:00, test days first replayed" in text
    assert "of the first 5 days 1 is history alone" in text
    assert "paper, Sha Tin" in text
    assert text.count("**Test days:** 24 calls on 4 days.") == 2
    assert text.count("**Training days, cross-fitted, to choose by:**") == 2
    assert "*Seconds saved per call against interval in experienced traffic" in text
    assert "images/evidence_town.png" in text
    assert "territories" not in text, "the embedded city has its own"


def test_a_run_with_another_ones_parts(run: Path, tmp_path: Path) -> None:
    carried = tmp_path / "carried"
    town_run(carried / "experienced" / "test", first_day=25, versions={"python": "3"})
    traffic, made = tmp_path / "town.traffic", {"command": "ideal traffic simulate"}
    KIND.write(traffic, {"provenance": {**made, "engine": "sumo", "version": "1"}}, {})
    write_experiment(carried, str(run), str(traffic))
    text = "\n".join(section(carried))
    assert "It was made by `ideal traffic simulate` (sumo 1)." in text
    assert "Nothing was fitted here: all parts are those of" in text
    assert "Training days" not in text
    assert "nstantaneous traffic" not in text


def test_a_network_of_its_own_is_described(run: Path, tmp_path: Path) -> None:
    bare = RoadNetwork.from_arrays([0, 1, 1, 2], [1, 0, 2, 1], [900.0, 900.0, 1500.0, 1500.0])
    bare.save(tmp_path / "bare.network")
    for name, said in (
        ("bare", "Of the 4 edges of its network 100% are two-way, 0% have a number of lanes and 0% "
         "a speed limit; 1 of 14 road classes occur, and 3 of 20 features vary."),
        ("lost", "The network is not here any more."),
    ):  # fmt: skip
        town_run(tmp_path / name / "experienced" / "test", first_day=25, versions={"python": "3"})
        write_experiment(tmp_path / name, str(run), network=str(tmp_path / f"{name}.network"))
        text = "\n".join(section(tmp_path / name))
        assert said in text
        assert "region-based dispatch here sends the depot that is nearest at free flow" in text


def test_only_the_part_between_the_marks_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- x: begin -->\nold\n<!-- x: end -->\nafter\n")
    replace_part(page, "x", "new")
    assert page.read_text() == "before\n<!-- x: begin -->\nnew\n<!-- x: end -->\nafter\n"
    with pytest.raises(SystemExit, match="has no marks <!-- y: begin -->"):
        replace_part(page, "y", "new")
