"""Figures show the run's own numbers, with one look per policy."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import InputError
from ideal_dispatch.evaluation import figures
from ideal_dispatch.evaluation.call_maps import incident_map, words
from ideal_dispatch.evaluation.judged import Judged
from ideal_dispatch.evaluation.metrics import RegretSummary
from ideal_dispatch.evaluation.outcomes import Outcomes
from ideal_dispatch.pages import SMALL_PT, WIDTH_IN
from tests.unit.evaluation.logs import decided, entry, town_run, write_run


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Judged:
    return Judged(Outcomes.load(town_run(tmp_path_factory.mktemp("figures") / "run")))


def test_every_policy_has_one_look_of_its_own(judged: Judged) -> None:
    looks = figures.styles(judged)
    assert set(looks) == set(judged.outcomes.policies)
    assert len({(look.colour, str(look.dashes)) for look in looks.values()}) == len(looks)
    assert looks["ideal"].width > looks["interval"].width > looks["random"].width


def test_bars_are_the_rates(judged: Judged) -> None:
    figure = figures.candidate_bars(judged)
    rows = judged.rows(judged.main)
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    point = "ideal, least to beat baselines"
    assert [one for one in labels if "least" not in one] == [row.label for row in rows]
    assert [one for one in labels if "least" in one] == [
        point.replace("ideal", "paper-ideal"),
        point,
    ]
    for axes, world in zip(figure.axes, ("instantaneous", "experienced"), strict=True):
        best = judged.outcomes.best_s[world]["paper"]
        widths = [bar.get_width() for bar in axes.patches]  # type: ignore[attr-defined]
        shown = dict(zip(labels, widths, strict=True))
        for row in rows:
            rate = RegretSummary.of(row.arrival_s[world], best).optimal
            assert shown[row.label] == pytest.approx(100 * rate)
        assert shown[point] == 0.0  # its seconds are those of router-dual
        texts = [text.get_text() for text in axes.texts]
        assert texts[labels.index(point)] == "not reached"
        found = judged.beating("paper-ideal", world)
        assert found is not None
        at = labels.index(f"paper-{point}")
        assert widths[at] == pytest.approx(100 * judged.rate(found, world))
        assert texts[at] == f"{widths[at]:.1f} (+{100 * found.extra:.1f} %)"


def test_pareto_curves_are_the_sweeps(judged: Judged) -> None:
    figure = figures.pareto(judged)
    assert len(figure.axes) == 4
    lines = {line.get_label(): line for line in figure.axes[3].lines}
    found = judged.curves("ideal", "experienced")["ideal"]
    assert np.asarray(lines["ideal"].get_xdata()) == pytest.approx(1 + found.extra)
    assert np.asarray(lines["ideal"].get_ydata()) == pytest.approx(found.cvar95_regret_s)
    assert np.asarray(lines["router"].get_xdata()).tolist() == [1.0]
    assert np.asarray(lines["router-dual"].get_xdata()).tolist() == [2.0]
    assert to_hex(lines["ideal"].get_color()) == figures.styles(judged)["ideal"].colour.lower()
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == [*judged.main, *judged.others]


def test_type_is_as_large_in_all_figures(judged: Judged) -> None:
    """A page stretches figures to its width, so they must be as wide as each other."""
    one_world = Judged(judged.outcomes.only("experienced"))
    for make in (figures.candidate_bars, figures.pareto, figures.regret_cdf, figures.arrivals):
        for figure in (make(judged), make(one_world)):
            assert figure.get_size_inches()[0] == WIDTH_IN
            figure.draw_without_rendering()
            ticks = figure.axes[0].get_xticklabels()
            assert {one.get_fontsize() for one in ticks} == {SMALL_PT}


def test_controls_share_one_name_beside_the_story(judged: Judged) -> None:
    legend = [text.get_text() for text in figures.arrivals(judged).legends[0].get_texts()]
    assert legend == [*judged.main, f"{len(judged.others)} controls"]


def test_savings_start_at_the_router(judged: Judged) -> None:
    figure = figures.arrivals(judged)
    line = next(one for one in figure.axes[0].lines if one.get_label() == "ideal")
    assert np.asarray(line.get_ydata())[0] == pytest.approx(0.0)
    waiting = next(one for one in figure.axes[1].lines if one.get_label() == "router")
    minutes = np.asarray(waiting.get_xdata(), float)
    router = judged.outcomes.policy("router").drives["instantaneous"].primary_s
    assert minutes == pytest.approx(np.sort(router) / 60)


def test_cdf_reaches_the_share_at_zero(judged: Judged) -> None:
    figure = figures.regret_cdf(judged)
    region = next(one for one in figure.axes[0].lines if one.get_label() == "region")
    x, y = np.asarray(region.get_xdata(), float), np.asarray(region.get_ydata(), float)
    best = judged.outcomes.best_s["instantaneous"]["paper"]
    late = judged.outcomes.policy("region").drives["instantaneous"].primary_s - best
    assert y[x <= 0].max() == pytest.approx(100 * (late <= 0).mean())


def test_points_beyond_the_axis_get_an_arrow_and_a_number(tmp_path: Path) -> None:
    lines = [
        entry(f"{i}", {"s0": 900.0, "s1": 100.0 + i},
              {"region": decided("s0"), "router": decided("s1", "s0"),
               "ideal": decided("s1", "s0", float(i))})
        for i in range(6)
    ]  # fmt: skip
    far = Judged(Outcomes.load(write_run(tmp_path / "run", lines)))
    texts = [text.get_text() for text in figures.pareto(far).axes[0].texts]
    assert texts == ["region: 798"]


# --- incidents ----------------------------------------------------------------------


def _call(grid: RoadNetwork) -> dict[str, object]:
    west = grid.shortest_path(grid.length_m, 0, 5).edges.tolist()
    east = grid.shortest_path(grid.length_m, 11, 5).edges.tolist()
    return entry(
        "call",
        {"s0": (west, [20.0] * len(west)), "s1": (east, [15.0] * len(east))},
        {"ideal": decided("s0", "s1", 9.0, 5.0), "region": decided("s0")},
    )


def test_the_map_has_both_ways_and_their_times(grid: RoadNetwork) -> None:
    figure = incident_map(grid, _call(grid), "ideal", "instantaneous")
    left, right = figure.axes
    styles = {line.get_label(): line.get_linestyle() for line in left.lines}
    assert styles["first"] == "-"
    assert styles["second"] == "--"
    roads = [one for one in left.collections if isinstance(one, LineCollection)]
    assert sum(len(one.get_paths()) for one in roads) > 20
    first = next(one for one in right.lines if one.get_label() == "first, from West")
    assert np.asarray(first.get_xdata(), float)[-1] == pytest.approx(5 * 20 / 60)
    names = {text.get_text() for text in left.texts}
    assert {"West", "East"} <= names
    assert "1:40" in {text.get_text() for text in right.texts}
    alone = incident_map(grid, _call(grid), "region", "experienced")
    assert len(alone.axes[1].get_legend().get_texts()) == 1  # type: ignore[union-attr]


def test_a_map_takes_the_width_of_the_page_and_shows_both_ways(grid: RoadNetwork) -> None:
    figure = incident_map(grid, _call(grid), "ideal", "instantaneous")
    figure.draw_without_rendering()
    above = figure.axes[0]
    assert figure.get_size_inches()[0] == WIDTH_IN
    assert above.get_position().width > 0.75
    (west, east), (south, north) = above.get_xlim(), above.get_ylim()
    for way in (line for line in above.lines if line.get_label() in ("first", "second")):
        x, y = np.asarray(way.get_xdata(), float), np.asarray(way.get_ydata(), float)
        assert west < x.min() <= x.max() < east
        assert south < y.min() <= y.max() < north


def test_words_say_who_is_sooner(grid: RoadNetwork) -> None:
    call = _call(grid)
    told = words(call, "ideal", "instantaneous")
    assert told.startswith("call, 2023-05-08 08:00. First ambulance from West: promised 1:40, ")
    assert told.endswith("The second is 10 s sooner.")
    assert "There was no second." in words(call, "region", "instantaneous")


def test_a_call_at_the_depot_can_be_drawn(grid: RoadNetwork) -> None:
    call = entry("here", {"s0": ([], [0.0]), "s1": 30.0}, {"ideal": decided("s0", "s1")})
    for world in ("instantaneous", "experienced"):
        call["drives"]["s0"][world] = {"edges": [], "seconds": [], "expected_s": []}
    figure = incident_map(grid, call, "ideal", "instantaneous")
    assert len(figure.axes) == 2
    assert "First ambulance from West: took 0:00." in words(call, "ideal", "instantaneous")


def test_another_network_is_refused(grid: RoadNetwork) -> None:
    far = entry("far", {"s0": ([10**6], [1.0])}, {"ideal": decided("s0")})
    with pytest.raises(InputError, match="edge 1000000 is not on this network"):
        incident_map(grid, far, "ideal", "instantaneous")
    bare = RoadNetwork.from_arrays(grid.tail, grid.head, grid.length_m)
    with pytest.raises(InputError, match="a map needs lon and lat"):
        incident_map(bare, _call(grid), "ideal", "instantaneous")
