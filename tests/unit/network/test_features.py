import numpy as np

from ideal_dispatch import RoadNetwork
from ideal_dispatch.network.features import edge_features
from ideal_dispatch.network.road_class import ROAD_CLASSES


def test_the_papers_twenty_columns() -> None:
    assert len(ROAD_CLASSES) == len(set(ROAD_CLASSES)) == 14
    network = RoadNetwork.from_arrays(
        [0, 1, 0, 2, 0],
        [1, 0, 1, 0, 0],
        [100.0, 110.0, 120.0, 130.0, 10.0],
        speed_kmh=[30, np.nan, 50, 80, 20],
        lanes=[3, np.nan, np.nan, np.nan, 1],
        oneway=[False, False, True, True, False],
        road_class=["residential", "residential", "service", "motorway", "trunk"],
    )
    features = edge_features(network)
    assert features.shape == (5, 20)
    length_m, speed_kmh, neighbours_tail, neighbours_head, oneway, lanes, *classes = (
        features.T.tolist()
    )
    assert length_m == [100, 110, 120, 130, 10]
    assert speed_kmh == [30, 30, 50, 80, 20], "the usual one of a residential road"
    assert neighbours_tail == [2, 1, 2, 1, 2], "loops are no neighbours"
    assert neighbours_head == [1, 2, 1, 2, 2]
    assert oneway == [0, 0, 1, 1, 0]
    assert lanes == [3, 2, 1, 2, 1], "one per direction, motorways two"
    assert classes[ROAD_CLASSES.index("residential")] == [1, 1, 0, 0, 0]
    assert (features[:, 6:].sum(axis=1) == 1).all()
