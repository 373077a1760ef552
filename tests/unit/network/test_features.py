import numpy as np

from ideal_dispatch import RoadNetwork
from ideal_dispatch.network.features import FEATURE_NAMES, edge_features
from ideal_dispatch.network.road_class import ROAD_CLASSES


def test_the_papers_twenty_columns() -> None:
    assert len(FEATURE_NAMES) == 20
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
    rows = [dict(zip(FEATURE_NAMES, row, strict=True)) for row in features.tolist()]
    assert [row["length_m"] for row in rows] == [100, 110, 120, 130, 10]
    assert [row["speed_kmh"] for row in rows] == [30, 50, 50, 80, 20], "default 50"
    assert [row["neighbours_tail"] for row in rows] == [2, 1, 2, 1, 2], "loops are no neighbours"
    assert [row["neighbours_head"] for row in rows] == [1, 2, 1, 2, 2]
    assert [row["oneway"] for row in rows] == [0, 0, 1, 1, 0]
    assert [row["lanes"] for row in rows] == [3, 2, 1, 2, 1], "one per direction, motorways two"
    assert [row["class_residential"] for row in rows] == [1, 1, 0, 0, 0]
    assert (features[:, 6:].sum(axis=1) == 1).all()
