"""A better gap in an else equal policy: who is compared, and the columns by hand."""

from pathlib import Path
from typing import Any

import pytest

from ideal_dispatch.evaluation.judged import Judged
from ideal_dispatch.evaluation.metrics import Interval
from ideal_dispatch.evaluation.outcomes import Outcomes
from ideal_dispatch.evaluation.result_tables import gap_pairs, gap_table
from tests.unit.evaluation.logs import decided, entry, write_run


def form(method: str, model: str = "m", **more: Any) -> dict[str, Any]:
    return {"type": "PaperIdeal", "model": {"checksum": model}, "method": method, **more}


def by_day(method: str, name: str, model: str = "m") -> dict[str, Any]:
    days = {day: form(method, model, name=name) for day in ("2023-05-08", "2023-05-09")}
    return {"type": "ByDay", "name": name, "policies": days}


def run(folder: Path, policies: dict[str, Any]) -> Outcomes:
    entries = []
    for number, (plain, better) in enumerate([(4.0, 4.0), (3.0, 3.0), (2.0, 9.0), (1.0, 1.0)]):
        sure = decided("s0", "s1" if number < 2 else "s0+00000001", better)
        sure["details"] = {"gap_status": "open" if number == 3 else "exact"}
        rest = {name: decided("s0", "s1", plain) for name in policies if name != "sure"}
        day = f"2023-05-{8 + number // 2:02d}"
        drives = {"s0": 100.0, "s1": 90.0, "s0+00000001": 80.0}
        entries.append(entry(f"{number}", drives, rest | {"sure": sure}, day=day))
    return Outcomes.load(write_run(folder, entries, policies=policies))


def test_the_columns_by_hand(tmp_path: Path) -> None:
    sure = form("certified", name="sure", time_limit_s=9)
    outcomes = run(tmp_path / "run", {"plain": form("dca", name="plain"), "sure": sure})
    table = gap_table(Judged(outcomes), "instantaneous")
    assert table is not None
    assert [row[1] for row in table.rows] == ["+25 %", "+50 %", "+75 %", "dual"]
    first, half, *_, last = table.rows
    assert first[:6] == ("plain → sure", "+25 %", "certified", 0.75, 0.25, 7.0 / 4)
    assert first[6] == 0.5  # the first call loses its second, the third gains one
    assert first[7] is None  # no call in which both send one
    assert half[6:8] == (0.5, 0.0)
    assert last[6:8] == (0.0, 0.5)
    won = last[8]
    assert isinstance(won, Interval)
    assert won.mean == pytest.approx(5.0)  # two of four arrive ten seconds sooner


def test_only_policies_that_are_else_equal_are_compared(tmp_path: Path) -> None:
    policies = {
        "plain": by_day("dca", "plain"),
        "sure": by_day("certified", "sure"),
        "elsewhere": by_day("dca", "elsewhere", "other"),
    }
    outcomes = run(tmp_path / "run", policies)
    assert list(gap_pairs(outcomes)) == [("plain", "sure", "certified")]
    alone = run(tmp_path / "alone", {"sure": form("certified")})
    assert gap_table(Judged(alone), "instantaneous") is None
