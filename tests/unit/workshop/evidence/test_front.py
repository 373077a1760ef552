"""The table and the figure of the evidence page, from the CSV files of the documentation."""

import numpy as np
import pytest

from tests.conftest import ROOT
from workshop.evidence.front import sooner, summary
from workshop.evidence.pages import markdown, read_csv

DOCS = ROOT / "docs"


def test_the_page_has_the_table_of_the_csv_files() -> None:
    arrival, saved = (read_csv(DOCS / "evidence" / f"{name}.csv") for name in ("arrival", "saved"))
    table = summary(arrival, saved)
    assert len(table.rows) == 8
    assert markdown(table) in (DOCS / "evidence.md").read_text()
    assert table.text_rows()[6] == [
        "Manhattan", "257.3", "256.3 (51 %)", "255.3 (55 %)", "255.9", "256.3",
        "+0.89 [+0.36, +1.41]",
    ]  # fmt: skip


def test_the_papers_streets_come_first_and_their_undirected_form_is_left_out() -> None:
    arrival, saved = (read_csv(DOCS / "evidence" / f"{name}.csv") for name in ("arrival", "saved"))
    names = [str(row[0]) for row in summary(arrival, saved).rows]
    assert [name.startswith("Hong Kong Island") for name in names] == 4 * [True] + 4 * [False]
    assert any(row["experiment"].startswith("North-west Hong Kong") for row in arrival)
    assert not any("North-west" in name for name in names)


def test_the_figure_has_a_panel_for_each_experiment_and_one_scale_for_each_row() -> None:
    figure = sooner(read_csv(DOCS / "evidence" / "arrival.csv"))
    assert len(figure.axes) == 8
    for row in (figure.axes[:4], figure.axes[4:]):
        assert len({axes.get_ylim() for axes in row}) == 1
        most_s = max(np.max(line.get_ydata()) for axes in row for line in axes.lines)
        assert most_s < row[0].get_ylim()[1], "nothing is cut off"
    lines = {line.get_label(): line for line in figure.axes[4].lines}
    ideal, dual = lines["ideal, ours"], lines["always two, by the router"]
    assert np.asarray(ideal.get_ydata())[0] == pytest.approx(373.33 - 373.40)  # its own first
    assert np.asarray(lines["interval-selective"].get_ydata())[0] == 0.0
    assert np.asarray(dual.get_ydata()) == pytest.approx([373.33 - 371.17])
