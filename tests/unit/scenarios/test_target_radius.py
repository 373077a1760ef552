"""Target radii: closed forms, extremes, invariances, certificates and bad input."""

import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import brentq

from ideal_dispatch import Depot, Path, RoadNetwork
from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.errors import CertificateError, IdealError, InputError, UnreachableError
from ideal_dispatch.scenarios import ScenarioSet, burg_divergence
from ideal_dispatch.scenarios.target_radius import TargetRadius, target_radius
from tests.unit.scenarios.exact import kappa_of

ORIGIN, DESTINATION = 0, 119  # opposite corners of the grid


def _embeddings(network: RoadNetwork, dimension: int, seed: int = 0) -> FloatArray:
    rng = np.random.default_rng(seed)
    directions = rng.standard_normal((network.num_edges, dimension))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    embeddings: FloatArray = directions * np.sqrt(network.free_flow_times_s)[:, None]
    return embeddings


def _nominal_s(network: RoadNetwork, embeddings: FloatArray) -> float:
    times = ScenarioSet(embeddings, 0.0).nominal_times
    return network.shortest_path(times, ORIGIN, DESTINATION).time_s(times)


def _corner_to_corner(
    network: RoadNetwork, embeddings: FloatArray, stretch: float, **options: Any
) -> TargetRadius:
    observed = _nominal_s(network, embeddings) * stretch
    radius = target_radius(network, embeddings, ORIGIN, DESTINATION, observed, **options)
    radius.verify(network, embeddings, ORIGIN, DESTINATION, observed)
    return radius


def _holds(radius: TargetRadius, value: Any, rounding: float = 1e-13) -> bool:
    """Whether the interval, widened by a relative rounding, holds the value."""
    return bool(radius.lower * (1 - rounding) <= value <= radius.upper * (1 + rounding))


def _line(*columns: Any) -> RoadNetwork:
    """Edges from node i to node i + 1; a column may hold several parallel ones."""
    tail = [i for i, count in enumerate(columns) for _ in range(count)]
    return RoadNetwork.from_arrays(tail, np.add(tail, 1), np.full(len(tail), 100.0))


# --- zero ---------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_trip_no_slower_than_nominal_has_radius_zero(grid: RoadNetwork, share: float) -> None:
    radius = _corner_to_corner(grid, _embeddings(grid, 5), share)
    assert (radius.lower, radius.upper, radius.relative_gap) == (0.0, 0.0, 0.0)
    assert np.array_equal(radius.metric, np.eye(5))
    assert (radius.paths, radius.multipliers.size, radius.cuts) == ((), 0, 0)


def test_the_nominal_time_of_any_summation_gives_exactly_zero(grid: RoadNetwork) -> None:
    for seed in range(20):
        embeddings = _embeddings(grid, 3, seed)
        times = ScenarioSet(embeddings, 0.0).nominal_times
        path = grid.shortest_path(times, ORIGIN, DESTINATION)
        for observed in (
            path.time_s(times),
            float(grid.distances_to(times, DESTINATION)[ORIGIN]),
        ):
            assert target_radius(grid, embeddings, ORIGIN, DESTINATION, observed).upper == 0.0


# --- closed forms -------------------------------------------------------------------


@pytest.mark.parametrize("stretch", [1 + 1e-9, 1.001, 1.5, 4.0, 30.0, 1e3, 1e6])
def test_one_dimension_only_scales(grid: RoadNetwork, stretch: float) -> None:
    """D = κ(t/t̂ − 1), and one path proves it."""
    embeddings = _embeddings(grid, 1)
    radius = _corner_to_corner(grid, embeddings, stretch)
    assert _holds(radius, kappa_of(stretch - 1.0), 1e-6 if stretch < 1.0001 else 1e-12)
    assert radius.cuts == 1


def test_parallel_embeddings_only_scale(grid: RoadNetwork) -> None:
    direction = np.random.default_rng(2).standard_normal(7)
    embeddings = np.sqrt(grid.free_flow_times_s)[:, None] * direction
    radius = _corner_to_corner(grid, embeddings, 1.7)
    assert _holds(radius, kappa_of(0.7), 1e-12)
    assert np.linalg.eigvalsh(radius.metric) == pytest.approx([1.0] * 6 + [1.7], abs=1e-12)


@pytest.mark.parametrize("dimension", [1, 2, 5, 16, 64])
@pytest.mark.parametrize("stretch", [1.0001, 1.4, 3.0, 50.0, 1000.0])
def test_a_single_path_has_the_spectrum_of_theorem_3(dimension: int, stretch: float) -> None:
    """X = (I − μG)⁻¹ with Σ λ/(1 − μλ) = t: γ = −1/μ in the form of Theorem 3."""
    network = _line(1, 1, 1, 1)
    embeddings = np.random.default_rng(dimension).standard_normal((4, dimension))
    spectrum = np.maximum(np.linalg.eigvalsh(embeddings.T @ embeddings), 0.0)
    observed = spectrum.sum() * stretch
    share = brentq(
        lambda u: (spectrum / (1 - u * spectrum / spectrum.max())).sum() - observed,
        0.0, 1.0 - 1e-6, xtol=1e-15,
    )  # fmt: skip
    offsets = share * spectrum / (spectrum.max() - share * spectrum)
    exact = sum(kappa_of(y) for y in offsets)
    radius = target_radius(network, embeddings, 0, 4, observed)
    assert _holds(radius, exact, 1e-8)
    assert radius.relative_gap < 1e-8
    assert radius.multipliers == pytest.approx([share / spectrum.max()], rel=1e-6)


def test_perpendicular_parallel_roads_add_up() -> None:
    """Each road needs its own direction stretched: ρ = Σ κ(t/t̂ − 1) over roads faster than t."""
    embeddings = np.diag([3.0, 3.5, 4.0, 9.0])
    radius = target_radius(_line(4), embeddings, 0, 1, 18.0)
    times = np.array([9.0, 12.25, 16.0])
    assert _holds(radius, sum(kappa_of(18.0 / time - 1.0) for time in times))
    assert radius.metric.diagonal() == pytest.approx([*(18.0 / times), 1.0], rel=1e-12)
    assert radius.multipliers == pytest.approx(1 / times - 1 / 18.0)
    assert (radius.cuts, [path.edges.tolist() for path in radius.paths]) == (3, [[0], [1], [2]])


def test_twins_of_an_edge_change_nothing() -> None:
    rng = np.random.default_rng(5)
    embeddings = rng.standard_normal((3, 4))
    twins = np.repeat(embeddings, [3, 2, 1], axis=0)
    alone = target_radius(_line(1, 1, 1), embeddings, 0, 3, 40.0)
    assert _holds(target_radius(_line(3, 2, 1), twins, 0, 3, 40.0), alone.upper, 1e-8)


# --- extremes -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dimension", "stretch"),
    [(d, r) for d in (1, 2, 3, 8, 16) for r in (1.05, 1.6, 10.0, 1000.0)] + [(32, 1.6), (64, 1.05)],
)
def test_the_gap_closes(grid: RoadNetwork, dimension: int, stretch: float) -> None:
    radius = _corner_to_corner(grid, _embeddings(grid, dimension), stretch)
    assert 0.0 < radius.lower <= radius.upper
    assert radius.relative_gap <= 1e-8
    # one eigenvalue must reach t/t̂; all of them suffice
    least = kappa_of(stretch - 1.0)
    assert least * (1 - 1e-12) <= radius.upper <= dimension * least * (1 + 1e-12)
    assert np.linalg.eigvalsh(radius.metric)[0] > 1 - 1e-12


@pytest.mark.parametrize("dimension", [2, 6, 16])
@pytest.mark.parametrize("exponent", [-15, -14, -12, -9, -6, -3])
def test_a_hair_above_nominal(grid: RoadNetwork, exponent: int, dimension: int) -> None:
    """To second order ρ = (t − t̂)²/(2‖G‖²); the interval is as wide as path times are rounded."""
    embeddings = _embeddings(grid, dimension)
    scenarios = ScenarioSet(embeddings, 0.0)
    path = grid.shortest_path(scenarios.nominal_times, ORIGIN, DESTINATION)
    nominal = math.fsum((embeddings[path.edges] ** 2).ravel().tolist())
    observed = nominal * (1 + 10.0**exponent)
    radius = target_radius(grid, embeddings, ORIGIN, DESTINATION, observed)
    radius.verify(grid, embeddings, ORIGIN, DESTINATION, observed)
    rough = ((observed - nominal) / np.linalg.norm(scenarios.path_matrix(path))) ** 2 / 2
    assert _holds(radius, rough, 10 * 10.0**exponent + 1e-12 / 10.0 ** (exponent + 15) * 1e3)
    assert radius.relative_gap <= 1e-8 + 3e-13 / 10.0**exponent or exponent <= -13
    assert radius.cuts <= 2  # rounding is no violation


@pytest.mark.parametrize("stretch", [1e5, 1e8, 1e12, 1e100, 1e300])
def test_far_above_nominal_the_interval_stays_honest(grid: RoadNetwork, stretch: float) -> None:
    radius = _corner_to_corner(grid, _embeddings(grid, 4), stretch)
    assert 0.0 < radius.lower <= radius.upper < math.inf
    assert radius.relative_gap < 0.1
    assert 0.99 * stretch < radius.upper < 4 * stretch


def test_few_cuts_leave_a_wider_interval_that_holds_the_answer(grid: RoadNetwork) -> None:
    embeddings = _embeddings(grid, 8)
    closed = _corner_to_corner(grid, embeddings, 3.0)
    found = [
        _corner_to_corner(grid, embeddings, 3.0, most_cuts=cuts)
        for cuts in range(1, closed.cuts + 1)
    ]
    for fewer, more in pairwise(found):
        assert more.cuts == fewer.cuts + 1
        assert _holds(fewer, closed.lower)
        assert _holds(fewer, closed.upper)
        assert more.upper <= fewer.upper
        assert more.lower >= fewer.lower * (1 - 1e-12)
    assert found[0].relative_gap > 1e-4
    assert found[-1].relative_gap == closed.relative_gap


def test_a_loose_tolerance_takes_fewer_cuts(grid: RoadNetwork) -> None:
    embeddings = _embeddings(grid, 8)
    loose = _corner_to_corner(grid, embeddings, 3.0, tolerance=0.05)
    tight = _corner_to_corner(grid, embeddings, 3.0)
    assert loose.relative_gap <= 0.05
    assert loose.cuts < tight.cuts
    assert _holds(loose, tight.upper)


@pytest.mark.parametrize("factor", [1e-120, 1e-20, 1e20, 1e120])
def test_the_unit_of_time_does_not_matter(grid: RoadNetwork, factor: float) -> None:
    embeddings = _embeddings(grid, 4)
    plain = _corner_to_corner(grid, embeddings, 1.5)
    scaled = _corner_to_corner(grid, embeddings * factor, 1.5)
    assert scaled.upper == pytest.approx(plain.upper, rel=1e-8)


def test_a_path_of_no_time_cannot_be_slowed() -> None:
    embeddings = np.array([[0.0, 0.0], [1.0, 2.0], [0.0, 0.0]])
    network = RoadNetwork.from_arrays([0, 0, 1], [1, 1, 2], [1.0, 1.0, 1.0])
    radius = target_radius(network, embeddings, 0, 2, 1e-3)
    assert (radius.lower, radius.upper, radius.relative_gap) == (math.inf, math.inf, 0.0)
    assert [path.edges.tolist() for path in radius.paths] == [[0, 2]]
    radius.verify(network, embeddings, 0, 2, 1e-3)
    assert target_radius(network, embeddings, 0, 2, 0.0).upper == 0.0


def test_zero_embeddings_beside_others_do_no_harm() -> None:
    embeddings = np.array([[0.0, 0.0], [1.0, 2.0], [0.0, 0.0]])
    radius = target_radius(_line(1, 1, 1), embeddings, 0, 3, 10.0)
    assert _holds(radius, kappa_of(1.0))


def test_staying_takes_no_time_under_any_metric(grid: RoadNetwork) -> None:
    embeddings = _embeddings(grid, 3)
    assert target_radius(grid, embeddings, 7, 7, 0.0).upper == 0.0
    radius = target_radius(grid, embeddings, 7, 7, 1.0)
    assert (radius.lower, radius.upper, len(radius.paths[0])) == (math.inf, math.inf, 0)
    radius.verify(grid, embeddings, 7, 7, 1.0)


# --- exact arithmetic ---------------------------------------------------------------


def _exact_dual(embeddings: FloatArray, radius: TargetRadius, observed: float) -> Decimal:
    """g(μ) of the floats, from an exact determinant."""
    size = embeddings.shape[1]
    slack = [[Fraction(int(i == j)) for j in range(size)] for i in range(size)]
    linear = Fraction(0)
    for weight, path in zip(radius.multipliers, radius.paths, strict=True):
        linear += Fraction(float(weight)) * Fraction(observed)
        for edge in path.edges:
            row = [Fraction(float(x)) for x in embeddings[edge]]
            for i in range(size):
                for j in range(size):
                    slack[i][j] -= Fraction(float(weight)) * row[i] * row[j]
    determinant = Fraction(1)
    for k in range(size):
        assert slack[k][k] > 0
        determinant *= slack[k][k]
        for i in range(k + 1, size):
            ratio = slack[i][k] / slack[k][k]
            slack[i] = [a - ratio * b for a, b in zip(slack[i], slack[k], strict=True)]
    logarithm = (Decimal(determinant.numerator) / Decimal(determinant.denominator)).ln()
    return logarithm + Decimal(linear.numerator) / Decimal(linear.denominator)


@pytest.mark.parametrize("excess", [1e-15, 1e-13, 1e-10, 1e-6, 1e-2, 0.5, 5.0, 1e3, 1e6])
def test_the_bounds_hold_in_exact_arithmetic(excess: float) -> None:
    rng = np.random.default_rng(11)
    network, size = _line(2, 3, 2, 2), 3
    embeddings = rng.standard_normal((9, size))
    times = ScenarioSet(embeddings, 0.0).nominal_times
    observed = network.shortest_path(times, 0, 4).time_s(times) * (1 + excess)
    radius = target_radius(network, embeddings, 0, 4, observed)
    graph = nx.MultiDiGraph()
    ends = zip(network.tail.tolist(), network.head.tolist(), strict=True)
    graph.add_edges_from((u, v, e) for e, (u, v) in enumerate(ends))
    metric = [[Fraction(float(x)) for x in row] for row in radius.metric]
    for path in nx.all_simple_edge_paths(graph, 0, 4):
        time = Fraction(0)
        for *_, edge in path:
            row = [Fraction(float(x)) for x in embeddings[edge]]
            time += sum(
                row[i] * metric[i][j] * row[j] for i in range(size) for j in range(size)
            )  # fmt: skip
        assert time >= Fraction(observed)
    with localcontext() as context:
        context.prec = 80
        proved = _exact_dual(embeddings, radius, observed)
    assert Decimal(radius.lower) <= max(proved, Decimal(0))
    if excess >= 1e-10:
        assert radius.lower == pytest.approx(float(proved), rel=1e-14 / min(excess, 1.0))


@pytest.mark.parametrize("seed", range(8))
def test_a_long_path_a_hair_above_nominal_loses_nothing_to_its_sum(seed: int) -> None:
    """A plain sum of 800 squares would move t − t̂, here 1e-12 of t, by several per mille."""
    embeddings = np.random.default_rng(seed).standard_normal((400, 2))
    observed = math.fsum((embeddings**2).ravel().tolist()) * (1 + 1e-12)
    radius = target_radius(_line(*[1] * 400), embeddings, 0, 400, observed)
    with localcontext() as context:
        context.prec = 80
        proved = float(_exact_dual(embeddings, radius, observed))
    assert radius.lower <= proved
    assert radius.lower == pytest.approx(proved, rel=1.5e-3)


# --- invariances --------------------------------------------------------------------


def test_it_grows_with_the_observed_time(grid: RoadNetwork) -> None:
    embeddings = _embeddings(grid, 6)
    stretches = np.concatenate((np.linspace(0.9, 4.5, 25), [8.0, 15.9, 16.1, 64.0, 300.0]))
    found = [_corner_to_corner(grid, embeddings, float(stretch)) for stretch in stretches]
    for shorter, longer in pairwise(found):
        assert shorter.upper <= longer.lower
        assert shorter.upper < longer.lower or longer.upper == 0.0


def test_rotating_the_embeddings_changes_nothing(grid: RoadNetwork) -> None:
    embeddings = _embeddings(grid, 6)
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((6, 6)))[0]
    plain = _corner_to_corner(grid, embeddings, 1.5)
    turned = _corner_to_corner(grid, embeddings @ turn.T, 1.5)
    assert turned.lower == pytest.approx(plain.lower, rel=1e-8)
    assert turned.metric == pytest.approx(turn @ plain.metric @ turn.T, abs=1e-4)


def test_renaming_nodes_and_edges_changes_nothing(grid: RoadNetwork) -> None:
    rng = np.random.default_rng(4)
    embeddings = _embeddings(grid, 6)
    order, name = rng.permutation(grid.num_edges), rng.permutation(grid.num_nodes)
    renamed = RoadNetwork.from_arrays(
        name[grid.tail[order]], name[grid.head[order]], grid.length_m[order]
    )
    observed = 1.5 * _nominal_s(grid, embeddings)
    plain = target_radius(grid, embeddings, ORIGIN, DESTINATION, observed)
    other = target_radius(
        renamed, embeddings[order], int(name[ORIGIN]), int(name[DESTINATION]), observed
    )
    assert other.lower == pytest.approx(plain.lower, rel=1e-8)


def test_same_arguments_same_bits(grid: RoadNetwork) -> None:
    embeddings = _embeddings(grid, 9)
    first, second = (_corner_to_corner(grid, embeddings, 2.5) for _ in range(2))
    assert (first.lower, first.upper, first.paths) == (second.lower, second.upper, second.paths)
    assert np.array_equal(first.metric, second.metric)


# --- the certificate ----------------------------------------------------------------


@pytest.fixture
def trip(grid: RoadNetwork) -> tuple[RoadNetwork, FloatArray, int, int, float]:
    embeddings = _embeddings(grid, 6)
    return grid, embeddings, ORIGIN, DESTINATION, 1.5 * _nominal_s(grid, embeddings)


def _other_path(radius: TargetRadius, network: RoadNetwork) -> tuple[Path, ...]:
    longest = network.shortest_path(1.0 / network.length_m, ORIGIN, DESTINATION)
    return (longest, *radius.paths[1:])


TAMPERED: dict[str, tuple[Callable[[TargetRadius, RoadNetwork], dict[str, Any]], str]] = {
    "lower raised": (lambda r, _: {"lower": r.lower * 1.000001}, "its paths prove"),
    "lower dropped": (lambda r, _: {"lower": r.lower * 0.999999}, "its paths prove"),
    "lower not a number": (lambda _, __: {"lower": math.nan}, "its paths prove"),
    "upper raised": (lambda r, _: {"upper": r.upper * 1.000001}, "its metric attains"),
    "upper dropped": (lambda r, _: {"upper": r.upper * 0.999999}, "its metric attains"),
    "both infinite": (
        lambda _, __: {"lower": math.inf, "upper": math.inf}, "its paths prove"),
    "both zero": (
        lambda _, __: {"lower": 0.0, "upper": 0.0, "metric": np.eye(6), "paths": (),
                       "multipliers": np.empty(0)}, "less than the observed"),
    "metric too small": (
        lambda r, _: {"metric": r.metric * 0.999,
                      "upper": burg_divergence(r.metric * 0.999)}, "less than the observed"),
    "metric of another": (lambda r, _: {"metric": r.metric * 1.001}, "its metric attains"),
    "metric not definite": (lambda r, _: {"metric": -r.metric}, "its metric attains"),
    "multipliers grown": (
        lambda r, _: {"multipliers": r.multipliers * 1.01}, "its paths prove"),
    "multipliers negative": (
        lambda r, _: {"multipliers": -r.multipliers}, "must be zero or positive"),
    "multipliers infinite": (
        lambda r, _: {"multipliers": r.multipliers * np.inf}, "needs a path of no time"),
    "multipliers beyond M = I": (
        lambda r, _: {"multipliers": r.multipliers * 100.0}, "its paths prove"),
    "multipliers missing": (
        lambda r, _: {"multipliers": r.multipliers[1:]}, "multipliers: expected"),
    "paths missing": (
        lambda r, _: {"paths": r.paths[1:], "multipliers": r.multipliers[1:]}, "its paths prove"),
    "path of other edges": (lambda r, n: {"paths": _other_path(r, n)}, "its paths prove"),
    "path that stops short": (
        lambda r, _: {"paths": (Path(r.paths[0].edges[:-1], ORIGIN, DESTINATION),
                                *r.paths[1:])}, "joins other nodes"),
    "path that breaks": (
        lambda r, _: {"paths": (Path(r.paths[0].edges[::2], ORIGIN, DESTINATION),
                                *r.paths[1:])}, "path breaks after edge"),
}  # fmt: skip


@pytest.mark.parametrize("lie", TAMPERED)
def test_verify_catches(lie: str, trip: tuple[RoadNetwork, FloatArray, int, int, float]) -> None:
    radius = target_radius(*trip)
    assert len(radius.paths) > 1
    radius.verify(*trip)
    change, message = TAMPERED[lie]
    with pytest.raises(IdealError, match=message):
        replace(radius, **change(radius, trip[0])).verify(*trip)


def test_verify_catches_another_trip(
    trip: tuple[RoadNetwork, FloatArray, int, int, float],
) -> None:
    network, embeddings, origin, destination, observed = trip
    radius = target_radius(*trip)
    for observed_s in (observed * 1.0001, observed * 0.9999):
        with pytest.raises(CertificateError, match="its paths prove"):
            radius.verify(network, embeddings, origin, destination, observed_s)
    with pytest.raises(CertificateError, match="joins other nodes"):
        radius.verify(network, embeddings, 1, destination, observed)
    with pytest.raises(CertificateError, match="joins other nodes"):
        radius.verify(network, embeddings, origin, 118, observed)
    with pytest.raises(CertificateError, match="its paths prove"):
        radius.verify(network, embeddings[::-1], origin, destination, observed)


def test_verify_catches_a_false_infinity(grid: RoadNetwork) -> None:
    embeddings = _embeddings(grid, 3)
    radius = target_radius(grid, embeddings, 7, 7, 1.0)
    with pytest.raises(CertificateError, match="joins other nodes"):
        radius.verify(grid, embeddings, 7, 8, 1.0)
    with pytest.raises(CertificateError, match="lower is inf, its paths prove 0.0"):
        radius.verify(grid, embeddings, 7, 7, 0.0)


def test_it_cannot_be_changed(trip: tuple[RoadNetwork, FloatArray, int, int, float]) -> None:
    radius = target_radius(*trip)
    with pytest.raises(FrozenInstanceError):
        radius.lower = 0.0  # type: ignore[misc]
    for array in (radius.metric, radius.multipliers):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0


# --- bad input ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("observed", "message"),
    [
        (-1.0, "observed time is -1.0 s; it must be finite and zero or more"),
        (math.nan, "observed time is nan s"),
        (math.inf, "observed time is inf s"),
        ("soon", "observed time 'soon' is not a number of seconds"),
    ],
)
def test_observed_times_that_are_none(grid: RoadNetwork, observed: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        target_radius(grid, _embeddings(grid, 2), ORIGIN, DESTINATION, observed)


def test_embeddings_that_do_not_fit(grid: RoadNetwork) -> None:
    embeddings = _embeddings(grid, 2)
    with pytest.raises(InputError, match="one row for each of 436 edges, got 435"):
        target_radius(grid, embeddings[1:], ORIGIN, DESTINATION, 1.0)
    embeddings[17, 1] = np.nan
    with pytest.raises(InputError, match="edge 17: embedding must be finite"):
        target_radius(grid, embeddings, ORIGIN, DESTINATION, 1.0)
    with pytest.raises(InputError, match="at least one number"):
        target_radius(grid, np.empty((436, 0)), ORIGIN, DESTINATION, 1.0)


@pytest.mark.parametrize(
    "options",
    [
        {"tolerance": math.nan},
        {"tolerance": -1},
        {"tolerance": "a"},
        {"most_cuts": 0},
        {"most_cuts": 1.5},
        {"most_cuts": 10**9},
    ],
)
def test_options_that_do_not_fit(grid: RoadNetwork, options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="tolerance .* it must be|most_cuts"):
        target_radius(grid, _embeddings(grid, 2), ORIGIN, DESTINATION, 1.0, **options)


def test_ends_that_do_not_fit(grid: RoadNetwork) -> None:
    embeddings = _embeddings(grid, 2)
    with pytest.raises(InputError, match="source 120 is not a node"):
        target_radius(grid, embeddings, 120, DESTINATION, 1.0)
    with pytest.raises(InputError, match="target -1 is not a node"):
        target_radius(grid, embeddings, ORIGIN, -1, 1.0)
    with pytest.raises(UnreachableError, match="node 0 cannot be reached from depot MOR"):
        target_radius(_line(1), [[1.0]], Depot("MOR", 1), 0, 1.0)


def test_a_depot_is_an_origin(grid: RoadNetwork) -> None:
    embeddings = _embeddings(grid, 2)
    named = target_radius(grid, embeddings, Depot("MOR", ORIGIN), DESTINATION, 500.0)
    assert named.upper == target_radius(grid, embeddings, ORIGIN, DESTINATION, 500.0).upper
    named.verify(grid, embeddings, Depot("MOR", ORIGIN), DESTINATION, 500.0)


def test_paths_with_a_forbidden_turn_do_not_count(grid: RoadNetwork) -> None:
    """The trip is slow because the fast way is forbidden: that needs no worse traffic."""
    embeddings = _embeddings(grid, 4)
    times = (embeddings**2).sum(axis=1)
    ends = (0, grid.num_nodes - 1)
    fastest = grid.shortest_path(times, *ends).edges.tolist()
    town = replace(grid, forbidden_turns=tuple(pairwise(fastest)))
    legal_s = town.shortest_path(times, *ends).time_s(times)
    assert target_radius(grid, embeddings, *ends, legal_s).lower > 0
    assert target_radius(town, embeddings, *ends, legal_s).upper == 0
    found = target_radius(town, embeddings, *ends, 1.2 * legal_s)
    assert 0 < found.lower <= found.upper <= found.lower * (1 + 1e-6)
    assert all(town.forbidden_turn(path) is None for path in found.paths)
    found.verify(town, embeddings, *ends, 1.2 * legal_s)
    free = target_radius(grid, embeddings, *ends, 1.2 * legal_s)
    assert free.lower > found.upper
    with pytest.raises(CertificateError, match="of its certificate makes a forbidden turn"):
        free.verify(town, embeddings, *ends, 1.2 * legal_s)
    with pytest.raises(InputError, match=f"source {grid.num_nodes} is not a node"):
        target_radius(town, embeddings, grid.num_nodes, 0, 100.0)
