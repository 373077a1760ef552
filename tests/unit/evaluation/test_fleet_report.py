"""The page of a fleet: its tables, its words, its figures."""

import pytest

from ideal_dispatch.evaluation.fleet_report import (
    big_numbers,
    caveats,
    fleet_report,
    harm_table,
    one_more_table,
    over,
    priority_table,
    rule_table,
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
        (LOADS, {"load"}, {"rules", "harm", "priorities"}),
        (FLEETS, {"load", "fleets"}, {"rules", "harm", "one_more", "priorities"}),
        (FleetRuns.of([row("never")]), {"load"}, {"rules", "priorities"}),
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
    assert big_numbers(runs.main)[1][1] == "– s"
    assert fleet_report(runs).html()
    assert harm_table(runs).rows[0][5:] == (None, None)


def test_rules_are_against_never() -> None:
    (group,) = LOADS.by_load()
    table = rule_table(group)
    rules = [
        ("never", "–"),
        *(
            (p, r)
            for p in ("always", "priced C")
            for r in ("never stood down", "stood down at first arrival")
        ),
    ]
    assert [cells[:3] for cells in table.rows] == [
        (load, *rule) for load in ("30 % busy", "70 % busy") for rule in rules
    ]
    assert [cells[4:8] for cells in table.rows[:3]] == [
        (None, None, None, None), (12.0, 0.4, 1.0, None), (12.0, 0.4, pytest.approx(1 / 3), None)
    ]  # fmt: skip
    assert table.bold == {2, 4, 7, 9}
    (sure,) = FleetRuns.of(rows(others_se_s=0.2)).by_load()
    assert [cells[7] for cells in rule_table(sure).rows] == [None, 0.2, 0.2, 0.2, 0.2]


def test_harm_begins_where_the_lines_cross() -> None:
    found = {cells[3]: cells[4:] for cells in harm_table(LOADS).rows}
    assert found["never stood down"] == ("60 % busy", "38 % busy", 21.0)
    assert found["stood down at first arrival"][:2] == ("60 % busy", "58 % busy")
    harmless = harm_table(FleetRuns.of(rows(later_s=1.0))).rows[0]
    assert harmless[4:6] == ("not up to 50 % busy", "not up to 50 % busy")
    at_once = harm_table(FleetRuns.of(rows(saved=-1.0))).rows[0]
    assert at_once[4:6] == ("50 % busy or less", "50 % busy or less")


def test_kinds_of_calls_are_counted_a_year() -> None:
    (setting,) = FleetRuns.of(rows()).settings
    table = priority_table(setting)
    assert [cells[0] for cells in table.rows[::5]] == ["arrests", "others", "high", "low"]
    assert table.rows[0][3] == 1095


def test_a_credit_is_named_where_it_counts() -> None:
    (sure,) = FleetRuns.of(rows(later_s=-6.0, others_se_s=0.3)).settings
    label, value = big_numbers(sure)[2]
    assert value == "−6.0 ± 0.3 s"
    assert "because units that were stood down are nearer" in label
    (chance,) = FleetRuns.of(rows(later_s=-6.0, others_se_s=4.0)).settings
    assert "because" not in big_numbers(chance)[2][0]
    (never,) = FleetRuns.of([row("never")]).settings
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


def test_lines_show_every_rule_over_load_and_fleet() -> None:
    (group,) = LOADS.by_load()
    left, right = over(group).axes
    assert [len(axes.containers) for axes in (left, right)] == [4, 4]
    always = left.containers[0][0]
    assert always.get_xdata().tolist() == [30, 70]
    assert always.get_ydata().tolist() == [12.0, -4.0]
    assert right.containers[0][0].get_ydata().tolist() == [1.0, 21.0]
    (fleets,) = FLEETS.by_fleet()
    assert over(fleets, "units").axes[0].containers[0][0].get_xdata().tolist() == [10, 11]
