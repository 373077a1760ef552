"""Target and predicted radii in tables, figures and pages, by numbers written by hand."""

from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch.errors import FileFormatError
from ideal_dispatch.evaluation import figures
from ideal_dispatch.evaluation.judged import Judged
from ideal_dispatch.evaluation.outcomes import Outcomes
from ideal_dispatch.evaluation.report import write_report
from ideal_dispatch.evaluation.result_tables import radius_table
from ideal_dispatch.replay.radii import radii_file
from tests.unit.evaluation.logs import decided, entry, write_run

TARGETS = (0.0, 0.1, 0.2, 0.3)
PREDICTED = {"paper-ideal": 0.1, "ideal": 0.25, "other": 0.25}


def run_with_radii(folder: Path, leave_out: str = "") -> Path:
    decisions = {name: decided("s0", "s1", 1.0) for name in PREDICTED}
    write_run(folder, [entry(str(i), {"s0": 90.0, "s1": 80.0}, decisions) for i in range(4)])
    lines = ["incident,policy,world,predicted,target"]
    for world, times in (("instantaneous", 1.0), ("experienced", 2.0)):
        for call in (2, 0, 3, 1):  # in whatever order
            for name, radius in PREDICTED.items():
                if (name, call) != (leave_out, 3):
                    lines.append(f"{call},{name},{world},{radius},{times * TARGETS[call]}")
    radii_file(folder).write_text("\n".join(lines))
    return folder


def test_coverage_and_quantiles_by_hand(tmp_path: Path) -> None:
    judged = Judged(Outcomes.load(run_with_radii(tmp_path / "run")))
    assert judged.outcomes.radii["ideal"]["experienced"].target.tolist() == [0.0, 0.2, 0.4, 0.6]
    table = radius_table(judged, "instantaneous")
    assert table is not None
    assert table.header == ["policies", "covered %", "predicted P50", "predicted P80",
                            "predicted P95", "target P50", "target P80", "target P95"]  # fmt: skip
    quantiles = pytest.approx([0.15, 0.24, 0.285])
    (paper, ours) = table.rows
    assert paper[:5] == ("paper-ideal", 0.5, 0.1, 0.1, 0.1)  # a target equal to it is covered
    assert ours[:5] == ("ideal, other", 0.75, 0.25, 0.25, 0.25)
    assert list(paper[5:]) == quantiles
    assert table.bold == {1}
    slower = radius_table(judged, "experienced")
    assert slower is not None
    assert [row[1] for row in slower.rows] == [0.25, 0.5]


def test_the_figure_has_both_distributions(tmp_path: Path) -> None:
    judged = Judged(Outcomes.load(run_with_radii(tmp_path / "run")))
    axes = figures.radii(judged).axes[1]
    lines = {line.get_label(): line for line in axes.lines}
    assert list(lines) == ["paper-ideal, target", "paper-ideal, predicted",
                           "ideal, target", "ideal, predicted"]  # fmt: skip
    x = np.asarray(lines["ideal, target"].get_xdata(), float)
    assert x[np.isfinite(x)].max() == 0.6


def test_a_page_says_where_there_are_none(tmp_path: Path) -> None:
    run = run_with_radii(tmp_path / "run")
    page = write_report(Judged(Outcomes.load(run)), tmp_path / "with")[-1].read_text()
    assert "Predicted and target radius of the scenario set" in page
    assert "No radii:" not in page
    radii_file(run).unlink()
    made = write_report(Judged(Outcomes.load(run)), tmp_path / "without")
    assert "No radii: they are known for test days of policies with a model" in made[-1].read_text()
    assert not [path for path in made if path.name.startswith(("radii", "radius"))]


def test_a_policy_without_a_set_for_every_call_is_left_out(tmp_path: Path) -> None:
    assert list(Outcomes.load(run_with_radii(tmp_path / "run", "ideal")).radii) == [
        "paper-ideal",
        "other",
    ]


def test_a_broken_file_is_one_line(tmp_path: Path) -> None:
    run = run_with_radii(tmp_path / "run")
    with open(radii_file(run), "a") as file:
        file.write("\n1,ideal,experienced,wide,0.1")
    with pytest.raises(FileFormatError, match=r"run-radii.csv, line 26: no radii of a replay"):
        Outcomes.load(run)
