"""Unit logs of any content: every row is a response or has a reason, and none stops the others."""

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ideal_dispatch.files import write_csv
from ideal_dispatch.records.response_log import LogSettings
from ideal_dispatch.records.response_reading import read_responses
from ideal_dispatch.records.responses import Responses

HEADER = ("incident", "unit", "station", "received", "dispatched", "en_route", "on_scene",
          "cleared", "lon", "lat", "start_lon", "start_lat", "attending")  # fmt: skip
SETTINGS = LogSettings.given(mapping={"agency": {"time_zone": "Europe/London", "country": "GB"}})
clocks = st.times().map(lambda t: t.strftime("%H:%M:%S"))
stamps = st.datetimes().map(lambda at: at.strftime("%Y-%m-%d %H:%M:%S"))
anything = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), max_size=6)
times = st.one_of(st.just(""), clocks, stamps, st.just("2023-03-26 01:30:00"), anything)
numbers = st.one_of(st.just(""), st.floats(-200, 200).map(str), anything)
rows = st.tuples(
    st.sampled_from(["1", "2", "3", ""]), st.sampled_from(["A", "B", ""]), anything,
    *[times] * 5, *[numbers] * 5,
)  # fmt: skip


@given(st.lists(rows, min_size=1, max_size=8))
def test_every_row_is_accounted_for(log: list[tuple[str, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        write_csv(path, HEADER, log)
        read = read_responses(path, SETTINGS)
        found = read.responses
        found.save(path.with_suffix(".responses"))
        again = Responses.load(path.with_suffix(".responses"))
    kept, left_out = set(found.row.tolist()), {row for row, _ in read.left_out}
    blank = {i for i, row in enumerate(log, 2) if not any(cell.strip() for cell in row)}
    assert not kept & left_out
    assert kept | left_out == set(range(2, len(log) + 2)) - blank
    assert all(reasons for _, reasons in read.left_out)
    assert np.array_equal(again.row, found.row)
    assert len(found.races()) <= len(set(found.incident.tolist()))
    assert not (found.recalled & found.arrived).any()
    assert ((found.hour >= 0) & (found.hour < 24)).all()
