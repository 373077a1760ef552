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
    assert len(table.rows) == 6
    assert markdown(table) in (DOCS / "evidence.md").read_text()
    assert table.text_rows()[4] == [
        "Manhattan", "257.3", "256.3 (51 %)", "255.3 (55 %)", "255.9", "256.3",
        "+0.89 [+0.36, +1.41]",
    ]  # fmt: skip


def test_the_figure_has_a_panel_for_each_experiment_on_one_scale() -> None:
    figure = sooner(read_csv(DOCS / "evidence" / "arrival.csv"))
    assert len(figure.axes) == 6
    assert len({axes.get_ylim() for axes in figure.axes}) == 1
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    ideal, dual = lines["ideal, ours"], lines["always two, by the router"]
    assert np.asarray(ideal.get_ydata())[0] == pytest.approx(373.33 - 373.40)  # its own first
    assert np.asarray(lines["interval-selective"].get_ydata())[0] == 0.0
    assert np.asarray(dual.get_ydata()) == pytest.approx([373.33 - 371.17])
