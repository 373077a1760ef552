"""JEMSS folders: a small one written here, the real ones where they lie, and every complaint."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch.errors import FileFormatError, IdealError, InputError
from ideal_dispatch.fleet.calls import draw_calls
from ideal_dispatch.fleet.inputs.jemss import read_jemss
from ideal_dispatch.fleet.inputs.jemss_files import distribution, tables_of

MINUTE = 1.0 / 60 / 24

NODES = "nodes,,,\nindex,x,y,offRoadAccess,\n" + "".join(
    f"{i + 1}.0,{174.0 + 0.01 * (i % 3)},{-36.0 - 0.01 * (i // 3)},{0.0 if i == 4 else 1.0}\n"
    for i in range(9)
)
LINKS = [(i, i + 1) for i in range(9) if i % 3 < 2] + [(i, i + 3) for i in range(6)]
ARCS = "miscData,,,\narcForm,numModes,\nundirected,2\n,\narcs,,,\n" + (
    "index,fromNode,toNode,mode_1,mode_2,\n"
    + "".join(
        f"{row + 1}.0,{a + 1}.0,{b + 1}.0,{MINUTE},{2 * MINUTE}\n"
        for row, (a, b) in enumerate(LINKS)
    )
    + ",\n"
)
FILES = {
    "calls/reps/train/gen_config.xml": """<genConfig><sim><callDistributions>
        <interarrivalTime seed="1">Exponential(1/(2*24))</interarrivalTime>
        <priority seed="2">Categorical([0.6, 0, 0.4])</priority>
        <dispatchDelay seed="3">Normal(50/60/60/24, 0)</dispatchDelay>
        <onSceneDuration seed="4">Exponential(12/60/24)</onSceneDuration>
        <transport seed="5">Bernoulli(0.8)</transport>
        <handoverDuration seed="6">Normal(10/60/24, 0)</handoverDuration>
        </callDistributions></sim></genConfig>""",
    "misc/call priorities/priorities_1.csv": "priorities,3,\npriority,name,targetResponseTime\n"
    "1,high,0.005555556\n2,med,0.005555556\n3,low,0.013888889\n",
    "misc/redispatch/redispatch_off.csv": "miscData,,\nallowRedispatch,,\n0,,\n,,\n"
    "redispatchConditions,,\nfromCallPriority,toCallPriority,allowRedispatch\nlow,high,1\n",
    "misc/redispatch/redispatch_on.csv": "miscData,,\nallowRedispatch,,\n1,,\n,,\n"
    "redispatchConditions,,\nfromCallPriority,toCallPriority,allowRedispatch\n"
    "low,high,1\nmed,high,1\n",
    "travel/travel/travel_1.csv": "travelModes,,\ntravelModeIndex,offRoadSpeed\n1,1128\n2,792\n,,\n"
    "travelSets,,\ntravelSetIndex,priority,travelModeIndex\n1,high,1\n1,med,1\n1,low,2\n",
    "stations/stations_1.csv": "stations,,,a note\nindex,x,y,capacity,NAME\n"
    "1,174.0,-36.0,5,Corner\n2,174.01,-36.0,5,Empty\n3,174.02,-36.02,5\n",
    "ambulances/ambulances_1.csv": "ambulances,,\nindex,stationIndex,class,\n"
    "1,1,1,\n2,3,1,\n3,3,1,",
    "hospitals/hospitals_1.csv": "hospitals,\nindex,x,y\n1,174.0101,-36.0101\n",
}


def _folder(
    base: Path, roads: tuple[str, str] = (NODES, ARCS), texts: Mapping[str, str] = FILES
) -> Path:
    """A model folder; texts replace files whose names begin so."""
    folder = base / "atlantis" / "models" / "1"
    for name, text in FILES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        given = next((new for start, new in texts.items() if file.name.startswith(start)), text)
        file.write_text(given, encoding="utf-8")
    (folder / "travel" / "roads").mkdir()
    with zipfile.ZipFile(folder / "travel" / "roads" / "roads.zip", "w") as archive:
        for name, text in zip(("nodes.csv", "arcs.csv"), roads, strict=True):
            archive.writestr(name, text)
    return folder


def test_a_folder_becomes_a_city(tmp_path: Path) -> None:
    city = read_jemss(_folder(tmp_path), cells=20)
    assert city.name == "Atlantis"
    assert city.station_names == ("Corner", "station 3")
    assert city.units.tolist() == [0, 1, 1]
    assert city.calls_per_day == pytest.approx(48.0)
    assert [(one.name, one.share, one.lights, one.late_s) for one in city.priorities] == [
        ("high", 0.6, True, 480.0),
        ("low", 0.4, False, 1200.0),
    ]
    work = city.work
    assert (work.transported, work.scene.form, work.handover.form) == (0.8, "exponential", "fixed")
    seconds = [work.delay_s, work.scene.mean_s, work.handover.mean_s]
    assert seconds == pytest.approx([50.0, 720.0, 600.0])
    assert not city.redispatch.any()
    one, other = city.stations
    assert city.travel.fast_s[one, other] == pytest.approx(240.0)  # four links of a minute
    assert city.travel.slow_s[other, one] == pytest.approx(480.0)
    assert any("junctions within 500 m" in note for note in city.notes)
    assert any("calls/reps/train" in note for note in city.notes)


@pytest.mark.parametrize(("start", "told"), [("..", "models/1"), (".", "1"), ("1", ".")])
def test_a_folder_has_its_name_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: str, told: str
) -> None:
    monkeypatch.chdir(_folder(tmp_path).parent / start)
    assert read_jemss(told).name == "Atlantis"


def test_nothing_is_at_a_node_without_access(tmp_path: Path) -> None:
    travel = read_jemss(_folder(tmp_path), cells=20).travel
    # the hospital lies beside the middle node, which cannot be left by road users
    assert not ((abs(travel.lon - 174.01) < 1e-6) & (abs(travel.lat + 36.01) < 1e-6)).any()


def test_redispatch_by_another_file_leaves_out_priorities_that_never_occur(tmp_path: Path) -> None:
    city = read_jemss(_folder(tmp_path), redispatch="redispatch_on.csv")
    assert city.redispatch.tolist() == [[False, False], [True, False]]


def test_a_single_generator_is_preferred(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    (folder / "calls" / "single" / "train").mkdir(parents=True)
    text = FILES["calls/reps/train/gen_config.xml"].replace("2*24", "3*24")
    (folder / "calls" / "single" / "train" / "gen_config.xml").write_text(text)
    assert read_jemss(folder).calls_per_day == pytest.approx(72.0)


def test_tables_are_ragged_and_many_in_a_file() -> None:
    text = 'one,2,"a note"\na,b,,c\n1,2\n3,4,,"x, y",\n,,\n\ntwo\nz\n7'
    tables = tables_of(text.splitlines(), "file.csv", "one", "two")
    assert tables["one"].columns == {"a": ("1", "3"), "b": ("2", "4"), "c": ("", "x, y")}
    assert tables["two"].numbers("z").tolist() == [7.0]


@pytest.mark.parametrize(
    ("text", "kind", "numbers"),
    [
        ("Exponential(12/60/24)", "Exponential", (12 / 60 / 24,)),
        ("Normal(50/60/60/24, 0)", "Normal", (50 / 86_400, 0.0)),
        (" Exponential( 1/(18.8*24) ) ", "Exponential", (1 / (18.8 * 24),)),
        ("Categorical([0.57, 0.245, 0.185])", "Categorical", (0.57, 0.245, 0.185)),
        ("Normal(-1 + 2 - 3e-1, 0)", "Normal", (0.7, 0.0)),
    ],
)
def test_expressions_are_arithmetic(text: str, kind: str, numbers: tuple[float, ...]) -> None:
    found, values = distribution(text, "here", ("Exponential", "Normal", "Categorical"))
    assert found == kind
    assert values == pytest.approx(numbers)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Exponential(exit())", r"here: exit\(\) is not read; numbers with"),
        ("Exponential(2**9999)", r"here: 2 \*\* 9999 is not read"),
        ("Exponential(1/0)", "here: 1 / 0 divides by zero"),
        ("Exponential(x)", "here: x is not read"),
        ("Exponential('1')", "here: '1' is not read"),
        ("__import__('os').system('true')", "is no distribution; Exponential is read"),
        ("Gamma(1)", "here: Gamma is not known here; Exponential is read"),
        ("Exponential()", r"here: Exponential\(\) has no numbers"),
        ("Exponential(", "is not understood"),
        ("Exponential(" + "(" * 500, "is not understood"),
        ("Exponential(True)", "here: True is not read"),
        ("Exponential(1e999)", r"here: Exponential\(1e999\) has a number that is too large"),
        ("Exponential(1e300*1e300)", "has a number that is too large"),
        ("Exponential(" + "9" * 400 + ")", r"Exponential\(9{48}… has a number that is too large"),
        ("12/60", "'12/60' is no distribution"),
    ],
)
def test_nothing_else_is_read_and_nothing_is_executed(text: str, message: str) -> None:
    with pytest.raises(FileFormatError, match=message):
        distribution(text, "here", ("Exponential",))


_GENERATOR = FILES["calls/reps/train/gen_config.xml"]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"gen_config": "<a>"}, "gen_config.xml: not XML"),
        ({"gen_config": "<a/>"}, "priority is missing in callDistributions"),
        ({"gen_config": _GENERATOR.replace("0.6, 0, 0.4", "0.6, 0.4")}, "2 shares for 3 prior"),
        ({"gen_config": _GENERATOR.replace("1/(2*24)", "0")}, "interarrivalTime 0; above zero"),
        ({"gen_config": _GENERATOR.replace("(0.8)", "(1.8)")}, "transported 1.8: 0 to 1 is need"),
        ({"gen_config": '<?xml version="1.0" encoding="x"?><a/>'}, "gen_config.xml: not XML: unkn"),
        (
            {"gen_config": _GENERATOR.replace("Normal(10/60/24, 0)", "Normal(0, 1)")},
            "handoverDuration is Normal with mean 0; a mean above zero is needed",
        ),
        (
            {"gen_config": _GENERATOR.replace("Exponential(12/60/24)", "Exponential(1e305)")},
            "mean_s inf",
        ),
        (
            {"stations": "stations\nindex,x\n1,1\n2,1\n3,1"},
            "table stations: no column y; it has index, x",
        ),
        ({"stations": "other\nindex,x\n1,174"}, "no table stations; tables found: other"),
        ({"stations": "stations\nx,y\n174,-36\n174,east\n1,1"}, "row 2: y is 'east'; a number is"),
        ({"ambulances": "ambulances\nstationIndex\n4"}, "stationIndex is 4; a whole number from 1"),
        ({"hospitals": "hospitals\nx,y\n175,-36"}, "row 1: .* km from the nearest road"),
        ({"travel": "travelSets\npriority,travelModeIndex\nhigh,1"}, "no travel mode for prio"),
    ],
)
def test_a_bad_file_is_named_in_one_line(
    tmp_path: Path, texts: dict[str, str], message: str
) -> None:
    with pytest.raises(IdealError, match=message) as caught:
        read_jemss(_folder(tmp_path, texts=texts))
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize(
    ("roads", "message"),
    [
        ((NODES.replace("2.0,", "5.0,", 1), ARCS), "index must count from 1 to 9"),
        ((NODES, ARCS.replace("1.0,1.0,2.0", "1.0,1.0,12.0")), "row 1: toNode is 12; a whole"),
        ((NODES, ARCS.replace(f"2.0,{MINUTE}", "2.0,-1", 1)), "row 1: a travel time is negative"),
        ((NODES.replace(",1.0\n", ",0.0\n"), ARCS), "no connected node of the roads has offRoad"),
    ],
)
def test_bad_roads_are_named_in_one_line(
    tmp_path: Path, roads: tuple[str, str], message: str
) -> None:
    with pytest.raises(FileFormatError, match=message):
        read_jemss(_folder(tmp_path, roads))


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder; give a model folder"):
        read_jemss(tmp_path / "nowhere")
    with pytest.raises(InputError, match="no gen_config.xml in calls/single/train or calls/reps"):
        read_jemss(tmp_path)
    folder = _folder(tmp_path)
    roads = folder / "travel" / "roads" / "roads.zip"
    roads.write_bytes(b"no archive")
    with pytest.raises(FileFormatError, match=r"roads.zip: not an archive with nodes.csv and arcs"):
        read_jemss(folder)
    with pytest.raises(InputError, match="redispatch_x.csv: no such file"):
        read_jemss(folder, redispatch="redispatch_x.csv")


@pytest.mark.parametrize("name", ["../../secret.csv", "/etc/passwd", "..", ".", ""])
def test_redispatch_is_a_plain_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="the plain name of a file in misc/redispatch is needed"):
        read_jemss(_folder(tmp_path), redispatch=name)


_CENTRAL = b"PK\x01\x02"  # an entry of the archive's list of files
_ENTRY = b"PK\x03\x04"  # what stands before a packed file


def _changed_archive(content: bytes, mark: bytes, at: int, value: bytes) -> bytes:
    """With other bytes at a place of the first header that begins with ``mark``."""
    begin = content.index(mark) + at
    return content[:begin] + value + content[begin + len(value) :]


@pytest.mark.parametrize(
    ("packing", "changes", "message"),
    [
        (zipfile.ZIP_DEFLATED, [(_ENTRY, 60, b"\xff" * 20)], "not an archive with .*decompressing"),
        (zipfile.ZIP_LZMA, [(_ENTRY, 60, b"\xff" * 40)], "not an archive with nodes.csv and arcs"),
        (
            zipfile.ZIP_STORED,
            [(_CENTRAL, 8, b"\x01"), (_ENTRY, 6, b"\x01")],
            "not an archive with .*encrypted",
        ),
        (
            zipfile.ZIP_DEFLATED,
            [(_CENTRAL, 24, (3 << 30).to_bytes(4, "little"))],
            "roads.zip: nodes.csv is 3.0 GiB unpacked; at most 1 is read",
        ),
        (
            zipfile.ZIP_STORED,
            [(_CENTRAL, 10, b"\x63"), (_ENTRY, 8, b"\x63")],
            "not an archive with .*compression",
        ),
    ],
)
def test_a_bad_archive_is_named_in_one_line(
    tmp_path: Path, packing: int, changes: list[tuple[bytes, int, bytes]], message: str
) -> None:
    folder = _folder(tmp_path)
    roads = folder / "travel" / "roads" / "roads.zip"
    with zipfile.ZipFile(roads, "w", packing) as archive:
        archive.writestr("nodes.csv", NODES)
        archive.writestr("arcs.csv", ARCS)
    content = roads.read_bytes()
    for change in changes:
        content = _changed_archive(content, *change)
    roads.write_bytes(content)
    with pytest.raises(FileFormatError, match=message) as caught:
        read_jemss(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "units", "per_day", "shares", "delay_s"),
    [
        ("auckland", 16, 280.0, [0.57, 0.245, 0.185], 50.0),
        ("manhattan", 12, 451.2, [0.42, 0.58], 150.0),
    ],
)
def test_real_cities(
    shared_data: Path, name: str, units: int, per_day: float, shares: list[float], delay_s: float
) -> None:
    folder = shared_data / "jemss" / name / "models" / "1"
    if not folder.is_dir():
        pytest.skip(f"the JEMSS model of {name} is not in ../shared/data/jemss")
    city = read_jemss(folder, cells=60)
    assert city.num_units == units
    assert city.calls_per_day == pytest.approx(per_day)
    assert [one.share for one in city.priorities] == pytest.approx(shares)
    assert city.work.delay_s == pytest.approx(delay_s)
    off = ~np.eye(city.travel.num_places, dtype=bool)
    assert (city.travel.fast_s[off] < city.travel.slow_s[off]).all()
    assert len(draw_calls(city, 0, days=3)) == pytest.approx(3 * per_day, rel=0.2)
