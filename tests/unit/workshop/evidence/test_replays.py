"""The page of an experiment and its CSV files, from runs written by hand."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="the train extra is not installed")

from ideal_dispatch import RoadNetwork
from ideal_dispatch.evaluation.judged import Judged
from ideal_dispatch.evaluation.outcomes import Outcomes
from ideal_dispatch.evaluation.result_tables import difference_table
from ideal_dispatch.traffic.recording import KIND
from ideal_dispatch.traffic.sumo.campaign import DAY
from tests.unit.evaluation.logs import town_run
from workshop.evidence.pages import by_volume, read_csv
from workshop.evidence.replays import page_of, processor_hours
from workshop.evidence.tables import training_table


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evidence") / "town"
    versions = {"python": "3", "ideal-dispatch": "0.2"}
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


def test_a_page_has_both_worlds_and_says_what_was_run(run: Path) -> None:
    text = page_of(run).markdown()
    assert text.startswith(
        "# A town\n\n*Made by `make dispatch-evidence EXPERIMENTS=town`, ideal-dispatch 0.2.*\n"
    )
    assert "Experiment file `d1`, begun 2025-01-01T00:00:00+00:00, test days first replayed" in text
    assert "of the first 5 days 1 is history alone" in text
    assert text.index("## Experienced traffic (") < text.index("## Instantaneous traffic (")
    assert text.count("24 test calls on 4 days.") == 2
    beside = text.partition("## The paper's tables beside ours")[2]
    assert "The least dispatch volume that beats the strongest baseline in experienced" in beside
    assert "| IDEAL as printed, +50 % | paper, Sha Tin |" in beside
    assert "| (3) Router dual | paper, Sha Tin: IDEAL dual |" in beside
    assert text.count("*Seconds saved per call against interval-selective") == 2
    assert "- [paper_tests.csv](paper_tests.csv): the paper's Wilcoxon tests" in text
    assert "territories" not in text, "the embedded city has its own"


def test_tables_of_a_rerun_take_the_place_of_the_earlier_ones(run: Path, tmp_path: Path) -> None:
    page = page_of(run)
    page.write(tmp_path)
    replace(page, name="Another town", stem="another").write(tmp_path)
    page.write(tmp_path)
    assert (tmp_path / "town.md").read_text() == page.markdown()
    rows = read_csv(tmp_path / "arrival.csv")
    assert list(dict.fromkeys(row["experiment"] for row in rows)) == ["A town", "Another town"]
    own = [row for row in rows if row["experiment"] == "A town"]
    assert len(own) == len(rows) / 2
    (one,) = (
        row for row in own
        if (row["world"], row["strategy"]) == ("experienced", "router")
    )  # fmt: skip
    assert float(one["mean s"]) > 0
    saved = read_csv(tmp_path / "saved.csv")
    assert {"saved s, t", "saved s, t low", "saved s, t high"} <= set(saved[0])
    regret = read_csv(tmp_path / "paper_regret.csv")
    assert {"paper, Sha Tin", "here, experienced"} <= {row["where"] for row in regret}


def test_a_row_for_each_policy_of_the_training_days(run: Path) -> None:
    judged = Judged(Outcomes.load(run / "experienced" / "training"))
    table = training_table(judged, "experienced")
    whole = difference_table(judged, "experienced")
    assert table is not None
    assert whole is not None
    assert [row[0] for row in table.rows] == ["paper-ideal", "ideal", "random", "alternative"]
    ours = [row for row in whole.rows if row[0] == "ideal" and row[1] != "as set"]
    assert table.rows[1][1:4] == tuple(row[5] for row in ours)
    matched = by_volume(whole)
    assert matched.rows[1] == ("ideal", *(row[-1] for row in ours))


def test_a_run_with_another_ones_parts(run: Path, tmp_path: Path) -> None:
    carried = tmp_path / "carried"
    town_run(carried / "experienced" / "test", first_day=25, versions={"python": "3"})
    traffic, made = tmp_path / "town.traffic", {"command": "ideal traffic simulate"}
    KIND.write(traffic, {"provenance": {**made, "engine": "sumo", "version": "1"}}, {})
    write_experiment(carried, str(run), str(traffic))
    text = page_of(carried).markdown()
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
        text = page_of(tmp_path / name).markdown()
        assert said in text
        assert "region-based dispatch here sends the depot that is nearest at free flow" in text


def test_what_days_took_is_added_up(tmp_path: Path) -> None:
    """Days of older versions do not say it."""
    for number, said in enumerate(({"cpu_s": 1800.0}, {"cpu_s": 5400.0}, {})):
        DAY.write(tmp_path / f"{number}.day", said, {"codes_0": np.zeros(1, np.uint8)})
    assert processor_hours(tmp_path) == (2, 2.0)
    assert processor_hours(tmp_path / "none") == (0, 0.0)
