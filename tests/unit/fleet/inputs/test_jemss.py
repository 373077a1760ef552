"""JEMSS folders: a small one written here, the real ones where they lie, and every complaint."""

import math
import pickle
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from ideal_dispatch.errors import FileFormatError, IdealError, InputError
from ideal_dispatch.fleet.calls import draw_calls
from ideal_dispatch.fleet.inputs.jemss import JemssDuration, read_jemss
from ideal_dispatch.fleet.inputs.jemss_files import read_distribution, tables_of

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
GENERATOR = FILES["calls/reps/train/gen_config.xml"]


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


@pytest.mark.parametrize(("start", "given"), [("..", "models/1"), (".", "1"), ("1", ".")])
def test_a_folder_has_its_name_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: str, given: str
) -> None:
    monkeypatch.chdir(_folder(tmp_path).parent / start)
    assert read_jemss(given).name == "Atlantis"


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


CUT = scipy.stats.truncnorm(-0.5, np.inf, 1.0, 2.0)  # at zero


@pytest.mark.parametrize(
    ("text", "mean", "variance"),
    [
        ("Exponential(12/60)", 0.2, 0.04),
        (" Exponential( ) ", 1.0, 1.0),
        ("Normal(1, 2)", 1.0, 4.0),
        ("Normal(-1 + 2 - 3e-1, 0)", 0.7, 0.0),
        ("Dirac(3)", 3.0, 0.0),
        ("Gamma(2, 6)", 12.0, 72.0),
        ("Erlang(3, 2)", 6.0, 12.0),
        ("LogNormal(log(12) - 0.5*0.5^2, 0.5)", 12.0, 144.0 * math.expm1(0.25)),
        ("Weibull(2, 3)", 1.5 * math.sqrt(math.pi), 9.0 * (1.0 - math.pi / 4.0)),
        ("Uniform(2, 4)", 3.0, 1.0 / 3.0),
        ("Beta(2)", 0.5, 0.05),
        ("Beta(1, 3)", 0.25, 3.0 / 80.0),
        ("Chisq(3)", 3.0, 6.0),
        ("InverseGamma(4, 6)", 2.0, 2.0),
        ("Laplace(1, 2)", 1.0, 8.0),
        ("Logistic(1, 2)", 1.0, 4.0 * math.pi**2 / 3.0),
        ("Gumbel(0, 2)", 2.0 * np.euler_gamma, 4.0 * math.pi**2 / 6.0),
        ("Frechet(4, 1)", math.gamma(0.75), math.gamma(0.5) - math.gamma(0.75) ** 2),
        ("LogUniform(1, exp(2))", math.expm1(2) / 2, math.expm1(4) / 4 - math.expm1(2) ** 2 / 4),
        ("Pareto(6, 5)", 6.0, 1.5),
        ("Rayleigh(2)", 2.0 * math.sqrt(math.pi / 2.0), 2.0 * (4.0 - math.pi)),
        ("TriangularDist(0, 4)", 2.0, 2.0 / 3.0),
        ("TriangularDist(0, 3, 0)", 1.0, 0.5),
        ("Poisson(3)", 3.0, 3.0),
        ("Binomial(4, 0.25)", 1.0, 0.75),
        ("Geometric(0.25)", 3.0, 12.0),
        ("NegativeBinomial(2, 0.5)", 2.0, 4.0),
        ("DiscreteUniform(1, 6)", 3.5, 35.0 / 12.0),
        ("2 * Poisson(3) / 4 + 1 - 0.5", 2.0, 0.75),
        ("truncated(Normal(1, 2), 0, Inf)", CUT.mean(), CUT.var()),
        ("truncated(Normal(1, 2); lower=0)", CUT.mean(), CUT.var()),
        ("truncated(Normal(1, 2), upper=1) * 3 + 5", 8 - 6 * math.sqrt(2 / math.pi),
         36 * (1 - 2 / math.pi)),
        ("Truncated(Exponential(2), 1, Inf)", 3.0, 4.0),
        ("truncated(Poisson(1), 1, 2)", 4.0 / 3.0, 2.0 / 9.0),
    ],
)  # fmt: skip
def test_a_distribution_has_julias_parameters(text: str, mean: float, variance: float) -> None:
    found = read_distribution(text, "here")
    draws = found.quantile((np.arange(200_000) + 0.5) / 200_000)
    assert found.mean == pytest.approx(mean, rel=1e-6)
    assert draws.mean() == pytest.approx(mean, rel=1e-3)
    assert draws.var() == pytest.approx(variance, rel=5e-3, abs=1e-12)


@pytest.mark.parametrize(
    "text",
    [
        "Exponential(exit())",
        "Exponential(2**9999)",
        "Exponential(1/0)",
        "Exponential(x)",
        "Exponential('1')",
        "Exponential(True)",
        "Exponential(1e999)",
        "Exponential(" + "9" * 400 + ")",
        "Exponential(",
        "Exponential(" + "(" * 500,
        "__import__('os').system('true')",
        "Cauchy(0, 1)",
        "Gamma(-1)",
        "Gamma(1, 2, 3)",
        "Erlang(1.5, 1)",
        "Normal(Normal(1, 1), 1)",
        "Normal(1, 1) * Normal(1, 1)",
        "-1 * Normal(1, 1)",
        "1 / Normal(1, 1)",
        "truncated(Normal(0, 1), 3, 2)",
        "truncated(Dirac(0), 1, 2)",
        "truncated(Normal(0, 1), middle=2)",
        "log(-1)",
        "12/60",
    ],
)
def test_nothing_else_is_read_and_nothing_is_executed(text: str) -> None:
    with pytest.raises(FileFormatError, match="^here: ") as caught:
        read_distribution(text, "here")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("scene", "mean_s", "form"),
    [
        ("Exponential(12/60/24)", 720.0, "exponential"),
        ("truncated(Exponential(12/60/24), 0, Inf)", 720.0, "exponential"),
        ("Normal(12/60/24, 0)", 720.0, "fixed"),
        ("Weibull(1, 12/60/24)", 720.0, ""),
        ("Normal(0, 12/60/24)", 720.0 * math.sqrt(2.0 / math.pi), ""),  # JEMSS has no time below 0
        ("Exponential(6/60/24) + 6/60/24", 720.0, ""),
    ],
)
def test_work_takes_the_time_of_its_distribution(
    tmp_path: Path, scene: str, mean_s: float, form: str
) -> None:
    text = GENERATOR.replace("Exponential(12/60/24)", scene)
    work = read_jemss(_folder(tmp_path, texts={"gen_config": text})).work
    drawn = work.scene.drawn(np.random.default_rng(2), 50_000)
    assert work.scene.mean_s == pytest.approx(mean_s, rel=1e-6)
    assert drawn.mean() == pytest.approx(mean_s, rel=0.02)
    assert drawn.min() >= 0.0
    assert isinstance(work.scene, JemssDuration) is (form == "")
    assert form in ("", work.scene.form)
    assert pickle.loads(pickle.dumps(work)) == work


@pytest.mark.parametrize(
    ("texts", "key"),
    [
        ({"gen_config": "<a>"}, "gen_config.xml"),
        ({"gen_config": "<a/>"}, "interarrivalTime"),
        ({"gen_config": GENERATOR.replace("0.6, 0, 0.4", "0.6, 0.4")}, "priority"),
        ({"gen_config": GENERATOR.replace("Categorical", "Multinomial")}, "priority"),
        (
            {"gen_config": GENERATOR.replace("Exponential(1/(2*24))", "Dirac(0)")},
            "interarrivalTime",
        ),
        ({"gen_config": GENERATOR.replace("(0.8)", "(1.8)")}, "transported"),
        ({"gen_config": '<?xml version="1.0" encoding="x"?><a/>'}, "gen_config.xml"),
        ({"gen_config": GENERATOR.replace("(12/60/24)", "(1e305)")}, "onSceneDuration"),
        ({"stations": "stations\nindex,x\n1,1\n2,1\n3,1"}, "y"),
        ({"stations": "other\nindex,x\n1,174"}, "stations"),
        ({"stations": "stations\nx,y\n174,-36\n174,east\n1,1"}, "'east'"),
        ({"ambulances": "ambulances\nstationIndex\n4"}, "stationIndex"),
        ({"hospitals": "hospitals\nx,y\n175,-36"}, "row 1"),
        ({"travel": "travelSets\npriority,travelModeIndex\nhigh,1"}, "travel mode"),
    ],
)
def test_a_bad_file_is_named_in_one_line(tmp_path: Path, texts: dict[str, str], key: str) -> None:
    with pytest.raises(IdealError, match=key) as caught:
        read_jemss(_folder(tmp_path, texts=texts))
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize(
    ("roads", "key"),
    [
        ((NODES.replace("2.0,", "5.0,", 1), ARCS), "index"),
        ((NODES, ARCS.replace("1.0,1.0,2.0", "1.0,1.0,12.0")), "toNode"),
        ((NODES, ARCS.replace(f"2.0,{MINUTE}", "2.0,-1", 1)), "row 1"),
        ((NODES.replace(",1.0\n", ",0.0\n"), ARCS), "offRoadAccess"),
    ],
)
def test_bad_roads_are_named_in_one_line(tmp_path: Path, roads: tuple[str, str], key: str) -> None:
    with pytest.raises(FileFormatError, match=key):
        read_jemss(_folder(tmp_path, roads))


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere"):
        read_jemss(tmp_path / "nowhere")
    folder = _folder(tmp_path)
    with pytest.raises(InputError, match=r"redispatch_x.csv"):
        read_jemss(folder, redispatch="redispatch_x.csv")
    (folder / "calls/reps/train/gen_config.xml").unlink()
    with pytest.raises(InputError, match="gen_config.xml"):
        read_jemss(folder)


@pytest.mark.parametrize("name", ["../../secret.csv", "/etc/passwd", "..", ".", ""])
def test_redispatch_is_a_plain_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="the plain name of a file in misc/redispatch is needed"):
        read_jemss(_folder(tmp_path), redispatch=name)


_CENTRAL, _ENTRY = b"PK\x01\x02", b"PK\x03\x04"  # of the list of files, and before a packed file


@pytest.mark.parametrize(
    ("packing", "changes"),
    [
        (zipfile.ZIP_DEFLATED, [(_ENTRY, 60, b"\xff" * 20)]),
        (zipfile.ZIP_LZMA, [(_ENTRY, 60, b"\xff" * 40)]),
        (zipfile.ZIP_STORED, [(_CENTRAL, 8, b"\x01"), (_ENTRY, 6, b"\x01")]),  # encrypted
        (zipfile.ZIP_DEFLATED, [(_CENTRAL, 24, (3 << 30).to_bytes(4, "little"))]),  # 3 GiB unpacked
        (zipfile.ZIP_STORED, [(_CENTRAL, 10, b"\x63"), (_ENTRY, 8, b"\x63")]),  # unknown packing
        (zipfile.ZIP_STORED, [(_ENTRY, 0, b"none")]),
    ],
)
def test_a_bad_archive_is_named_in_one_line(
    tmp_path: Path, packing: int, changes: list[tuple[bytes, int, bytes]]
) -> None:
    folder = _folder(tmp_path)
    roads = folder / "travel" / "roads" / "roads.zip"
    with zipfile.ZipFile(roads, "w", packing) as archive:
        archive.writestr("nodes.csv", NODES)
        archive.writestr("arcs.csv", ARCS)
    content = bytearray(roads.read_bytes())
    for mark, at, value in changes:
        begin = content.index(mark) + at
        content[begin : begin + len(value)] = value
    roads.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"roads.zip") as caught:
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
