"""The page of a replay, its caveats, its figures and the calls that it shows."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex

from ideal_dispatch import RoadNetwork
from ideal_dispatch.dispatch.survival import CURVES
from ideal_dispatch.errors import InputError
from ideal_dispatch.evaluation import figures
from ideal_dispatch.evaluation.call_maps import incident_map, standing_out, words
from ideal_dispatch.evaluation.judged import Judged
from ideal_dispatch.evaluation.outcomes import Outcomes
from ideal_dispatch.evaluation.replay_report import caveats, replay_report
from tests.unit.evaluation.logs import decided, entry, town_run, write_run


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Judged:
    place = tmp_path_factory.mktemp("reports")
    town_run(place / "test", first_day=20)
    town_run(place / "training")
    run, training = (Outcomes.load(place / name) for name in ("test", "training"))
    return Judged(run, training, CURVES["waalewijn-2001"])


def test_a_report_is_whole(judged: Judged, grid: RoadNetwork, tmp_path: Path) -> None:
    report = replay_report(judged, grid, "call-003")
    made = report.save(tmp_path / "report")
    assert {path.suffix for path in made} == {".csv", ".png", ".html"}
    assert {"arrival", "saved", "regret-paper", "regret-common", "regret-hindsight",
            "wilcoxon-ideal", "second", "arrival-controls"} <= set(report.tables)  # fmt: skip
    first = list(report.figures)
    assert first[:4] == ["arrivals", "candidate-optimal", "pareto", "regret-cdf"]
    assert first[4] == "incident-call-003"
    assert report.figures["incident-call-003"].title == "The call you named"
    assert report.caveats == caveats(judged)
    again = replay_report(judged, grid, "call-003").save(tmp_path / "again")
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in made]


def test_numbers_say_against_what(judged: Judged) -> None:
    (_, alone), (_, within), (one, saved), (rival, against) = replay_report(judged).numbers
    router_s = judged.outcomes.policy("router").primary_s
    assert alone == f"{int(router_s.mean() // 60)}:{round(router_s.mean() % 60):02d} min"
    assert within == f"{100 * (router_s < 480).mean():.1f} %"
    assert "ideal" in one
    assert "interval" in rival
    for label, value in ((one, saved), (rival, against)):
        assert re.fullmatch(r"\d+\.\d\d s (sooner|later)", value)
        low, high = re.findall(r"[\d.]+ s (sooner|later)", label)
        assert ("no difference is shown" in label) == (low != high)


def test_a_run_of_baselines_alone(grid: RoadNetwork, tmp_path: Path) -> None:
    lines = [
        entry(f"{i}", {"s0": 100.0 + i, "s1": 90.0},
              {"router": decided("s0", "s1"), "router-dual": decided("s0", "s1", 0.0, None)})
        for i in range(3)
    ]  # fmt: skip
    alone = Judged(Outcomes.load(write_run(tmp_path / "run", lines)))
    report = replay_report(alone, grid)
    assert {"saved", "coverage", "arrival-controls"}.isdisjoint(report.tables)
    assert "<h2" in report.html()
    said = " ".join(caveats(alone)).lower()
    for part in ("1 day is few", "printed policy is not in", "no interval-selective policy"):
        assert part in said


# --- caveats ------------------------------------------------------------------------


def test_caveats_of_a_calibrated_run(judged: Judged, tmp_path: Path) -> None:
    (few,) = caveats(judged)
    assert few.startswith("4 days are few")
    same = Judged(judged.outcomes, judged.outcomes)
    assert any("shares 4 days with this one, 2023-05-20" in line for line in caveats(same))
    lost = Outcomes.load(town_run(tmp_path / "lost", days=10, dropped=[{"incident": "x"}] * 3))
    lines = caveats(Judged(lost))
    assert len(lines) == 2
    assert "--calibration" in lines[0]
    assert "3 of 63" in lines[1]
    other = Outcomes.load(town_run(tmp_path / "other", shift=60.0))
    (line,) = (one for one in caveats(Judged(judged.outcomes, other)) if "than asked for" in one)
    assert re.search(r"furthest off is ideal, \+\d+ %, with \+\d+\.\d %\.", line)


@pytest.mark.parametrize(
    ("responses", "said"),
    [({"source": "published spreads"}, True), (None, True), ({"source": "812 trips"}, False)],
)
def test_published_spreads_are_the_first_caveat(
    judged: Judged, responses: dict[str, str] | None, said: bool
) -> None:
    ideal = {"type": "Ideal", "responses": responses}
    manifest = {**judged.outcomes.manifest, "policies": {"ideal": ideal}}
    lines = caveats(replace(judged, outcomes=replace(judged.outcomes, manifest=manifest)))
    assert ("vary as published" in lines[0]) == said


# --- figures ------------------------------------------------------------------------


def test_every_policy_has_one_look_of_its_own(judged: Judged) -> None:
    looks = figures.styles(judged)
    assert set(looks) == set(judged.outcomes.policies)
    assert len({(look.colour, str(look.dashes)) for look in looks.values()}) == len(looks)
    assert looks["ideal"].width > looks["interval"].width > looks["random"].width


def test_bars_are_the_rates(judged: Judged) -> None:
    axes = figures.candidate_bars(judged).axes[0]
    labels = [label.get_text() for label in axes.get_yticklabels()]
    widths = [bar.get_width() for bar in axes.patches]  # type: ignore[attr-defined]
    shown = dict(zip(labels, widths, strict=True))
    for row in judged.rows(judged.main):
        assert shown[row.label] == pytest.approx(100 * judged.rate(row))
    point = "ideal, least to beat baselines"
    assert shown[point] == 0.0  # its second units are those of router-dual
    found = judged.beating("paper-ideal")
    assert found is not None
    assert shown[f"paper-{point}"] == pytest.approx(100 * judged.rate(found))
    texts = [text.get_text() for text in axes.texts]
    assert texts[labels.index(point)] == "not reached"
    at = labels.index(f"paper-{point}")
    assert texts[at] == f"{widths[at]:.1f} (+{100 * found.extra:.1f} %)"


def test_pareto_curves_are_the_sweeps(judged: Judged) -> None:
    figure = figures.pareto(judged)
    lines = {line.get_label(): line for line in figure.axes[1].lines}
    found = judged.curves("ideal")["ideal"]
    assert np.asarray(lines["ideal"].get_xdata()) == pytest.approx(1 + found.extra)
    assert np.asarray(lines["ideal"].get_ydata()) == pytest.approx(found.cvar95_regret_s)
    assert np.asarray(lines["router"].get_xdata()).tolist() == [1.0]
    assert np.asarray(lines["router-dual"].get_xdata()).tolist() == [2.0]
    assert to_hex(lines["ideal"].get_color()) == figures.styles(judged)["ideal"].colour.lower()
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == [*judged.main, *judged.others]


def test_savings_start_at_the_router(judged: Judged) -> None:
    figure = figures.arrivals(judged)
    line = next(one for one in figure.axes[0].lines if one.get_label() == "ideal")
    assert np.asarray(line.get_ydata())[0] == pytest.approx(0.0)
    waiting = next(one for one in figure.axes[1].lines if one.get_label() == "router")
    minutes = np.asarray(waiting.get_xdata(), float)
    assert minutes == pytest.approx(np.sort(judged.outcomes.policy("router").primary_s) / 60)
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == [*judged.main, f"{len(judged.others)} controls"]


def test_cdf_reaches_the_share_at_zero(judged: Judged) -> None:
    region = next(
        one for one in figures.regret_cdf(judged).axes[0].lines if one.get_label() == "region"
    )
    x, y = np.asarray(region.get_xdata(), float), np.asarray(region.get_ydata(), float)
    late = judged.outcomes.policy("region").primary_s - judged.outcomes.best_s["paper"]
    assert y[x <= 0].max() == pytest.approx(100 * (late <= 0).mean())


# --- calls --------------------------------------------------------------------------


def test_calls_that_stand_out(judged: Judged, tmp_path: Path) -> None:
    found = standing_out(judged, "ideal")
    numbers = [number for group in found.values() for number in group]
    assert len(numbers) == len(set(numbers))
    own, other = judged.at("ideal", 0.25), judged.at("interval", 0.25)
    saved_s = judged.outcomes.policy("ideal").primary_s - own.arrival_s
    assert saved_s[found["largest saving"][0]] == saved_s.max() > 0
    lost_s = own.arrival_s - other.arrival_s
    assert lost_s[found["largest loss"][0]] == lost_s.max() > 0
    assert all(own.sent[number] for number in found["typical"])
    lines = [
        entry(f"{i}", {"s0": 100.0, "s1": 90.0 - i}, {"ideal": decided("s0", "s1", -float(i))})
        for i in range(8)
    ]
    lone = Judged(Outcomes.load(write_run(tmp_path / "run", lines)))
    assert standing_out(lone, "ideal")["largest loss"] == [7, 6, 5, 4]  # missed chances


def _call(grid: RoadNetwork) -> dict[str, Any]:
    west = grid.shortest_path(grid.length_m, 0, 5).edges.tolist()
    east = grid.shortest_path(grid.length_m, 11, 5).edges.tolist()
    return entry(
        "call",
        {"s0": (west, [20.0] * len(west)), "s1": (east, [15.0] * len(east))},
        {"ideal": decided("s0", "s1", 9.0, 5.0), "region": decided("s0")},
    )


def test_the_map_has_both_ways_and_their_times(grid: RoadNetwork) -> None:
    call = _call(grid)
    above, below = incident_map(grid, call, "ideal", "instantaneous").axes
    styles = {line.get_label(): line.get_linestyle() for line in above.lines}
    assert (styles["First ambulance"], styles["Second"]) == ("-", "--")
    roads = [one for one in above.collections if isinstance(one, LineCollection)]
    assert sum(len(one.get_paths()) for one in roads) > 20
    first = next(one for one in below.lines if one.get_label() == "First ambulance, from West")
    assert np.asarray(first.get_xdata(), float)[-1] == pytest.approx(5 * 20 / 60)
    assert {"West", "East"} <= {text.get_text() for text in above.texts}
    alone = incident_map(grid, call, "region", "experienced")
    assert len(alone.axes[1].get_legend().get_texts()) == 1  # type: ignore[union-attr]
    told = words(call, "ideal", "instantaneous")
    assert "First ambulance from West: promised 1:40, " in told
    assert told.endswith("10 s sooner.")
    assert "There was no second." in words(call, "region", "instantaneous")


def test_a_call_at_the_depot_can_be_drawn(grid: RoadNetwork) -> None:
    call = entry("here", {"s0": ([], [0.0]), "s1": 30.0}, {"ideal": decided("s0", "s1")})
    call["drives"]["s0"]["experienced"] = {"edges": [], "seconds": [], "expected_s": []}
    assert len(incident_map(grid, call, "ideal", "experienced").axes) == 2
    assert "took 0:00" in words(call, "ideal", "experienced")


def test_another_network_is_refused(grid: RoadNetwork) -> None:
    far = entry("far", {"s0": ([10**6], [1.0])}, {"ideal": decided("s0")})
    with pytest.raises(InputError, match="edge 1000000"):
        incident_map(grid, far, "ideal", "instantaneous")
    bare = RoadNetwork.from_arrays(grid.tail, grid.head, grid.length_m)
    with pytest.raises(InputError, match="lon and lat"):
        incident_map(bare, _call(grid), "ideal", "instantaneous")
