"""The page of a fleet: its tables, its words, its figures."""

import html
import re
from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch.evaluation.fleet_figures import hours, over_fleet, over_load, trade
from ideal_dispatch.evaluation.fleet_report import (
    answer,
    auditor_table,
    big_numbers,
    caveats,
    harm_table,
    one_more_table,
    policy_table,
    priority_table,
    unit_table,
    write_fleet_report,
)
from ideal_dispatch.evaluation.fleet_runs import FleetRuns
from tests.unit.evaluation.fleet_rows import row, rows

LOADS = FleetRuns.of([*rows(0.3, saved=12.0, later_s=1.0), *rows(0.7, saved=-4.0, later_s=21.0)])
FLEETS = FleetRuns.of(
    [*rows(), *rows(units=11, deaths_per_1000=880.0, mean_first_s=390.0, others_mean_s=410.0)]
)


def page(runs: FleetRuns, folder: Path) -> str:
    write_fleet_report(runs, folder / "fleet.html")
    return html.unescape((folder / "fleet.html").read_text())


def test_the_page_is_one_file_with_tables_and_figures(tmp_path: Path) -> None:
    text = page(LOADS, tmp_path)
    assert not re.search(r'(src|href)="(?!data:|#)', text), "nothing is loaded from elsewhere"
    assert text.count("<img ") == 3, "what it brings, unit hours, over load"
    for words in (
        "What does a second ambulance cost the others?",
        "Two to every entitled call: is it waste?",
        "When does it start to harm?",
        "Survival, and the first arrival at all calls",
        "First arrival by kind of call",
        "Give fleet sizes, such as <code>units = [10, 11]</code>",
    ):
        assert words in text
    before = (tmp_path / "fleet.html").read_bytes()
    write_fleet_report(LOADS, tmp_path / "fleet.html")
    assert (tmp_path / "fleet.html").read_bytes() == before


def test_a_page_of_one_load_says_what_is_missing(tmp_path: Path) -> None:
    text = page(FleetRuns.of(rows()), tmp_path)
    assert "Give several, such as <code>utilisation = [0.3, 0.5, 0.7]</code>" in text


def test_a_page_of_two_fleets_says_what_one_more_unit_brings(tmp_path: Path) -> None:
    text = page(FLEETS, tmp_path)
    assert "The same calls, answered by fleets of other sizes." in text
    assert "units = [10, 11]" not in text
    found = one_more_table(FLEETS).rows
    assert [cells[1:5] for cells in found] == [
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


def test_a_fleet_without_other_calls_has_a_page(tmp_path: Path) -> None:
    made = [one | {"others_mean_s": None} for one in [*rows(0.3), *rows(0.7)]]
    made += [one | {"others_mean_s": None} for one in rows(0.3, units=11)]
    runs = FleetRuns.of(made)
    assert "all are entitled to a second" in page(runs, tmp_path)
    assert harm_table(runs).rows[0][5:] == (None, None)


def test_names_of_a_run_are_escaped(tmp_path: Path) -> None:
    write_fleet_report(FleetRuns.of(rows(city="<b>Town"), ["a <i>note"]), tmp_path / "fleet.html")
    text = (tmp_path / "fleet.html").read_text()
    assert "<b>Town" not in text
    assert "a &lt;i&gt;note" in text


def test_a_page_needs_no_policy_but_never(tmp_path: Path) -> None:
    assert "What does a second ambulance" in page(FleetRuns.of([row("never")]), tmp_path)


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
    assert kept == (
        "Town with 10 units, busy for 50 % of their time: two units to every cardiac arrest let "
        "10.0 ± 0.4 more of 1,000 patients with a cardiac arrest survive. If the unit that is not "
        "first is stood down when the first arrives, it is held for 5.0 minutes, and the other "
        "calls wait 2.0 s longer in the mean."
    )
    assert none.startswith(
        "If it is never stood down, it is held for 15.0 minutes, the other calls wait 6.0 s longer"
    )
    (sure,) = FleetRuns.of(rows(later_s=-6.0, others_se_s=0.3)).settings
    assert "wait 6.0 ± 0.3 s less in the mean: units that were stood" in answer(sure)[1]
    (chance,) = FleetRuns.of(rows(later_s=-6.0, others_se_s=4.0)).settings
    assert "wait 6.0 ± 4.0 s less in the mean, and" in answer(chance)[1]
    (wide,) = FleetRuns.of(rows(entitled=0.3, later_s=0.0)).settings
    assert "every call of the 30 % that are entitled" in answer(wide)[0]
    assert "wait as long as before" in answer(wide)[0]
    (never,) = FleetRuns.of([row("never")]).settings
    assert answer(never) == []
    assert big_numbers(never) == []


def test_numbers_that_come_first() -> None:
    (setting,) = FleetRuns.of(rows()).settings
    assert [value for _, value in big_numbers(setting)] == [
        "10.0 ± 0.4", "+2.0 s", "+6.0 s", "5.0", "50 %"
    ]  # fmt: skip


def test_reasons_to_be_careful() -> None:
    few, *rest = caveats(FleetRuns.of(rows()))
    assert few.startswith("2 simulated years are few")
    assert rest == []
    long = {"years": 20}
    assert caveats(FleetRuns.of(rows(**long))) == []
    assert caveats(FleetRuns.of(rows(later_s=-3.0, others_se_s=2.0, **long))) == []
    (credit,) = caveats(FleetRuns.of(rows(later_s=-3.0, others_se_s=0.4, **long)))
    assert credit.startswith("In 3 runs the other calls wait less than without seconds, beyond")
    assert "answers the next call sooner than from its station" in credit
    some = [*rows(0.3, **long), *rows(0.5, years=3), *rows(0.7, years=1)]
    assert caveats(FleetRuns.of(some))[0].startswith(
        "1 to 3 simulated years in 2 of 3 settings are few"
    )
    (small,) = caveats(FleetRuns.of(rows(queued_share=0.25, **long)))
    assert "25 % of the calls wait for a free unit even without seconds" in small


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
