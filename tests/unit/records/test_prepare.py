import io
import sys
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.context.encoding import PAPER_COLUMNS
from ideal_dispatch.errors import FileFormatError, InputError, MissingExtraError
from ideal_dispatch.records import Trips
from ideal_dispatch.records.agency import Floors
from ideal_dispatch.records.prepare import prepare_records
from ideal_dispatch.records.report import unknown_words
from ideal_dispatch.records.travel_times import at as call_times
from ideal_dispatch.records.trips import STAMPS, SUBTRACTION, TARGETS
from tests.unit.records.test_nemsis import HEAD, REPORT, TAIL
from tests.unit.records.towns import DEPOTS, GOOD, HEADER, run, settings


def _reasons(prepared: object, kind: str) -> dict[int, str]:
    found = getattr(prepared, kind)
    table = prepared.table  # type: ignore[attr-defined]
    return {int(table.row[at]): "; ".join(why) for at, why in found.items()}


def test_a_trip_by_stamps(tmp_path: Path, grid: RoadNetwork) -> None:
    trips = run(tmp_path, grid, GOOD).trips
    assert trips.observed_s.tolist() == [210.0]
    assert TARGETS[trips.target[0]] == STAMPS  # type: ignore[index]
    assert trips.origin.tolist() == [0]
    assert trips.destination.tolist() == [12 * 4 + 8]
    assert str(trips.at[0]) == "2023-01-02T02:00:00"  # type: ignore[index]
    context = dict(zip(PAPER_COLUMNS, trips.contexts[0].tolist(), strict=True))
    assert (context["hour"], context["monday"], context["january"]) == (10, 1, 1)
    assert context["holiday"] == 1, "the second of January 2023 was a holiday in Hong Kong"
    assert np.isnan(context["rainfall_mm"])
    trips.check(grid)
    assert trips.provenance["rows"] == 1
    assert len(trips.provenance["source_checksum"]) == 32
    trips.save(tmp_path / "a.trips")
    assert Trips.load(tmp_path / "a.trips").provenance == trips.provenance


def test_the_papers_subtraction(tmp_path: Path, grid: RoadNetwork) -> None:
    row = "1,2023-01-02 10:00,,,2023-01-02 10:10,A1,114.008,22.004,12/F"
    prepared = run(
        tmp_path, grid, row,
        preparation={"seconds": {"a1": 100}}, floors={"seconds_per_floor": 1.9},
    )  # fmt: skip
    assert prepared.trips.observed_s.tolist() == [pytest.approx(600 - 100 - 1.9 * 12)]
    assert TARGETS[prepared.trips.target[0]] == SUBTRACTION  # type: ignore[index]
    assert prepared.preparation["West Side"].method == "given"


def test_the_target_rule_decides(tmp_path: Path, grid: RoadNetwork) -> None:
    both = GOOD.replace(",,West", ",2023-01-02 10:09:00,West") + "5/F"
    given: dict[str, Any] = {
        "preparation": {"seconds": {"A1": 60}},
        "floors": {"seconds_per_floor": 2},
    }
    seconds = {
        rule: run(tmp_path, grid, both, target={"rule": rule}, **given).trips.observed_s.tolist()
        for rule in ("auto", "stamps", "subtraction")
    }
    assert seconds == {"auto": [210.0], "stamps": [210.0], "subtraction": [540 - 60 - 10]}


def test_stamps_that_cannot_be_right_give_way(tmp_path: Path, grid: RoadNetwork) -> None:
    given: dict[str, Any] = {
        "preparation": {"seconds": {"A1": 60}},
        "floors": {"seconds_per_floor": 2},
    }
    for en_route, on_scene in (
        ("10:05:00", "10:04:00"),  # arrives before it leaves
        ("09:58:00", "10:04:00"),  # leaves before the call
        ("10:01:00", "10:01:03"),  # 1.5 km in three seconds
        ("10:01:00", "10:25:00"),  # arrives after CPR has begun long ago, by its own crew
    ):
        row = (
            f"1,2023-01-02 10:00:00,2023-01-02 {en_route},2023-01-02 {on_scene},"
            "2023-01-02 10:09:00,West Side,114.008,22.004,"
        )
        prepared = run(tmp_path, grid, row, **given)
        if on_scene == "10:25:00":
            assert prepared.trips.observed_s.tolist() == [1440.0]
            assert "CPR began before the unit was on scene" in prepared.notes[0]
        else:
            assert prepared.trips.observed_s.tolist() == [480.0]


def test_driving_longer_than_the_interval_given(tmp_path: Path, grid: RoadNetwork) -> None:
    row = GOOD.replace(",,West", ",120,West")
    header = HEADER.replace("cpr_at", "call_to_cpr")
    given: dict[str, Any] = {
        "preparation": {"seconds": {"A1": 20}},
        "floors": {"seconds_per_floor": 2},
    }
    prepared = run(tmp_path, grid, row, header=header, **given)
    assert prepared.trips.observed_s.tolist() == [100.0]
    assert "driving lasts longer than call to CPR" in prepared.notes[0]
    minutes = run(
        tmp_path, grid, row.replace(",120,", ",2,"), header=header,
        input={"interval_unit": "minutes"}, **given,
    )  # fmt: skip
    assert minutes.trips.observed_s.tolist() == [100.0]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("114.008", "115"), "the nearest road is"),
        (("114.008,22.004", "22.004,114.008"), "lat is not within ±90 degrees; are latitude"),
        (("114.008", ""), "lon is missing"),
        (("22.004", "NaN"), "lat is not a finite number (it looks like 'aaa')"),
        (("114.008", "1e999"), "lon is not a finite number"),
        (("2023-01-02 10:00:00", "soon"), "call_at is not a known form of a time"),
        (("2023-01-02 10:00:00", ""), "call_at is missing"),
        (("2023-01-02 10:00:00", "1023-01-02 10:00:00"), "call_at is not between 1970 and 2100"),
        (("2023-01-02 10:05:00", "x"), "on_scene_at is not a known form"),
        (("West Side", "Moon Base"), "depot 'Moon Base' is not in the depots file; add it, or"),
        (("West Side", ""), "names no depot, neither by name nor by place"),
        (("West Side", "n/a"), "names no depot, neither by name nor by place"),
        (("114.008", "NULL"), "lon is missing"),
        (("2023-01-02 10:00:00", "–"), "call_at is missing"),
    ],
)
def test_rows_that_are_quarantined(
    tmp_path: Path, grid: RoadNetwork, change: tuple[str, str], reason: str
) -> None:
    prepared = run(tmp_path, grid, f"{GOOD.replace(*change)}\n2{GOOD[1:]}")
    assert reason in _reasons(prepared, "quarantined")[2]
    assert prepared.trips.row.tolist() == [3]  # type: ignore[union-attr]


def test_stamps_that_say_they_are_missing_are(tmp_path: Path, grid: RoadNetwork) -> None:
    row = "{},2023-01-02 10:00:00,2023-01-02 10:01:30,2023-01-02 10:05:00,{},A1,114.008,22.004,-"
    words = ("N/A", "na", "NULL", "none", "-", "--", "—")
    rows = "\n".join(row.format(i, word) for i, word in enumerate(words))
    prepared = run(tmp_path, grid, rows)
    assert prepared.trips.observed_s.tolist() == [210.0] * len(words)
    assert not prepared.quarantined


def test_years_without_a_calendar(tmp_path: Path, grid: RoadNetwork) -> None:
    prepared = run(
        tmp_path, grid, f"{GOOD.replace('2023', '2099')}\n2{GOOD[1:].replace('2023', '1971')}"
    )
    assert all("call_at: holidays" in text for text in _reasons(prepared, "quarantined").values())


def test_every_reason_of_a_row_is_told(tmp_path: Path, grid: RoadNetwork) -> None:
    prepared = run(tmp_path, grid, "1,when,,,,Nowhere,x,95,")
    (reasons,) = _reasons(prepared, "quarantined").values()
    for part in ("call_at is no", "lon is no", "lat is not within", "depot 'Nowhere'"):
        assert part in reasons
    assert len(prepared.trips) == 0


@pytest.mark.parametrize(
    ("row", "tables", "rule"),
    [
        (GOOD, {"exclusions": {"months": ["2023-01"]}}, "month"),
        (GOOD, {"exclusions": {"nearer_than_km": 5}}, "near"),
        (GOOD, {"exclusions": {"farther_than_km": 0.5}}, "far"),
        (GOOD, {"exclusions": {"longer_than_min": 3}}, "duration"),
        (GOOD, {"exclusions": {"faster_than_kmh": 5}}, "speed"),
        (GOOD, {"depots_table": {"only": ["east side"]}}, "other_depot"),
        (GOOD + "61/F", {"exclusions": {"floors": "always"}}, "floor"),
        (GOOD + "R/F", {"exclusions": {"preset": "paper"}}, "floor"),
        (GOOD, {"exclusions": {"preset": "paper"}}, "floor"),
        (
            (GOOD + "1/F").replace("10:05:00", "10:01:00"),
            {"exclusions": {"preset": "paper"}},
            "not_positive",
        ),
        (
            (GOOD + "1/F").replace("10:05:00", "10:01:31"),
            {"exclusions": {"preset": "paper"}},
            "speed",
        ),
        (GOOD, {"exclusions": {"floors": "always"}, "floors": {"blank": "unrecognised"}}, "floor"),
        (GOOD.replace("10:05:00", "10:01:00"), {}, "not_positive"),
        (GOOD.replace("10:05:00", "10:01:31"), {}, "speed"),
        (GOOD.replace("2023-01-02 10:05:00", ""), {}, "no_time"),
    ],
)
def test_rules_are_counted(
    tmp_path: Path, grid: RoadNetwork, row: str, tables: dict[str, Any], rule: str
) -> None:
    prepared = run(tmp_path, grid, row, **tables)
    assert len(prepared.trips) == 0
    assert [r.rule for r in prepared.rules if r.applies] == [rule]
    assert sum(r.removed for r in prepared.rules) == len(prepared.excluded) == 1
    assert not prepared.quarantined


def test_months_are_of_the_citys_calendar(tmp_path: Path, grid: RoadNetwork) -> None:
    row = GOOD.replace("2023-01-02 10", "2023-02-01T00").replace("00:00:00", "00:00:00")
    prepared = run(tmp_path, grid, row, exclusions={"months": ["2023-02"]})
    assert [r.rule for r in prepared.rules if r.applies] == ["month"]
    assert str(call_times(prepared.table)[0]).startswith("2023-01-31"), "in UTC it is still January"


def test_duplicates_keep_the_first_good_row(tmp_path: Path, grid: RoadNetwork) -> None:
    bad = GOOD.replace("114.008", "x")
    rows = "\n".join([bad, GOOD, GOOD, "," + GOOD[2:], "," + GOOD[2:]])
    prepared = run(tmp_path, grid, rows)
    assert prepared.trips.row.tolist() == [3, 5, 6]  # type: ignore[union-attr]
    assert _reasons(prepared, "excluded") == {4: "the same call and unit as in an earlier row"}
    units = run(tmp_path, grid, f"{GOOD},7\n{GOOD},8\n{GOOD},8", header=HEADER + ",unit")
    assert units.trips.row.tolist() == [2, 3]  # type: ignore[union-attr]


def test_rules_add_up_where_they_overlap(tmp_path: Path, grid: RoadNetwork) -> None:
    prepared = run(
        tmp_path, grid, f"{GOOD}\n{GOOD}", exclusions={"months": ["2023-01"], "nearer_than_km": 5}
    )
    counts = {r.rule: (r.applies, r.removed) for r in prepared.rules if r.applies}
    assert counts == {"month": (2, 2), "near": (2, 0)}


def test_depots_by_name_alias_and_place(tmp_path: Path, grid: RoadNetwork) -> None:
    header = HEADER + ",depot_lon,depot_lat"
    rows = [
        GOOD + ",,",
        GOOD.replace("West Side", " WEST  side") + ",,",
        GOOD.replace("West Side", "eastside") + ",,",
        GOOD.replace("West Side", "Medic 9") + ",,",
        GOOD.replace("West Side", "") + ",114.0111,22.0091",
        GOOD.replace("West Side", "Medic 8") + ",114.0111,22.0091",
        GOOD + ",114.0111,22.0091",
        GOOD.replace("West Side", "") + ",114.05,22.0",
    ]
    numbered = "\n".join(f"{i}{row[1:]}" for i, row in enumerate(rows))
    aliases = {"aliases": {"medic-9": "East-Side"}}
    prepared = run(tmp_path, grid, numbered, header=header, depots_table=aliases)
    assert prepared.trips.origin.tolist() == [0, 0, 119, 119, 119, 119, 119]
    assert _reasons(prepared, "quarantined")[9].startswith("where it started, the nearest road is")


def test_a_start_on_the_road_is_an_origin(tmp_path: Path, grid: RoadNetwork) -> None:
    header = HEADER + ",depot_lon,depot_lat"
    started = [",,", ",114.0041,22.0052", ",114.0041,22.0052", ",114.0,22.0001"]
    rows = [f"{i}{GOOD[1:]}{place}" for i, place in enumerate(started)]
    rows[2] = rows[2].replace("West Side", "")  # on the road, and of no depot
    depots = {"limit_m": 100}
    prepared = run(tmp_path, grid, "\n".join(rows), header=header, depots_table=depots)
    node = grid.snap(114.0041, 22.0052).node
    assert prepared.trips.origin.tolist() == [0, node, node, 0]
    assert prepared.trips.provenance["road_starts"] == 2
    assert "2 trips start on the road, where the unit was" in prepared.notes
    way_m = grid.distances(grid.length_m, node)[prepared.trips.destination[1]]
    assert prepared.distance_m[1] == pytest.approx(way_m)
    only = depots | {"only": ["West Side"]}
    left = run(tmp_path, grid, "\n".join(rows), header=header, depots_table=only)
    assert left.trips.origin.tolist() == [0, node, 0]


def test_a_start_on_the_road_needs_stamps(tmp_path: Path, grid: RoadNetwork) -> None:
    """Seconds of preparation are a depot's: they cannot be taken off where none was left."""
    header = HEADER + ",depot_lon,depot_lat"
    row = "1,2023-01-02 10:00:00,,,2023-01-02 10:09:00,West Side,114.008,22.004,"
    rows = [f"{row},,", f"{row},114.0041,22.0052"]
    given = {"seconds": {"West Side": 90.0}}
    prepared = run(
        tmp_path, grid, "\n".join(rows), header=header, depots_table={"limit_m": 100},
        preparation=given, floors={"seconds_per_floor": 2.0},
    )  # fmt: skip
    assert prepared.trips.row.tolist() == [2]  # type: ignore[union-attr]
    assert _reasons(prepared, "excluded") == {3: "its stamps give no travel time"}


def test_estimates_of_preparation(tmp_path: Path, grid: RoadNetwork) -> None:
    rng = np.random.default_rng(5)
    start = datetime(2023, 1, 2, 10)
    kinds = {"paired": (True, True), "stamps": (True, False), "regression": (False, False)}
    for method, (en_route, on_scene) in kinds.items():
        rows = []
        for i in range(120):
            node = int(rng.integers(30, 119))
            free_s = grid.distances(grid.free_flow_times_s, 0)[node]
            drive = timedelta(seconds=round(1.5 * free_s))
            leave = start + timedelta(seconds=100)
            floor = int(rng.integers(0, 30))
            cpr = leave + drive + timedelta(seconds=2 * floor)
            stamps = [str(leave) if en_route else "", str(leave + drive) if on_scene else ""]
            place = f"{grid.lon[node]:.6f},{grid.lat[node]:.6f}"
            rows.append(f"{i},{start},{stamps[0]},{stamps[1]},{cpr},A1,{place},{floor}/F")
        prepared = run(tmp_path, grid, "\n".join(rows))
        west = prepared.preparation["West Side"]
        assert west.method == method
        assert west.seconds == pytest.approx(100, abs=10 if method == "regression" else 1)
        assert prepared.preparation["East-Side"].method == "unknown"
        assert prepared.slope.seconds_per_floor == pytest.approx(2, abs=0.6)
        assert prepared.slope.method == ("paired" if on_scene else "paper")


def test_nemsis(tmp_path: Path, grid: RoadNetwork) -> None:
    report = REPORT.replace("43.010000,7.010000", "22.004,114.008")
    report = report.replace("43.000100,7.000200", "22.0,114.0001")
    prepared = run(tmp_path, grid, (HEAD + report + TAIL).encode(), name="calls.xml")
    assert prepared.trips.observed_s.tolist() == [330.0]
    assert prepared.trips.row.tolist() == [1]  # type: ignore[union-attr]


def test_encodings_and_delimiters(tmp_path: Path, grid: RoadNetwork) -> None:
    text = f"{HEADER}\n{GOOD.replace('West Side', 'Zürich')}\n"
    town = "name,lon,lat\nZürich,114.0,22.0\n"
    assert len(run(tmp_path, grid, text.encode("utf-8-sig"), depots=town).trips) == 1
    assert len(run(tmp_path, grid, text.replace("\n", "\r\n").encode(), depots=town).trips) == 1
    for encoding in ("cp1252", "utf-16"):
        for given in ("", encoding):
            written = text.encode(encoding)
            prepared = run(tmp_path, grid, written, depots=town, input={"encoding": given})
            assert len(prepared.trips) == 1
            assert encoding in prepared.raw.form
            assert ("a guess" in prepared.raw.form) == (encoding == "cp1252" and not given)
    chinese = text.replace("Zürich", "摩理臣山救護站").encode("big5hkscs")
    with pytest.raises(FileFormatError, match="line 2: byte 0xbc is not utf-8; save the file"):
        run(tmp_path, grid, chinese, depots=town)
    wrong: dict[str, Any] = {"input": {"delimiter": "|"}}
    with pytest.raises(InputError, match="no column for lon; name yours .* the file has 'call_id,"):
        run(tmp_path, grid, text.encode(), depots=town, **wrong)


@pytest.mark.parametrize(
    ("delimiter", "named"),
    [(";", "semicolons"), ("\t", "tabs"), ("|", "vertical bars"), (",", "commas")],
)
@pytest.mark.parametrize("decimal", [".", ","])
def test_delimiters_and_decimal_commas(
    tmp_path: Path, grid: RoadNetwork, delimiter: str, named: str, decimal: str
) -> None:
    rows = [line.split(",") for line in (HEADER, GOOD, "2" + GOOD[1:])]
    for row in rows[1:]:
        row[6:8] = [cell.replace(".", decimal) for cell in row[6:8]]
    cells = ['"' + f'"{delimiter}"'.join(row) + '"' for row in rows]  # every cell quoted
    depots = DEPOTS.replace(",", delimiter)
    if delimiter != ",":
        depots = depots.replace(".", decimal)
    (tmp_path / "depots.csv").write_text(depots)
    prepared = run(tmp_path, grid, "\n".join(cells).encode(), depots=depots)
    assert prepared.trips.destination.tolist() == [12 * 4 + 8] * 2
    marks = "commas" if decimal == "," else "points"
    assert prepared.raw.form == f"CSV divided by {named}, utf-8, decimal {marks}"


def test_a_point_among_decimal_commas_is_set_aside(tmp_path: Path, grid: RoadNetwork) -> None:
    rows = [GOOD.replace(",", ";").replace(".", ","), f"2{GOOD[1:]}".replace(",", ";")]
    rows.insert(0, rows[0].replace("1;", "7;", 1))
    text = "\n".join([HEADER.replace(",", ";"), *rows])
    prepared = run(tmp_path, grid, text.encode())
    assert len(prepared.trips) == 2
    assert "lon is not a finite number with a decimal comma" in _reasons(prepared, "quarantined")[4]
    fixed = run(tmp_path, grid, text.encode(), input={"decimal": "."})
    assert fixed.trips.row.tolist() == [4]  # type: ignore[union-attr]


def _frame() -> Any:
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(
        {
            "Day": [datetime(2023, 1, 2)] * 3,
            "Clock": [time(10), time(10), time(0)],
            "en_route_at": [datetime(2023, 1, 2, 10, 1, 30)] * 2 + [datetime(2023, 1, 2, 0, 1)],
            "on_scene_at": [datetime(2023, 1, 2, 10, 5)] * 2 + [datetime(2023, 1, 2, 0, 5)],
            "depot": ["West Side", None, "A1"],
            "lon": [114.008] * 3,
            "lat": [22.004] * 3,
            "floor": [12.0, float("nan"), 3],
            "name": ["somebody"] * 3,
        }
    )


def test_excel_workbooks(tmp_path: Path, grid: RoadNetwork) -> None:
    pd = pytest.importorskip("pandas")
    frame = _frame()
    with pd.ExcelWriter(tmp_path / "records.xlsx") as book:
        frame.to_excel(book, sheet_name="calls", index=False)
        pd.DataFrame({"note": ["none"]}).to_excel(book, sheet_name="notes", index=False)
    pd.read_csv(io.StringIO(DEPOTS)).to_excel(tmp_path / "depots.xlsx", index=False)
    columns = {"columns": {"call_at": ["Day", "Clock"]}}
    own = settings(**columns)
    prepared = prepare_records(tmp_path / "records.xlsx", grid, tmp_path / "depots.xlsx", own)
    assert prepared.trips.observed_s.tolist() == [210.0, 240.0]
    assert prepared.trips.row.tolist() == [2, 4]  # type: ignore[union-attr]
    assert [str(at) for at in prepared.trips.at] == ["2023-01-02T02:00:00", "2023-01-01T16:00:00"]  # type: ignore[union-attr]
    assert prepared.table.texts["floor"] == ["12", "", "3"]
    assert prepared.raw.form == "Excel, sheet 'calls', decimal points"
    frame.assign(call_at=datetime(2023, 1, 2)).to_excel(tmp_path / "records.xlsx", index=False)
    midnight = prepare_records(
        tmp_path / "records.xlsx", grid, tmp_path / "depots.xlsx", settings()
    )
    assert str(call_times(midnight.table)[0]) == "2023-01-01T16:00:00.000000"
    named = settings(input={"sheet": "calls"})
    with pytest.raises(InputError, match=r"no sheet 'calls'; it has 'Sheet1'"):
        prepare_records(tmp_path / "records.xlsx", grid, tmp_path / "depots.xlsx", named)
    (tmp_path / "records.xlsx").write_bytes(b"PK\x03\x04 no workbook")
    with pytest.raises(FileFormatError, match="records.xlsx: not a readable Excel workbook"):
        prepare_records(tmp_path / "records.xlsx", grid, tmp_path / "depots.xlsx", settings())
    (tmp_path / "old.xls").write_bytes(b"\xd0\xcf\x11\xe0")
    with pytest.raises(FileFormatError, match="old.xls: the old Excel form is not read; save it"):
        prepare_records(tmp_path / "old.xls", grid, tmp_path / "depots.xlsx", settings())


def test_excel_without_its_package(
    tmp_path: Path, grid: RoadNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "depots.xlsx").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'ideal-dispatch\[records\]'"):
        prepare_records("records.csv", grid, tmp_path / "depots.xlsx", settings())


def test_data_frames(grid: RoadNetwork) -> None:
    pd = pytest.importorskip("pandas")
    own = settings(columns={"call_at": ["Day", "Clock"]})
    depots = pd.read_csv(io.StringIO(DEPOTS))
    prepared = prepare_records(_frame(), grid, depots, own)
    assert prepared.trips.observed_s.tolist() == [210.0, 240.0]
    assert prepared.trips.row.tolist() == [2, 4]  # type: ignore[union-attr]
    assert prepared.raw.name == "DataFrame"
    assert prepared.raw.checksum == prepare_records(_frame(), grid, depots, own).raw.checksum
    zoned = _frame().assign(call_at=pd.Timestamp("2023-01-02 02:00", tz="UTC"))
    table = prepare_records(zoned, grid, depots, settings()).table
    assert str(call_times(table)[0]).startswith("2023-01-02T02:00")
    with pytest.raises(InputError, match="a file or a pandas DataFrame is needed, not list"):
        prepare_records([1], grid, depots, own)


def test_unknown_words_are_counted(tmp_path: Path, grid: RoadNetwork) -> None:
    late = GOOD.replace(",,West", ",2023-01-02 10:09:00,West").replace("2023-01-02 10:05:00", "")
    rows = [
        GOOD.replace("West Side", "Westside Depot"),
        *[GOOD.replace("West Side", "Medic 9")] * 2,
        *[GOOD.replace("2023-01-02 10:00:00", "2023 week 1")] * 3,
        *[late + "R/F"] * 4,
        GOOD,
    ]
    given: dict[str, Any] = {"preparation": {"seconds": {"A1": 60}}}
    prepared = run(tmp_path, grid, "\n".join(rows), **given)
    words = unknown_words(prepared, Floors())
    assert [tuple(one.values())[:4] for one in words] == [
        ("floor", "R/F", 4, ""),
        ("call_at", "9999 aaaa 9", 3, ""),
        ("depot", "Medic 9", 2, ""),
        ("depot", "Westside Depot", 1, "West Side"),
    ]
    assert words[3]["setting"] == ["[depots.aliases]", '"Westside Depot" = "West Side"']
    told: dict[str, Any] = {"floors": {"words": {"r/f": 12}}, "depots_table": {"aliases": {
        "Westside Depot": "West Side", "Medic 9": "A1"}}, **given}  # fmt: skip
    again = run(tmp_path, grid, "\n".join(f"{i}{row[1:]}" for i, row in enumerate(rows)), **told)
    assert len(again.trips) == 8
    assert [one["field"] for one in unknown_words(again, Floors(words={"r/f": 12}))] == ["call_at"]


def test_rows_that_cannot_be_taken_apart(tmp_path: Path, grid: RoadNetwork) -> None:
    odd = GOOD.replace("West Side", '"West" Side')
    prepared = run(tmp_path, grid, f"{GOOD},extra\n{odd}\n1,2,3\n\n9{GOOD[1:]}")
    assert [row for row, _ in prepared.raw.broken] == [2, 3, 4]
    assert prepared.raw.broken[0][1] == "has 10 cells where the header has 9"
    assert "cannot be taken apart" in prepared.raw.broken[1][1]
    assert prepared.trips.row.tolist() == [6]  # type: ignore[union-attr]
    with pytest.raises(FileFormatError, match="a quotation mark opened in row 2 .line 2. is never"):
        run(tmp_path, grid, f'"{GOOD}\n{GOOD}\n{GOOD}')


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "records.csv: the file is empty"),
        (b"call_at,depot,lat\n", "no column for lon; name yours under .columns."),
        (b"lon,lat,depot\n", "no column for call_at or notified_at"),
        (b"lon,lat,call_at\n", "no column for depot or depot_lon"),
    ],
)
def test_files_that_lack_columns(
    tmp_path: Path, grid: RoadNetwork, content: bytes, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        run(tmp_path, grid, content)


def test_columns_by_any_name(tmp_path: Path, grid: RoadNetwork) -> None:
    header = "No,Date,Time,Left,There,Station,X,Y,Temp outside"
    row = "1,2023-01-02,10:00:00,10:01:30,10:05:00,West Side,114.008,22.004,31.5"
    columns = {
        "call_id": "No", "call_at": ["Date", "time"], "en_route_at": "Left",
        "on_scene_at": "There", "depot": "Station", "lon": "X", "lat": "Y",
    }  # fmt: skip
    extra = {"outside": "temp  outside"}
    prepared = run(tmp_path, grid, row, header=header, columns=columns, extra=extra)
    assert prepared.trips.observed_s.tolist() == [210.0]
    assert prepared.trips.encoding.extra == ("outside",)
    assert prepared.trips.contexts[0, -1] == 31.5
    with pytest.raises(InputError, match="records.csv: no column 'Lon' for lon"):
        run(tmp_path, grid, row, header=header, columns=columns | {"lon": "Lon"})


@pytest.mark.parametrize(
    ("depots", "tables", "message"),
    [
        ("name,lon\nA,1\n", {}, "depots.csv: no column for 'lat'"),
        ("name,lon,lat\nA,114,22\na,114,22\n", {}, "line 3: depot 'a' appears twice"),
        ("name,lon,lat\nA,x,22\n", {}, "line 2: lon is 'x'; a finite number"),
        ("name,lon,lat\nA,7,43\n", {}, "no depot lies on the network"),
        ("name,lon,lat\n", {}, "no depots in it"),
        ("name,lon,lat\n,114,22\n", {}, "line 2: the depot has no name"),
        ("name,lon,lat\nA,114,22\n", {"depots": {"only": ["B"]}}, "depots.only: 'B' is not in"),
        ("name,lon,lat\nA,114,22\n", {"depots": {"aliases": {"x": "B"}}}, "x means 'B', which"),
        ("name,lon,lat\nA,114,22\n", {"preparation": {"seconds": {"B": 1}}}, "not one of the"),
    ],
)
def test_depots_that_cannot_be_used(
    tmp_path: Path, grid: RoadNetwork, depots: str, tables: dict[str, Any], message: str
) -> None:
    settings = tables.pop("depots", None)
    options: dict[str, Any] = {"depots_table": settings} if settings else {}
    with pytest.raises(InputError, match=message):
        run(tmp_path, grid, GOOD, depots=depots, **tables, **options)


def test_a_depot_off_the_network(tmp_path: Path, grid: RoadNetwork) -> None:
    depots = "name,lon,lat\nWest Side,114.0,22.0\nFar,115,23\n"
    rows = f"{GOOD}\n2{GOOD[1:].replace('West Side', 'Far')}"
    prepared = run(tmp_path, grid, rows, depots=depots)
    assert _reasons(prepared, "excluded") == {3: "its depot is not on the network"}
    assert "depot Far: longitude 115" in prepared.notes[0]
