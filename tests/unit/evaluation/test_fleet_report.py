"""The page of a fleet: its tables, its words, its figures."""

import numpy as np
import pytest

from ideal_dispatch.evaluation.fleet_report import (
    answer,
    auditor_table,
    big_numbers,
    caveats,
    fleet_report,
    harm_table,
    hours,
    one_more_table,
    over_fleet,
    over_load,
    policy_table,
    priority_table,
    trade,
    unit_table,
)
from ideal_dispatch.evaluation.fleet_runs import FleetRuns
from tests.unit.evaluation.fleet_rows import row, rows

LOADS = FleetRuns.of([*rows(0.3, saved=12.0, later_s=1.0), *rows(0.7, saved=-4.0, later_s=21.0)])
FLEETS = FleetRuns.of(
    [*rows(), *rows(units=11, deaths_per_1000=880.0, mean_first_s=390.0, others_mean_s=410.0)]
)


@pytest.mark.parametrize(
    ("runs", "figures", "tables"),
    [
        (LOADS, {"trade", "hours", "load"}, {"auditor", "harm", "policies", "units", "priorities"}),
        (FLEETS, {"trade", "hours", "fleets"}, {"auditor", "harm", "one_more", "policies", "units",
                                                "priorities"}),
        (FleetRuns.of([row("never")]), {"trade"}, {"policies", "units", "priorities"}),
    ],
)  # fmt: skip
def test_the_page_has_what_the_runs_allow(
    runs: FleetRuns, figures: set[str], tables: set[str]
) -> None:
    report = fleet_report(runs)
    assert set(report.figures) == figures
    assert set(report.tables) == tables
    folded = [section for section in report.sections if section.folded]
    assert len(folded) == len(runs.settings)
    assert "<h1>" in report.html()


def test_one_more_unit_beside_second_units() -> None:
    assert [cells[1:5] for cells in one_more_table(FLEETS).rows] == [
        ("one more unit, never a second", 20.0, None, -10.0),
        ("always, stood down at first arrival", 10.0, None, 0.0),
        ("priced C, stood down at first arrival", 5.0, None, 0.0),
    ]


def test_one_more_unit_is_compared_year_by_year() -> None:
    small = row("never", deaths_by_year=[905.0, 895.0, 900.0])
    large = row("never", deaths_by_year=[882.0, 878.0, 880.0], deaths_per_1000=880.0, units=11)
    (found,) = one_more_table(FleetRuns.of([small, large])).rows
    assert found[2] == 20.0
    assert found[3] == pytest.approx(3.0 / 3.0**0.5)  # of 23, 17 and 20


def test_a_fleet_without_other_calls_has_a_page() -> None:
    made = [one | {"others_mean_s": None} for one in [*rows(0.3), *rows(0.7)]]
    made += [one | {"others_mean_s": None} for one in rows(0.3, units=11)]
    runs = FleetRuns.of(made)
    assert "all are entitled to a second" in answer(runs.main)[0]
    assert fleet_report(runs).html()
    assert harm_table(runs).rows[0][5:] == (None, None)


def test_the_auditors_table_is_against_never() -> None:
    (group,) = LOADS.by_load()
    table = auditor_table(group)
    assert [cells[:6] for cells in table.rows] == [
        ("30 % busy", "never stood down", 12.0, 0.4, 1.0, None),
        ("30 % busy", "stood down at first arrival", 12.0, 0.4, pytest.approx(1 / 3), None),
        ("70 % busy", "never stood down", -4.0, 0.4, 21.0, None),
        ("70 % busy", "stood down at first arrival", -4.0, 0.4, pytest.approx(7.0), None),
    ]
    (sure,) = FleetRuns.of(rows(others_se_s=0.2)).by_load()
    assert [cells[5] for cells in auditor_table(sure).rows] == [0.2, 0.2]
    assert table.bold == {1, 3}


def test_harm_begins_where_the_lines_cross() -> None:
    found = {cells[3]: cells[4:] for cells in harm_table(LOADS).rows}
    assert found["never stood down"] == ("60 % busy", "38 % busy", 21.0)
    assert found["stood down at first arrival"][:2] == ("60 % busy", "58 % busy")
    harmless = harm_table(FleetRuns.of(rows(later_s=1.0))).rows[0]
    assert harmless[4:6] == ("not up to 50 % busy", "not up to 50 % busy")
    at_once = harm_table(FleetRuns.of(rows(saved=-1.0))).rows[0]
    assert at_once[4:6] == ("50 % busy or less", "50 % busy or less")


def test_tables_of_a_setting_have_every_rule() -> None:
    (setting,) = FleetRuns.of(rows()).settings
    for table in (policy_table(setting), unit_table(setting)):
        assert [cells[0] for cells in table.rows] == ["never", *["always"] * 2, *["priced C"] * 2]
        assert table.rows[0][1] == "–"
        assert table.bold == {3, 4}
    priorities = priority_table(setting)
    assert [cells[0] for cells in priorities.rows[::5]] == ["arrests", "others", "high", "low"]
    assert priorities.rows[0][3] == 1095, "a year, not all years"


def test_the_answer_in_words() -> None:
    (setting,) = FleetRuns.of(rows(later_s=6.0)).settings
    kept, none = answer(setting)
    for told in ("every cardiac arrest", "10.0 ± 0.4 more", "5.0 minutes", "2.0 s longer"):
        assert told in kept
    assert "15.0 minutes" in none
    assert "6.0 s longer" in none
    (sure,) = FleetRuns.of(rows(later_s=-6.0, others_se_s=0.3)).settings
    assert "6.0 ± 0.3 s less in the mean, because units that were stood" in answer(sure)[1]
    assert "because units" in big_numbers(sure)[1][0]  # the cause in the same line
    (chance,) = FleetRuns.of(rows(later_s=-6.0, others_se_s=4.0)).settings
    assert "because units" not in answer(chance)[1]
    (wide,) = FleetRuns.of(rows(entitled=0.3, later_s=0.0)).settings
    assert "30 % that are entitled" in answer(wide)[0]
    assert "as long as before" in answer(wide)[0]
    (never,) = FleetRuns.of([row("never")]).settings
    assert answer(never) == []
    assert big_numbers(never) == []


def test_numbers_that_come_first() -> None:
    (setting,) = FleetRuns.of(rows()).settings
    assert [value for _, value in big_numbers(setting)] == [
        "10.0 ± 0.4", "+2.0 s", "+6.0 s", "5.0 min", "50 %"
    ]  # fmt: skip


def test_reasons_to_be_careful() -> None:
    (few,) = caveats(FleetRuns.of(rows()))
    assert few.startswith("2 simulated years are few")
    long = {"years": 20}
    assert caveats(FleetRuns.of(rows(**long))) == []
    assert caveats(FleetRuns.of(rows(later_s=-3.0, others_se_s=2.0, **long))) == []
    (credit,) = caveats(FleetRuns.of(rows(later_s=-3.0, others_se_s=0.4, **long)))
    assert credit.startswith("In 3 runs")
    some = [*rows(0.3, **long), *rows(0.5, years=3), *rows(0.7, years=1)]
    assert caveats(FleetRuns.of(some))[0].startswith("1 to 3 simulated years in 2 of 3 settings")
    (small,) = caveats(FleetRuns.of(rows(queued_share=0.25, **long)))
    assert "25 % of the calls" in small


def test_figures_show_every_rule() -> None:
    (group,) = LOADS.by_load()
    assert len(trade(group).axes) == 4, "two loads, benefit and cost"
    drawn = over_load(group).axes
    assert [len(axes.containers) for axes in drawn] == [4, 4]
    left = over_fleet(FLEETS.by_fleet()[0]).axes[0]
    assert [np.asarray(line.get_xdata()).tolist() for line in left.lines] == [[10, 11]] * 3
    assert len(hours(group[0]).axes[0].patches) == 4


def test_many_loads_are_thinned_to_four_columns() -> None:
    runs = FleetRuns.of([one for k in range(2, 9) for one in rows(k / 10)])
    (group,) = runs.by_load()
    titles = [axes.get_title(loc="left") for axes in trade(group).axes[:4]]
    assert [title.split()[0] for title in titles] == ["20", "40", "60", "80"]
