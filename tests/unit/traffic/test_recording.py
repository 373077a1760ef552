import zipfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from ideal_dispatch import Calendar, RoadNetwork
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.traffic import recording as module
from ideal_dispatch.traffic.recorded_router import RecordedRouter
from ideal_dispatch.traffic.recording import (
    KIND,
    RATIOS,
    RecordedTraffic,
    Stretch,
    counted_by,
    encode,
)
from tests.unit.traffic.small import CALENDAR, START, recording


def test_codes_are_within_two_percent(grid: RoadNetwork) -> None:
    free_flow = grid.free_flow_times_s
    ratio = np.geomspace(0.5, 100, grid.num_edges)
    decoded = RATIOS[encode((free_flow * ratio)[None], grid)][0]
    np.testing.assert_allclose(decoded, ratio, rtol=0.011)


def test_codes_clip_and_keep_the_unseen(grid: RoadNetwork) -> None:
    times = np.full((1, grid.num_edges), np.nan)
    times[0, :3] = grid.free_flow_times_s[:3] * [0.01, 1.0, 1e6]
    codes = encode(times, grid)[0]
    assert codes[0] == 1
    assert codes[2] == 255
    assert not codes[3:].any()


def test_round_trip_is_equal_and_the_bytes_are_the_same(grid: RoadNetwork, tmp_path: Path) -> None:
    made = recording(grid)
    for name in ("a.traffic", "b.traffic"):
        made.save(tmp_path / name)
    assert (tmp_path / "a.traffic").read_bytes() == (tmp_path / "b.traffic").read_bytes()
    read = RecordedTraffic.load(tmp_path / "a.traffic", grid)
    assert read.bin_s == made.bin_s
    assert read.calendar == made.calendar
    assert dict(read.provenance) == {"engine": "test"}
    for one, other in zip(read.stretches, made.stretches, strict=True):
        assert one.start == other.start
        assert dict(one.notes) == dict(other.notes)
        np.testing.assert_array_equal(one.codes, other.codes)
        np.testing.assert_array_equal(one.truth, other.truth)
        np.testing.assert_array_equal(one.weather, other.weather)


def test_without_drives_a_router_says_the_same(grid: RoadNetwork, tmp_path: Path) -> None:
    recording(grid).save(tmp_path / "a.traffic")
    at = START + timedelta(minutes=30)
    quotes = [
        RecordedRouter(RecordedTraffic.load(tmp_path / "a.traffic", grid, driven=driven)).quote(
            0, grid.num_nodes - 1, at
        )
        for driven in (True, False)
    ]
    assert quotes[0] == quotes[1]


def test_a_truth_of_its_own_is_kept(grid: RoadNetwork, tmp_path: Path) -> None:
    made = recording(grid, days=1)
    truth = np.full_like(made.stretches[0].codes, 9)
    own = replace(made, stretches=(replace(made.stretches[0], truth=truth),))
    own.save(tmp_path / "a.traffic")
    read = RecordedTraffic.load(tmp_path / "a.traffic", grid)
    np.testing.assert_array_equal(read.stretches[0].truth, truth)
    assert own.checksum != made.checksum


def test_another_network_is_refused(grid: RoadNetwork, tmp_path: Path) -> None:
    recording(grid).save(tmp_path / "a.traffic")
    other = RoadNetwork.from_arrays([0], [1], [5.0])
    with pytest.raises(FileFormatError, match="recorded on another network"):
        RecordedTraffic.load(tmp_path / "a.traffic", other)


def test_damage_is_one_line(grid: RoadNetwork, tmp_path: Path) -> None:
    file = tmp_path / "a.traffic"
    recording(grid).save(file)
    file.write_bytes(file.read_bytes()[:-200])
    with pytest.raises(FileFormatError, match="truncated or damaged traffic file"):
        RecordedTraffic.load(file, grid)


def test_days_are_of_the_city(grid: RoadNetwork) -> None:
    made = recording(grid, days=3)
    assert made.days == ((0,), (1,), (2,))
    assert made.only([2, 0]).stretches == (made.stretches[0], made.stretches[2])


def test_context_has_the_hour_of_the_city_and_its_weather(grid: RoadNetwork) -> None:
    context = recording(grid).context(START + timedelta(days=1, minutes=70))
    assert context.at.hour == 7
    assert context.weather.rainfall_mm.value == 1.0
    assert context.weather.rainfall_mm.source == "test"


def test_a_moment_outside_is_refused(grid: RoadNetwork) -> None:
    made = recording(grid)
    for at in (START - timedelta(seconds=1), START + timedelta(hours=2)):
        with pytest.raises(InputError, match="is not in the recording"):
            made.find(at)
    assert made.find(START + timedelta(seconds=119)) == (0, 1)


def test_bad_questions_and_parts_get_one_line(grid: RoadNetwork) -> None:
    made = recording(grid)
    with pytest.raises(InputError, match="no zone"):
        made.find(START.replace(tzinfo=None))
    with pytest.raises(InputError, match="day 3: there are 0 … 2"):
        made.only([3])
    with pytest.raises(InputError, match="weather of 1 hours, 2 are recorded"):
        replace(made, stretches=(replace(made.stretches[0], weather=np.ones((1, 5))),))
    for bin_s in (60.5, True):
        with pytest.raises(InputError, match="bin_s"):
            replace(made, bin_s=bin_s)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="edge times below zero"):
        encode(-grid.free_flow_times_s[None], grid)


@pytest.mark.parametrize(
    "codes",
    [
        np.ones((80_000_000, 1), np.uint8),  # of which a kernel would read out of bounds
        np.ones((436, 120)),
        np.ones(436, np.uint8),
        np.full((436, 120), 100_000, np.int64),
    ],
    ids=["shape", "float", "flat", "range"],
)
def test_codes_are_checked_before_anything_is_derived(
    grid: RoadNetwork, tmp_path: Path, codes: Any
) -> None:
    recording(grid, days=1).save(tmp_path / "a.traffic")
    manifest, arrays = KIND.read(tmp_path / "a.traffic")
    kept = {name: array for name, array in arrays.items() if not name.startswith("truth")}
    KIND.write(tmp_path / "a.traffic", manifest, {**kept, "codes_0": codes})
    with pytest.raises(FileFormatError, match=r"a\.traffic: stretch 0: codes are .* of shape"):
        RecordedTraffic.load(tmp_path / "a.traffic", grid)


def test_overlapping_stretches_are_refused(grid: RoadNetwork) -> None:
    one = recording(grid, days=1).stretches[0]
    with pytest.raises(InputError, match="begins before the one before it ends"):
        RecordedTraffic(grid, CALENDAR, 60, (one, one))


def test_wrong_number_of_edges_is_refused(grid: RoadNetwork) -> None:
    stretch = Stretch(datetime(2023, 1, 1, tzinfo=UTC), np.ones((2, 3), np.uint8), np.ones((1, 5)))
    with pytest.raises(InputError, match="3 edges, the network has"):
        RecordedTraffic(grid, CALENDAR, 60, (stretch,))


def test_a_passage_is_seen_when_it_is_over(grid: RoadNetwork) -> None:
    bin_s = 60
    truth = np.zeros((6, grid.num_edges), np.uint8)
    slowness = np.array([0.4, 1.0, 3.0]) * bin_s / grid.free_flow_times_s[0]
    truth[[0, 1, 2], 0] = encode(slowness[:, None] * grid.free_flow_times_s, grid)[:, 0]
    truth[5, 1] = encode(2.0 * bin_s * np.ones((1, grid.num_edges)), grid)[0, 1]
    seen = counted_by("exit", truth, grid, bin_s)
    expected = np.zeros_like(truth)
    expected[[0, 2, 5], 0] = truth[[0, 1, 2], 0]  # after 24 s, one minute and three
    np.testing.assert_array_equal(seen, expected)  # who leaves after the last bin is not seen


def test_those_who_leave_together_are_averaged(grid: RoadNetwork) -> None:
    free_flow = float(grid.free_flow_times_s[0])
    slow, quick = 2.0 * 60.0, 1.0 * 60.0
    times = np.full((3, grid.num_edges), np.nan)
    times[0, 0], times[1, 0] = slow, quick
    seen = counted_by("exit", encode(times, grid), grid, 60)
    assert np.flatnonzero(seen.any(axis=1)).tolist() == [2]
    assert RATIOS[seen[2, 0]] * free_flow == pytest.approx(90.0, rel=0.03)


def test_entry_and_exit_are_each_others_inverse(grid: RoadNetwork) -> None:
    truth = np.zeros((40, grid.num_edges), np.uint8)
    truth[::20] = encode(np.linspace(5, 500, grid.num_edges)[None], grid)
    ended = counted_by("exit", truth, grid, 60)
    assert (ended != truth).any()
    np.testing.assert_array_equal(counted_by("entry", ended, grid, 60), truth)


def test_nothing_that_is_over_is_still_to_come(grid: RoadNetwork) -> None:
    """The truth of a bin follows from passages that end in it or later: none was seen before."""
    codes = recording(grid, days=1).stretches[0].codes
    present = len(codes) // 2
    truth = counted_by("entry", codes, grid, 60)
    past = codes.copy()
    past[:present] = 0
    np.testing.assert_array_equal(counted_by("entry", past, grid, 60)[present:], truth[present:])


def test_what_follows_from_what_was_seen_is_not_stored(grid: RoadNetwork, tmp_path: Path) -> None:
    made = recording(grid, days=1)
    codes = made.stretches[0].codes
    truth = counted_by("entry", codes, grid, made.bin_s)
    plain = replace(made, stretches=(replace(made.stretches[0], codes=codes, truth=truth),))
    plain.save(tmp_path / "a.traffic")
    with zipfile.ZipFile(tmp_path / "a.traffic") as archive:
        assert not [name for name in archive.namelist() if name.startswith("truth")]
    read = RecordedTraffic.load(tmp_path / "a.traffic", grid)
    assert read.checksum == plain.checksum


def test_the_checksum_is_of_weather_and_notes_too(grid: RoadNetwork) -> None:
    made = recording(grid, days=1)
    one = made.stretches[0]
    others = [replace(one, notes={"closed": 1}), replace(one, weather=one.weather + 1.0)]
    sums = {replace(made, stretches=(stretch,)).checksum for stretch in (one, *others)}
    assert len(sums) == 3


def test_a_stretch_keeps_no_zone_whose_clocks_change(grid: RoadNetwork, tmp_path: Path) -> None:
    """Three hours from midnight of the change end at four, in memory as when loaded."""
    start = datetime(2023, 3, 12, tzinfo=ZoneInfo("America/New_York"))
    codes = np.ones((180, grid.num_edges), np.uint8)
    stretch = Stretch(start, codes, np.ones((3, 5)), truth=codes)
    made = RecordedTraffic(grid, Calendar("America/New_York", "US"), 60, (stretch,))
    made.save(tmp_path / "a.traffic")
    read = RecordedTraffic.load(tmp_path / "a.traffic", grid)
    for one in (made, read):
        end = one.end(one.stretches[0])
        assert end == datetime(2023, 3, 12, 8, tzinfo=UTC)
        assert one.calendar.local(end).hour == 4
        assert one.stretches[0].start.isoformat() == "2023-03-12T00:00:00-05:00"
    assert read.checksum == made.checksum


def test_an_older_format_is_named(
    grid: RoadNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.traffic"
    monkeypatch.setattr(module, "KIND", replace(module.KIND, version=1))
    recording(grid).save(file)
    monkeypatch.undo()
    with pytest.raises(FileFormatError, match="in format 1, this version needs 2; make one with"):
        RecordedTraffic.load(file, grid)
