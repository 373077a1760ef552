"""What every traffic source keeps, and every world.

A test class inherits one of these and gives a fixture ``source`` that answers
about ``network`` at the moment ``at``.
"""

from datetime import datetime, timedelta

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import InputError
from ideal_dispatch.traffic.source import TellsTruth, TrafficSource


class TrafficSourceContract:
    """A source of quotes; set ``deterministic`` to False where answers may change."""

    deterministic = True

    @pytest.fixture
    def source(self) -> TrafficSource:
        raise NotImplementedError

    @pytest.fixture
    def network(self, grid: RoadNetwork) -> RoadNetwork:
        return grid

    @pytest.fixture
    def at(self) -> datetime:
        raise NotImplementedError

    @pytest.fixture
    def trips(self, network: RoadNetwork) -> list[tuple[int, int]]:
        last = network.num_nodes - 1
        return [(0, last), (last, 0), (last // 3, last // 2)]

    def test_it_is_a_source(self, source: TrafficSource) -> None:
        assert isinstance(source, TrafficSource)

    def test_a_quote_is_a_path_from_origin_to_destination(
        self,
        source: TrafficSource,
        network: RoadNetwork,
        at: datetime,
        trips: list[tuple[int, int]],
    ) -> None:
        for origin, destination in trips:
            path = source.quote(origin, destination, at).path
            assert (path.origin, path.destination) == (origin, destination)
            assert network.path(path.edges, origin) == path  # its edges connect

    def test_times_are_finite_and_the_next_segment_is_a_part(
        self, source: TrafficSource, at: datetime, trips: list[tuple[int, int]]
    ) -> None:
        for origin, destination in trips:
            quote = source.quote(origin, destination, at)
            assert 0 < quote.duration_s < np.inf
            assert 0 < quote.next_segment_s <= quote.duration_s
            for bound in (quote.optimistic_s, quote.pessimistic_s):
                assert np.isnan(bound) or 0 < bound < np.inf
            assert np.isnan(quote.data_age_s) or quote.data_age_s >= 0
            assert isinstance(quote.fell_back, str)

    def test_the_moment_asked_is_kept(
        self, source: TrafficSource, at: datetime, trips: list[tuple[int, int]]
    ) -> None:
        assert source.quote(*trips[0], at).asked_at == at

    def test_the_same_question_has_the_same_answer(
        self, source: TrafficSource, at: datetime, trips: list[tuple[int, int]]
    ) -> None:
        if not self.deterministic:
            pytest.skip("this source may change its mind")
        first, again = (source.quote(*trips[0], at) for _ in range(2))
        assert repr(first) == repr(again)  # NaN is not equal to itself
        assert first.path == again.path

    def test_who_is_there_needs_no_time(self, source: TrafficSource, at: datetime) -> None:
        quote = source.quote(5, 5, at)
        assert len(quote.path) == 0
        assert (quote.path.origin, quote.path.destination) == (5, 5)
        assert (quote.duration_s, quote.next_segment_s) == (0.0, 0.0)

    def test_a_time_without_zone_is_refused(self, source: TrafficSource, at: datetime) -> None:
        with pytest.raises(InputError, match="no zone"):
            source.quote(0, 5, at.replace(tzinfo=None))

    def test_an_unknown_node_is_refused(
        self, source: TrafficSource, network: RoadNetwork, at: datetime
    ) -> None:
        for origin, destination in ((network.num_nodes, 0), (0, network.num_nodes), (-1, 0)):
            with pytest.raises(InputError, match="not a node"):
                source.quote(origin, destination, at)


class ReplayedTrafficContract(TrafficSourceContract):
    """A source that also knows what happened."""

    def test_it_is_a_world(self, source: TellsTruth) -> None:
        assert isinstance(source, TellsTruth)

    def test_every_edge_takes_some_time(
        self, source: TellsTruth, network: RoadNetwork, at: datetime
    ) -> None:
        for edge in range(0, network.num_edges, 7):
            assert 0 < source.realised(edge, at) < np.inf
            assert source.realised(edge, at) == source.realised(edge, at)

    def test_the_truth_needs_a_zone_too(self, source: TellsTruth, at: datetime) -> None:
        with pytest.raises(InputError, match="no zone"):
            source.realised(0, at.replace(tzinfo=None))

    def test_an_unknown_edge_is_refused(
        self, source: TellsTruth, network: RoadNetwork, at: datetime
    ) -> None:
        for edge in (-1, network.num_edges):
            with pytest.raises(InputError, match=f"edge {edge}: there are 0 … "):
                source.realised(edge, at)

    def test_the_truth_goes_on_for_a_while(
        self, source: TellsTruth, network: RoadNetwork, at: datetime
    ) -> None:
        later = [source.realised(0, at + timedelta(minutes=k)) for k in range(10)]
        assert np.isfinite(later).all()
