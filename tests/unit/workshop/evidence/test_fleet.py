"""The evidence of whole fleets: its page, its table for auditors, and what it says against us."""

from pathlib import Path
from typing import Any

from ideal_dispatch.evaluation.fleet_runs import FleetRuns
from ideal_dispatch.fleet.run import run_fleet
from tests.unit.evaluation.fleet_rows import row, rows
from tests.unit.fleet.small_runs import experiment
from workshop.evidence.fleet import (
    auditor,
    head_start,
    matrix,
    over_load,
    write_page,
)
from workshop.evidence.fleet_findings import findings, in_short
from workshop.evidence.fleet_years import counted
from workshop.evidence.pages import read_csv

SURE: dict[str, Any] = {"years": 20, "others_se_s": 0.1}
TOWN = [*rows(0.3, saved=12.0, later_s=1.0, **SURE), *rows(0.7, saved=-4.0, later_s=21.0, **SURE)]
RUNS = FleetRuns.of([*TOWN, *rows(0.3, saved=9.0, later_s=-3.0, entitled=0.3)], ["a note"])


def test_the_page_has_every_run(tmp_path: Path) -> None:
    folder = tmp_path / "docs" / "evidence"
    (tmp_path / "docs" / "images").mkdir(parents=True)
    write_page(RUNS, folder)
    text = (folder / "fleet.md").read_text()
    assert "Town with 10 units, 2 to 20 years of each rule" in text
    assert "## Be careful\n\n- 2 simulated years in 1 of 3 settings are few" in text
    for share in ("3", "30"):
        assert f"## {share} % of the calls are entitled to a second" in text
        assert (tmp_path / "docs" / "images" / f"fleet_{share}.png").is_file()
    assert "## Where it starts to harm" in text
    assert "- a note" in text
    assert "head start" not in text
    table = read_csv(folder / "fleet.csv")
    assert len(table) == 15
    assert table[1]["unit_hours"] == "27.375"
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
        ["3", "30", "+12.0 ± 0.4", "+12.0 ± 0.4", "+1.0 ± 0.1", "+0.3 ± 0.1", "15.0", "5.0"],
        ["3", "70", "−4.0 ± 0.4", "−4.0 ± 0.4", "+21.0 ± 0.1", "+7.0 ± 0.1", "15.0", "5.0"],
        ["30", "30", "+9.0 ± 0.4", "+9.0 ± 0.4", "−3.0", "−1.0", "15.0", "5.0"],
    ]


def test_a_row_for_each_rule_and_a_column_for_each_load() -> None:
    (group, _) = RUNS.by_load()
    table = matrix(group)
    assert table.header == ["rule", "30 % busy, 20 years", "70 % busy, 20 years"]
    assert table.rows[0] == (
        "always, never stood down", "+12.0 ± 0.4; +1.0 ± 0.1 s (100 %)",
        "−4.0 ± 0.4; +21.0 ± 0.1 s (100 %)",
    )  # fmt: skip
    assert table.bold == {2, 3}
    assert len(over_load([group]).axes) == 2


def test_what_goes_against_us_is_said() -> None:
    text = "\n".join(findings(RUNS))
    assert (
        "in 2 of 4 runs that have enough years; Town, 10 units, load 0.7, 3 % entitled "
        "(never stood down: −4.0 ± 0.4)" in text
    )
    assert "frees 67 % of its time" in text
    assert (
        "*priced C* instead of *always*, never stood down. Surely more survive in 1 and surely "
        "fewer in 1 of 2 fleets and loads; 1 more have too few years." in text
    )
    harmless = "\n".join(findings(FleetRuns.of(rows(**SURE))))
    assert "costs lives among the arrests in 0 of 2 runs that have enough years." in harmless
    few = "\n".join(findings(FleetRuns.of(rows(years=4))))
    assert "There are too few years to say whether more survive." in few
    assert "Surely" not in few


def test_standing_down_earlier_may_bring_survivors_or_cost_them() -> None:
    made = [*rows(**SURE), row("priced C", "worth", **SURE, deaths_difference=-6.5, paired_se=0.1,
                               second_share=0.5, second_unit_minutes=4.0)]  # fmt: skip
    text = "\n".join(findings(FleetRuns.of(made)))
    assert "changes that time by −20 % and the survivors by +1.5 of 1,000" in text
    assert "Surely more survive in 1 and surely fewer in 0 of 1 fleets" in text


def test_the_front_page_names_cities_and_counts_what_is_sure() -> None:
    held, none, kept, priced, *wide = in_short(RUNS)
    assert held.endswith(
        "Town, for 15 minutes if it is never stood down, and for 5 if it turns round when the "
        "first one arrives."
    )
    assert none == (
        "**3 % of the calls entitled, always, never stood down.** The others wait longer by +1.0 "
        "to +21.0 s in Town (30 to 70 % busy). Surely more survive in 1 and surely fewer in 1 of "
        "2 fleets and loads."
    )
    assert kept.startswith("**3 % of the calls entitled, always, stood down at first arrival.**")
    assert priced.startswith("**3 % of the calls entitled, priced C, stood down")
    assert all("too few years to say" in line for line in wide)


def test_years_of_a_folder_are_counted_anew(tmp_path: Path) -> None:
    folder = run_fleet(experiment(years=2), tmp_path / "run")
    expected = FleetRuns.read(folder)
    (folder / "runs.json").write_text("[]")
    assert counted(folder) == expected
    (folder / "years" / "seed_1_year_0001.json").unlink()
    (setting,) = counted(folder).settings
    assert {run.years for run in setting.runs} == {1}


def test_the_head_start_is_compared_with_the_same_setting() -> None:
    slower = FleetRuns.of(rows(0.3, saved=11.0, later_s=4.0))
    table = head_start(RUNS, slower)
    assert [row[3:] for row in table.rows[:1]] == [
        ("always, never stood down", "+12.0 ± 0.4", "+11.0 ± 0.4", "+1.0 ± 0.1", "+4.0")
    ]
    assert len(table.rows) == 4
