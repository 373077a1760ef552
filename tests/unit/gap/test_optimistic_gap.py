import dataclasses
from typing import Any

import numpy as np
import pytest

from benchmarks.networks import smooth_embeddings
from ideal_dispatch import Depot, OptimisticGap, Path, RoadNetwork, ScenarioSet, optimistic_gap
from ideal_dispatch.cities import harbour_city
from ideal_dispatch.errors import CertificateError, InputError, UnreachableError
from ideal_dispatch.gap import certificate
from ideal_dispatch.gap import certificate_kernels as fates
from ideal_dispatch.gap.certificate import Proof
from ideal_dispatch.gap.problem import GapProblem
from tests.theory.small_towns import random_town


@pytest.fixture(scope="module")
def city_question() -> tuple[Any, ...]:
    city = harbour_city()
    scenarios = ScenarioSet(smooth_embeddings(city.network, 8), 0.1)
    primary = city.network.shortest_path(scenarios.nominal_times, city.depots, 700)
    return city.network, scenarios, city.depots, 700, primary


class TestCity:
    def test_exact_gap_is_verified(self, city_question: tuple[Any, ...]) -> None:
        gap = optimistic_gap(*city_question)
        assert gap.status == "exact"
        assert gap.upper_s - gap.lower_s <= 1e-6
        assert gap.lower_s > 1
        gap.verify(*city_question)

    def test_methods_are_ordered(self, city_question: tuple[Any, ...]) -> None:
        gaps = {m: optimistic_gap(*city_question, method=m)
                for m in ("dca", "multistart", "certified")}  # fmt: skip
        assert gaps["dca"].lower_s <= gaps["certified"].lower_s + 1e-9
        assert gaps["multistart"].lower_s <= gaps["certified"].lower_s + 1e-9
        assert gaps["certified"].upper_s <= gaps["multistart"].upper_s
        for gap in gaps.values():
            gap.verify(*city_question)

    def test_threshold_decides_with_less_work(self, city_question: tuple[Any, ...]) -> None:
        exact = optimistic_gap(*city_question)
        for threshold_s in (exact.lower_s - 10, exact.lower_s + 30):
            gap = optimistic_gap(*city_question, threshold_s=threshold_s)
            assert gap.status == "decided"
            assert gap.worth_sending is bool(exact.lower_s > threshold_s)
            assert len(gap.proof) < len(exact.proof)
            gap.verify(*city_question)

    def test_the_depots_alone_may_decide(self, city_question: tuple[Any, ...]) -> None:
        gap = optimistic_gap(*city_question, threshold_s=1e4)
        assert gap.worth_sending is False
        assert len(gap.proof) == len(city_question[2])
        problem = GapProblem.ask(*city_question)
        for target_s, closed in ((1e4, True), (0.0, False)):
            search = certificate.Search(problem, target_s, stop_at_found=True)
            assert search.run(most_pops=problem.depots.size).closed is closed

    def test_a_narrowed_search_needs_fewer_labels(self, city_question: tuple[Any, ...]) -> None:
        problem = GapProblem.ask(*city_question)
        target_s = optimistic_gap(*city_question).lower_s + 1e-3
        plain = certificate.Search(problem, target_s, stop_at_found=True).run()
        search = certificate.Search(problem, target_s, stop_at_found=True)
        search.narrow(time_limit_s=0.0)  # no time for it: nothing changes
        assert not search.run(most_pops=1).proof.corridor_multiplier.size
        search.narrow()
        narrowed = search.run()
        assert plain.closed
        assert narrowed.closed
        assert narrowed.proof.corridor_multiplier.size == len(city_question[2])
        assert len(narrowed.proof) < len(plain.proof) / 2

    def test_no_time_leaves_a_valid_interval(self, city_question: tuple[Any, ...]) -> None:
        exact = optimistic_gap(*city_question)
        gap = optimistic_gap(*city_question, time_limit_s=0.0)
        assert gap.status == "open"
        assert gap.worth_sending is None
        assert gap.lower_s <= exact.lower_s + 1e-6 <= gap.upper_s + 1e-6
        gap.verify(*city_question)

    def test_same_question_same_bytes(self, city_question: tuple[Any, ...]) -> None:
        first, second = (optimistic_gap(*city_question) for _ in range(2))
        assert (first.lower_s, first.upper_s) == (second.lower_s, second.upper_s)
        assert first.metric.tobytes() == second.metric.tobytes()
        assert first.secondary == second.secondary
        assert first.proof.via.tobytes() == second.proof.via.tobytes()
        drawn = [optimistic_gap(*city_question, method="dca", seed=s).lower_s for s in (1, 1)]
        assert drawn[0] == drawn[1]

    def test_a_primary_whose_depot_has_no_further_unit(
        self, city_question: tuple[Any, ...]
    ) -> None:
        """The gap may then be negative: nobody else can be as quick."""
        network, scenarios, depots, _, _ = city_question
        near = int(network.head[network.outgoing.edge[network.outgoing.start[depots[0].node]]])
        primary = network.shortest_path(scenarios.nominal_times, depots[0], near)
        gap = optimistic_gap(network, scenarios, depots[1], near, primary)
        assert gap.upper_s < 0
        assert gap.secondary.origin == depots[1].node
        gap.verify(network, scenarios, depots[1], near, primary)


class TestSpecialCases:
    def test_destination_is_a_depot(self) -> None:
        town = random_town(1)
        question = (town.network, town.scenarios(0.3), [town.destination], town.destination)
        gap = optimistic_gap(*question, town.primary)
        assert len(gap.secondary) == 0
        assert gap.status == "exact"
        assert gap.lower_s > town.primary.time_s(town.scenarios(0.3).nominal_times)
        gap.verify(*question, town.primary)
        waiting = town.network.path([], origin=town.destination)
        assert optimistic_gap(*question, waiting).lower_s == 0.0

    @pytest.mark.parametrize("radius", [0.0, 1e-310, 1e-190, 1e-12, 0.3, 1000.0])
    @pytest.mark.parametrize("kind", ["one dimension", "all equal", "zero", "some zero"])
    def test_degenerate_embeddings(self, kind: str, radius: float) -> None:
        town = random_town(2)
        embeddings = {
            "one dimension": np.linalg.norm(town.embeddings, axis=1)[:, None],
            "all equal": np.ones_like(town.embeddings),
            "zero": np.zeros_like(town.embeddings),
            "some zero": np.where(np.arange(len(town.embeddings))[:, None] % 3, town.embeddings, 0),
        }[kind]
        question = (town.network, ScenarioSet(embeddings, radius), town.depots, town.destination)
        gap = optimistic_gap(*question, town.primary)
        assert np.isfinite([gap.lower_s, gap.upper_s]).all()
        assert np.isfinite(gap.metric).all()
        if radius < 1000:  # a metric that wide cannot be checked in double precision
            assert gap.status == "exact"
            gap.verify(*question, town.primary)
        if kind in ("one dimension", "all equal"):
            nominal = (embeddings**2).sum(axis=1)
            fastest = town.network.distances(nominal, town.depots)[town.destination]
            slower = town.primary.time_s(nominal) - fastest
            widest = ScenarioSet(embeddings, radius).eigenvalue_bounds.upper
            assert gap.lower_s == pytest.approx(slower * widest, abs=1e-6, rel=1e-6)

    @pytest.mark.parametrize("seed", range(40))
    def test_a_threshold_at_the_gap_is_decided(self, seed: int) -> None:
        question = random_town(seed, 2).question(1.0)
        exact = optimistic_gap(*question)
        gap = optimistic_gap(*question, threshold_s=max(0.0, exact.lower_s))
        assert gap.status in ("exact", "decided")
        assert gap.worth_sending is False
        gap.verify(*question)

    @pytest.mark.parametrize("radius", [1e-19, 1e-17, 1e-15, 1e-13])
    def test_tiny_radii_are_verified(self, radius: float) -> None:
        for seed in range(20):
            question = random_town(seed, 2).question(radius)
            optimistic_gap(*question).verify(*question)

    def test_depots_may_repeat(self) -> None:
        town = random_town(4)
        once = optimistic_gap(*town.question(0.2))
        twice = optimistic_gap(
            town.network, town.scenarios(0.2), [*town.depots, *town.depots], town.destination,
            town.primary,
        )  # fmt: skip
        assert once.lower_s == twice.lower_s


class TestBadInput:
    @pytest.fixture
    def network(self) -> RoadNetwork:
        return RoadNetwork.from_arrays([0, 1, 2, 0], [1, 2, 0, 2], [1.0] * 4, num_nodes=4)

    def test_each_is_one_clear_line(self, network: RoadNetwork) -> None:
        scenarios = ScenarioSet(np.ones((4, 2)), 0.1)
        good = network.path([0, 1])
        elsewhere = Path(np.array([0, 2]), 0, 0)
        cases: list[tuple[tuple[Any, ...], dict[str, Any], type[Exception], str]] = [
            ((ScenarioSet(np.ones((3, 2)), 0.1), [0], 2, good), {}, InputError,
             "scenarios are for 3 edges, the network has 4"),
            ((scenarios, [], 2, good), {}, InputError, "no depot given: a second ambulance needs"),
            ((scenarios, [9], 2, good), {}, InputError, "node 9 is not in the network"),
            ((scenarios, [0], 1, good), {}, InputError, "primary path ends at node 2, not at node"),
            ((scenarios, [0], 2, elsewhere), {}, InputError, "path breaks after edge 0"),
            ((scenarios, [Depot("MOR", 3)], 2, good), {}, UnreachableError,
             r"node 2 cannot be reached from depot MOR \(node 3\)"),
            ((scenarios, [0], 2, good), {"method": "magic"}, InputError, "none of certified, mult"),
            ((scenarios, [0], 2, good), {"threshold_s": -1}, InputError, "threshold is -1 s"),
            ((scenarios, [0], 2, good), {"threshold_s": float("nan")}, InputError, "is nan s"),
            ((scenarios, [0], 2, good), {"time_limit_s": -1}, InputError, "time limit is -1 s"),
            ((scenarios, [0], 2, good), {"threshold_s": "soon"}, InputError, "is not a number of"),
            ((scenarios, [0], 2, good), {"method": "dca", "seed": -1}, InputError, "seed -1: it"),
            ((scenarios, [2**40], 2, good), {}, InputError, "is not in the network"),
            ((scenarios, [0], 2, [0, 1]), {}, InputError, "the primary is not a Path"),
            ((ScenarioSet(np.ones((4, 2)), 0.0), [0], 2, good), {"method": "magic"}, InputError,
             "none of certified"),
        ]  # fmt: skip
        for arguments, options, error, message in cases:
            with pytest.raises(error, match=message) as caught:
                optimistic_gap(network, *arguments, **options)
            assert "\n" not in str(caught.value)


class TestLies:
    """verify() catches every claim that is not true."""

    @pytest.fixture
    def answer(self) -> tuple[OptimisticGap, tuple[Any, ...]]:
        for seed in range(50):
            question = random_town(seed, depots=3).question(0.3)
            gap = optimistic_gap(*question)
            fates_seen = set(gap.proof.fate.tolist())
            rich = {fates.EXPANDED, fates.COMPLETE} <= fates_seen and len(gap.secondary) > 1
            if gap.lower_s > 1 and rich:
                return gap, question
        raise AssertionError("no town is rich enough")

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda g: {"lower_s": g.lower_s - 0.1, "upper_s": g.upper_s - 0.1}, "not attained"),
            (lambda g: {"lower_s": g.lower_s + 0.1}, "not attained"),
            (lambda g: {"upper_s": g.upper_s + 0.1}, "is open, not exact"),
            (lambda g: {"status": "certain"}, "is exact, not certain"),
            (lambda g: {"upper_s": g.lower_s - 1e-7, "status": "open"}, "is empty"),
            (lambda g: {"metric": 3 * g.metric}, "not in the scenario set"),
            (lambda g: {"status": "decided", "threshold_s": None}, "is exact, not decided"),
            (lambda g: {"secondary": Path(g.secondary.edges[1:], *_ends(g))}, "path starts at"),
        ],
    )  # fmt: skip
    def test_claims(
        self, answer: tuple[OptimisticGap, tuple[Any, ...]], change: Any, message: str
    ) -> None:
        gap, question = answer
        with pytest.raises((CertificateError, InputError), match=message):
            dataclasses.replace(gap, **change(gap)).verify(*question)

    def test_proofs(self, answer: tuple[OptimisticGap, tuple[Any, ...]]) -> None:
        gap, question = answer
        proof = gap.proof

        def broken(message: str, **columns: Any) -> None:
            tampered = dataclasses.replace(proof, **columns)
            with pytest.raises(CertificateError, match=message):
                dataclasses.replace(gap, proof=tampered).verify(*question)

        complete = np.flatnonzero(proof.fate == fates.COMPLETE)
        expanded = np.flatnonzero(proof.fate == fates.EXPANDED)
        keep = slice(0, int(complete[0]) if complete.size else 1)
        broken("does not start at all depots", **_cut(proof, slice(1, 1)))
        broken("is not proved", fate=_set(proof.fate, expanded[:1], fates.BOUNDED))
        broken("is not dominated", fate=_set(proof.fate, expanded[:1], fates.DOMINATED))
        broken("bounds nothing", base_multiplier=proof.base_multiplier * 1e-6)
        broken("is not proved|does not extend", **_cut(proof, keep))
        child = int(np.flatnonzero(proof.parent >= 0)[0])
        broken("does not extend its parent", parent=_set(proof.parent, [child], child))

    def test_corridors(self, city_question: tuple[Any, ...]) -> None:
        """A proof that relies on a corridor is checked with it, and fails with another."""
        gap = optimistic_gap(*city_question)
        multiplier = gap.proof.corridor_multiplier
        assert multiplier.size
        gap.verify(*city_question)
        for message, changed in (
            ("is not proved", np.empty(0)),
            ("bounds nothing", multiplier * 1e-3),
            ("points outside itself", multiplier[:-1]),
        ):
            forged = dataclasses.replace(gap.proof, corridor_multiplier=changed)
            with pytest.raises(CertificateError, match=message):
                dataclasses.replace(gap, proof=forged).verify(*city_question)

    def test_a_base_must_lie_on_the_way_of_its_labels(self) -> None:
        """A base elsewhere would bound nothing: what came since is then no path."""
        rng = np.random.default_rng(31)
        embeddings = rng.normal(size=(4, 2)) * rng.uniform(1, 8, 4)[:, None]
        network = RoadNetwork.from_arrays([0, 0, 0, 2], [1, 1, 2, 1], [100.0] * 4)
        question = (network, ScenarioSet(embeddings, 0.1), [0], 1, network.path([0]))
        gap = optimistic_gap(*question)

        def column(*values: int) -> Any:
            return np.array(values, np.int32)

        forged = Proof(
            column(0, 2), column(-1, 0), column(-1, 2), column(0, 0), column(2, 2),
            column(-1, -1), column(1), np.array([13.73823795883263]), np.empty(0),
        )  # fmt: skip
        with pytest.raises(CertificateError, match="a base that is not on its way"):
            dataclasses.replace(gap, proof=forged).verify(*question)
        outside = dataclasses.replace(forged, base=column(7, 7))
        with pytest.raises(CertificateError, match="points outside itself"):
            dataclasses.replace(gap, proof=outside).verify(*question)

    def test_another_question(self, answer: tuple[OptimisticGap, tuple[Any, ...]]) -> None:
        gap, (network, scenarios, depots, destination, primary) = answer
        wider = ScenarioSet(scenarios.embeddings, 2.0)
        with pytest.raises(CertificateError):
            gap.verify(network, wider, depots, destination, primary)


def _ends(gap: OptimisticGap) -> tuple[int, int]:
    return gap.secondary.origin, gap.secondary.destination


def _set(column: Any, rows: Any, value: int) -> Any:
    changed = column.copy()
    changed[rows] = value
    return changed


def _cut(proof: Any, rows: slice) -> dict[str, Any]:
    names = ("node", "parent", "via", "base", "fate", "dominator")
    return {name: getattr(proof, name)[rows] for name in names}
