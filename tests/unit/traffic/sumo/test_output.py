from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch.errors import FileFormatError
from ideal_dispatch.traffic.sumo.output import (
    Passages,
    clipped,
    left_times_s,
    read_passages,
    read_summary,
)

ROUTES = """<routes>
  <vehicle id="a" depart="10.00" arrival="60.00">
    <route edges="4 2 7" exitTimes="20.00 45.00 60.00"/>
  </vehicle>
  <vehicle id="teleported" depart="10.00" arrival="90.00">
    <route edges="4 2 7 1" exitTimes="30.00 -1.00 70.00 90.00"/>
  </vehicle>
  <vehicle id="rerouted" depart="5.00">
    <routeDistribution><route edges="9 9"/><route edges="4 2" exitTimes="12.00 -1"/>
    </routeDistribution>
  </vehicle>
  <vehicle id="short" depart="5.00" arrival="6.00"><route edges="3" exitTimes="6.00"/></vehicle>
</routes>"""


def test_passages_run_from_entering_to_entering(tmp_path: Path) -> None:
    path = tmp_path / "routes.xml"
    path.write_text(ROUTES)
    passages = read_passages(path)
    # last edges and what was teleported over are left out
    assert passages.edge.tolist() == [4, 2, 4, 4]
    assert passages.enter_s.tolist() == [10, 20, 10, 5]
    assert passages.leave_s.tolist() == [20, 45, 30, 12]


def test_no_vehicle_gives_no_passage(tmp_path: Path) -> None:
    path = tmp_path / "routes.xml"
    path.write_text("<routes></routes>")
    assert read_passages(path).edge.size == 0


@pytest.mark.parametrize("text", ["", ROUTES[:200], "not xml"])
def test_damaged_outputs_get_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "routes.xml"
    path.write_text(text)
    with pytest.raises(FileFormatError, match="not a whole SUMO output"):
        read_passages(path)


def test_missing_exit_times_are_named(tmp_path: Path) -> None:
    path = tmp_path / "routes.xml"
    path.write_text('<routes><vehicle id="x" depart="1"><route edges="1 2"/></vehicle></routes>')
    with pytest.raises(FileFormatError, match="vehicle x has no exit times"):
        read_passages(path)


def test_an_empty_summary_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "summary.xml"
    path.write_text("<summary></summary>")
    with pytest.raises(FileFormatError, match="no steps"):
        read_summary(path)


def test_bins_hold_means_and_nan_where_nobody_was() -> None:
    passages = Passages(
        np.array([0, 0, 1, 1, 1], np.int32),
        np.array([0.0, 10.0, 50.0, 500.0, -40.0]),
        np.array([20.0, 40.0, 70.0, 520.0, 10.0]),
    )
    times = left_times_s(passages, np.array([10.0, 10.0]), 0, 2, 60)
    np.testing.assert_array_equal(times, [[25.0, 50.0], [np.nan, 20.0]])
    assert times.dtype == np.float32


def test_times_are_clipped_around_free_flow() -> None:
    clip = clipped(np.array([1.0, 50.0, 9999.0]), np.array([10.0, 10.0, 10.0]))
    assert clip.tolist() == [8.0, 50.0, 260.0]
