"""The evidence of whole fleets: its page, its table for auditors, and what it says against us."""

from pathlib import Path

from ideal_dispatch.evaluation.fleet_runs import FleetRuns
from tests.unit.evaluation.fleet_rows import rows
from workshop.evidence.fleet import (
    auditor,
    findings,
    head_start,
    matrix,
    over_load,
    write_page,
)
from workshop.evidence.pages import read_csv

TOWN = [*rows(0.3, saved=12.0, later_s=1.0), *rows(0.7, saved=-4.0, later_s=21.0)]
RUNS = FleetRuns.of([*TOWN, *rows(0.3, saved=9.0, later_s=-3.0, entitled=0.3)], ["a note"])


def test_the_page_has_every_run(tmp_path: Path) -> None:
    folder = tmp_path / "docs" / "evidence"
    (tmp_path / "docs" / "images").mkdir(parents=True)
    write_page(RUNS, folder)
    text = (folder / "fleet.md").read_text()
    assert "Town with 10 units, 2 years of each rule" in text
    for share in ("3", "30"):
        assert f"## {share} % of the calls are entitled to a second" in text
        assert (tmp_path / "docs" / "images" / f"fleet_{share}.png").is_file()
    assert "## Where it starts to harm" in text
    assert "- a note" in text
    assert "head start" not in text
    table = read_csv(folder / "fleet.csv")
    assert len(table) == 15
    assert table[1]["unit_hours"] == "273.75"
    assert "One more ambulance" not in text
    write_page(RUNS, folder, RUNS, FleetRuns.of([*rows(), *rows(units=11)]))
    text = (folder / "fleet.md").read_text()
    assert "## Without the head start on the street" in text
    assert "## One more ambulance instead" in text
    assert (
        "| Town, 10 units, 50 % busy, 3 % entitled | one more unit, never a second | +0.0 |" in text
    )


def test_the_auditors_table_has_both_sides() -> None:
    table = auditor(RUNS)
    assert [row[1:] for row in table.text_rows()] == [
        ["3", "30", "+12.0 ± 0.4", "+12.0 ± 0.4", "+1.0", "+0.3", "15.0", "5.0"],
        ["3", "70", "−4.0 ± 0.4", "−4.0 ± 0.4", "+21.0", "+7.0", "15.0", "5.0"],
        ["30", "30", "+9.0 ± 0.4", "+9.0 ± 0.4", "−3.0", "−1.0", "15.0", "5.0"],
    ]


def test_a_row_for_each_rule_and_a_column_for_each_load() -> None:
    (group, _) = RUNS.by_load()
    table = matrix(group)
    assert table.header == ["rule", "30 % busy", "70 % busy"]
    assert table.rows[0] == (
        "always, never stood down", "+12.0 ± 0.4; +1.0 s (100 %)", "−4.0 ± 0.4; +21.0 s (100 %)"
    )  # fmt: skip
    assert table.bold == {2, 3}
    assert len(over_load([group]).axes) == 2


def test_what_goes_against_us_is_said() -> None:
    text = "\n".join(findings(RUNS))
    assert "standard errors, in: Town, 10 units, load 0.7, 3 % entitled (never stood down" in text
    assert "In 4 runs the others wait *less* than without seconds. That is no gift" in text
    assert "frees 67 % of its time" in text
    assert (
        "*priced C* against *always*, never stood down: more survive in 1 of 3 settings, fewer in 2"
        in text
    )
    harmless = "\n".join(findings(FleetRuns.of(rows())))
    assert "In none of these settings does always sending two cost lives" in harmless
    assert "no gift" not in harmless
    small = "\n".join(findings(FleetRuns.of(rows(queued_share=0.3))))
    assert "Too small for their calls, more than 10 %" in small


def test_the_head_start_is_compared_with_the_same_setting() -> None:
    slower = FleetRuns.of(rows(0.3, saved=11.0, later_s=4.0))
    table = head_start(RUNS, slower)
    assert [row[3:] for row in table.rows[:1]] == [
        ("always, never stood down", "+12.0 ± 0.4", "+11.0 ± 0.4", 1.0, 4.0)
    ]
    assert len(table.rows) == 4
