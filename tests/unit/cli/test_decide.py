"""One call, one decision: for people, for programs, and with what can go wrong."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.cities import harbour_city
from ideal_dispatch.cli import decide as command
from ideal_dispatch.cli.help import described
from ideal_dispatch.dispatch import Answer, Decision, Situation
from ideal_dispatch.dispatch.policies import Ideal
from ideal_dispatch.dispatch.policy_tables import threshold_from
from ideal_dispatch.errors import FileFormatError, IdealError, InputError, PolicyError
from ideal_dispatch.forecast.response_time import Effects, ResponseModel
from tests.unit.cli.test_network_command import ideal
from tests.unit.dispatch.worlds import (
    bounded_model,
    count_searches,
    depots,
    moment,
    random_model,
    situation,
    world,
)

decide, _, _ = described(command.decide)
HERE = {"time_zone": "Asia/Hong_Kong", "country": "HK"}


@pytest.fixture(scope="module")
def town(grid: RoadNetwork, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the small world's network, traffic, depots and models."""
    folder = tmp_path_factory.mktemp("town")
    grid.save(folder / "town.network")
    world(grid).recording.save(folder / "town.traffic")
    rows = [f"{one.name},{grid.lon[one.node]},{grid.lat[one.node]}" for one in depots(3)]
    (folder / "depots.csv").write_text("\n".join(["name,lon,lat", *rows, ""]))
    random_model(grid).save(folder / "model")
    return folder


@pytest.fixture
def told(town: Path, grid: RoadNetwork) -> dict[str, Any]:
    """The options of a call that the tests change."""
    return {
        "model_folder": town / "model",
        "traffic_file": town / "town.traffic",
        "at": moment(grid).isoformat(),
        "node": 65,
        "network_file": town / "town.network",
        "depots_file": town / "depots.csv",
    }


def _said(capsys: pytest.CaptureFixture[str], **options: Any) -> dict[str, Any]:
    """The answer of a call for programs."""
    decide(**options, json=True)
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_the_answer_for_programs_is_that_of_the_policy(
    told: dict[str, Any], town: Path, grid: RoadNetwork, capsys: pytest.CaptureFixture[str]
) -> None:
    more: dict[str, Any] = {"cost": 0.001}
    said = _said(capsys, **told, **more, depot=["D0=1", "D2 = 0"])
    call, rule = situation(grid, 65, (1, 2, 0)), threshold_from({"cost": 0.001})
    policy = Ideal(random_model(grid), None, rule, time_limit_s=None)
    made = policy.decide(call, None)  # type: ignore[arg-type]
    own = Answer.of(made, rule, call.reasons, ResponseModel.published()).to_dict()
    assert {name: said[name] for name in said if name != "why"} == {
        name: own[name] for name in own if name != "why"
    }
    assert said["why"]["threshold"] == own["why"]["threshold"]


def test_the_answer_for_people(told: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    decide(**told, threshold="always")
    shown = capsys.readouterr()
    text = " ".join(shown.out.split())
    assert "node 65, Mon 08 May 2023 08:10" in text
    assert text.count("arrives in") == 2
    assert "optimistic gap" in text
    assert "Street" in text
    assert max(map(len, shown.out.splitlines())) <= 80
    assert "unlike anything in training" in shown.err
    assert "published" in shown.err
    decide(**told, threshold="900")
    assert "stays; it would go" in " ".join(capsys.readouterr().out.split())


def test_both_arrivals_are_printed_as_programs_get_them(
    told: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """The same order, the same seconds, and the parts add up as printed."""
    for node in range(3, 120, 6):
        for sent in (None, "D1"):
            asked = told | {"node": node, "primary": sent, "policy": "router-dual"}
            said = _said(capsys, **asked)
            known = [round(said[unit]["arrival"]["expected_s"]) for unit in ("primary", "second")]
            decide(**asked)
            shown = re.findall(
                r"arrives in (\d+):(\d\d) \(turnout (\d+):(\d\d) \+ drive (\d+):(\d\d)\)",
                " ".join(capsys.readouterr().out.split()).replace("│ │ ", ""),
            )
            times = [[60 * int(m) + int(s) for m, s in zip(one[::2], one[1::2], strict=True)]
                     for one in shown]  # fmt: skip
            assert [one[0] for one in times] == known
            assert all(whole == turnout + drive for whole, turnout, drive in times)


def test_by_region(
    told: dict[str, Any], town: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(IdealError, match="territory of the call is not known; give the city terr"):
        decide(**told, policy="region")
    file = tmp_path / "territories.csv"
    for depot in ("D2", "D0"):
        file.write_text(f"node,depot\n65,{depot}\n")
        with pytest.warns(UserWarning, match="119 of 120 nodes are in no territory"):
            said = _said(capsys, **told, policy="region", territories_file=file)
        assert said["primary"]["depot"] == depot
        assert said["second"] is None


@pytest.mark.parametrize("policy", ["ideal", "router", "router-dual", "interval"])
def test_a_forecast_at_its_bound_is_no_advice(
    told: dict[str, Any],
    town: Path,
    grid: RoadNetwork,
    policy: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bounded_model(grid).save(town / "bounded")
    told |= {"model_folder": town / "bounded", "traffic_file": None, "policy": policy, **HERE}
    told |= {"threshold": "always"} if policy == "ideal" else {}
    said = _said(capsys, **told)
    assert (said["decision"], said["primary"]) == ("no_advice", None)
    assert [one["code"] for one in said["degraded"]][:2] == ["forecast_bounded", "unusual_context"]
    decide(**told)
    text = " ".join(capsys.readouterr().out.split())
    assert "No advice" in text
    assert "Considered: from D" in text
    assert "arrives in" not in text


def test_a_primary_that_was_sent_and_who_would_be_sooner(
    told: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "response_times.json"
    ResponseModel(Effects(20.0, 0.1), drive_spread=0.05, slack_s=5.0).save(log)
    told |= {"node": 14, "primary": "D1", "depot": ["D1=0"], "responses_file": log}
    said = _said(capsys, **told)
    assert (said["primary"]["depot"], said["primary"]["chosen_by"]) == ("D1", "cad")
    sooner = said["sooner_unit"]
    assert (sooner["depot"], sooner["unit"]) == ("D0", None)
    decide(**told)
    words = f"{sooner['seconds']:.0f} s sooner than D1"
    assert words in " ".join(capsys.readouterr().out.split()).replace("│ │ ", "")
    assert _said(capsys, **told | {"primary": None})["sooner_unit"] is None


@pytest.mark.parametrize("policy", ["region", "router", "router-dual", "interval", "paper"])
def test_other_policies(
    told: dict[str, Any], policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if policy == "region":
        with pytest.raises(
            PolicyError, match="policy region, .* territory of the call is not known"
        ):
            decide(**told, policy=policy)
        return
    if policy != "paper":
        told["model_folder"] = None
    said = _said(capsys, **told, policy=policy)
    assert (said["decision"] == "send_second") >= (policy == "router-dual")
    assert said["primary"]["arrival"]["expected_s"] > 0.0
    decide(**told, policy=policy)
    assert f"Why, by policy {policy}" in capsys.readouterr().out


def test_the_price_of_a_unit_in_a_fleet(
    told: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text("[fleet]\nunits = { D0 = 3, D1 = 3, D2 = 3 }\ncalls_per_day = 60\n")
    cost = _said(capsys, **told, fleet_file=file)["why"]["cost"]
    assert cost["lives"] > 0.0
    assert cost["hold_s"] > 0.0
    assert cost["source"] == "fleet"
    fixed = _said(capsys, **told)["why"]["cost"]
    assert fixed == {"lives": 0.001, "hold_s": None, "source": "fixed"}
    with pytest.raises(InputError, match="--fleet says what a second costs: leave out --threshold"):
        decide(**told, fleet_file=file, cost=0.1)
    file.write_text("[flete]\n")
    with pytest.raises(InputError, match=r"fleet.toml: there is no \[fleet\] table"):
        decide(**told, fleet_file=file)


def test_a_policy_of_ones_own_keeps_its_threshold(
    told: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[3] / "examples" / "own_policy")
    for threshold, expected_s in ((None, -45.0), ("7", 7.0)):
        kind = "my_dispatch.policies:CloseRace"
        said = _said(capsys, **told, threshold=threshold, policy=kind)
        assert said["why"]["threshold"]["seconds"] == expected_s


class Faulty:
    """A policy that divides by zero."""

    name = "faulty"

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        raise ZeroDivisionError("oops")


def test_a_policy_of_ones_own_that_fails(told: dict[str, Any]) -> None:
    with pytest.raises(
        PolicyError, match=r"^policy faulty, .*: ZeroDivisionError: oops \(test_decide"
    ):
        decide(**told, policy=f"{__name__}:Faulty")


def test_a_place_by_coordinates(
    told: dict[str, Any], grid: RoadNetwork, capsys: pytest.CaptureFixture[str]
) -> None:
    del told["node"]
    said = _said(capsys, **told, lon=float(grid.lon[30]) + 1e-5, lat=float(grid.lat[30]))
    assert said["location"]["node"] == 30


def test_without_traffic_the_model_stands_in_for_the_router(
    told: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    told |= {"traffic_file": None, "at": "2024-03-05T18:00+08:00", **HERE}
    said = _said(capsys, **told)
    assert said["why"]["seconds_from"] == "forecast"
    codes = [(one["code"], one["also"]) for one in said["degraded"]]
    assert codes == [("unusual_context", []), ("published_spreads", ["no_live_traffic"])]
    assert said["degraded"][-1]["standing"]
    decide(**told | {"at": None})
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_ones_own_network_needs_its_clock_and_holidays(
    told: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """With recorded traffic they are known."""
    del told["traffic_file"]
    for missing in HERE:
        with pytest.raises(InputError, match="--time-zone and --country"):
            decide(**told | HERE | {missing: None})
    assert _said(capsys, **told, **HERE)["primary"] is not None


def test_the_embedded_city_needs_no_options(tmp_path: Path) -> None:
    for options in ([], ["--node", "700"]):
        done = ideal("decide", *options, cwd=tmp_path)
        assert "The call: " in done.stdout
        assert "responses of a made-up unit log" in " ".join(done.stdout.split())
    assert "node 700" in done.stdout


def test_the_embedded_city_takes_another_model_and_other_response_times(
    town: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    random_model(harbour_city().network).save(tmp_path / "model")
    asked = {"model_folder": tmp_path / "model", "seed": 4}
    published = _said(capsys, **asked)
    assert published["degraded"][-1]["code"] == "published_spreads"
    quick = ResponseModel(Effects(5.0, 0.1), source="a log of ours", rows=100)
    quick.save(tmp_path / "model" / "response_times.json")
    own = _said(capsys, **asked)
    assert own["primary"]["arrival"]["turnout_s"] < 10.0
    assert "published_spreads" not in {one["code"] for one in own["degraded"]}
    ResponseModel.published().save(tmp_path / "given.json")
    given = _said(capsys, **asked, responses_file=tmp_path / "given.json")
    assert given == published, "times that are given go before those beside the model"
    (tmp_path / "gain.json").write_text('{"kind": "ideal-dispatch expected gain", "version": 1}')
    with pytest.raises(FileFormatError, match=r"gain\.json.*ideal races"):
        decide(**asked, responses_file=tmp_path / "gain.json")


def test_the_embedded_city_with_other_depots_and_another_clock(tmp_path: Path) -> None:
    network = harbour_city().network
    rows = [
        f"{name},{network.lon[node]},{network.lat[node]}" for name, node in (("A", 1), ("B", 700))
    ]
    (tmp_path / "depots.csv").write_text("\n".join(["name,lon,lat", *rows, "Far,7.0,43.0"]))
    options = ("--depots", "depots.csv", "--time-zone", "Europe/Paris", "--country", "FR",
               "--at", "2025-01-24T08:16+08:00", "--node", "30")  # fmt: skip
    done = ideal("decide", *options, cwd=tmp_path)
    assert "Fri 24 Jan 2025 01:16" in done.stdout
    assert "warning: depots.csv: 1 of 3 depots left out" in done.stderr
    assert "depot Far: " in done.stderr


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"at": None}, "--traffic needs --at: a moment of the recording, which begins at 2023-05"),
        ({"at": "noon"}, "--at noon: write it as"),
        ({"at": "2023-05-08T08:10"}, "--at 2023-05-08T08:10: add the zone"),
        ({"at": "2023-05-09T08:10+08:00"}, "is not in the recording"),
        ({"node": 120}, "^--node 120: not a node of the network"),
        ({"node": -1}, "^--node -1: not a node of the network"),
        ({"lon": 114.0}, "^--node and --lon, --lat both name the place"),
        ({"node": None}, "where is the call\\? Give --node, or --lon and --lat"),
        ({"node": None, "lon": 114.0}, "^--lon and --lat belong together"),
        ({"node": None, "lon": 10.0, "lat": 50.0}, "beyond the limit of 300 m"),
        ({"depot": ["D9=1"]}, "^--depot D9: no such depot; there are D0, D1, D2"),
        ({"primary": "D9"}, "^--primary D9: no such depot; there are D0, D1, D2"),
        ({"primary": "D9", "depot": ["D0=1"]}, "^--primary D9: no such depot"),
        ({"primary": "D1", "depot": ["D9=1"]}, "^--depot D9: no such depot"),
        ({"depot": ["D0"]}, "--depot D0: write it as NAME=UNITS, as in D0=1"),
        ({"depot": ["D0=-1"]}, "--depot D0=-1: write it as NAME=UNITS"),
        ({"depot": ["D0=0", "D1=0", "D2=0"]}, "no depot has a free unit and a route"),
        ({"policy": "oracle"}, "--policy 'oracle': choose one of region, router"),
        ({"policy": "builtins:object"}, "^--policy builtins:object is no policy"),
        ({"policy": "learned-trigger"}, "--policy 'learned-trigger': choose one of (?!.*learned)"),
        ({"policy": "quarter-hour"}, "--policy 'quarter-hour': choose one of (?!.*quarter)"),
        ({"threshold": "soon"}, "--threshold soon: seconds or always is needed"),
        ({"threshold": "5", "cost": 0.1}, "choose one way"),
        ({"curve": "nobody-1900"}, "^threshold: survival curve 'nobody-1900': choose one"),
        ({"cost": -1.0}, "cost is -1"),
        ({"threshold": "nan"}, "^threshold nan: seconds"),
        ({"depots_file": None}, "--network needs --depots"),
        ({"model_folder": None}, "--policy ideal needs a trained model"),
        (
            {"model_folder": None, "traffic_file": None, "policy": "router", **HERE},
            "no travel times: give",
        ),
        ({"responses_file": "town.network"}, "town.network: "),
        ({"trace_gap": True, "policy": "router"}, "^--trace-gap: policy router makes no scenario"),
        (
            {"trace_gap": True, "depot": ["D0=1", "D1=0", "D2=0"]},
            "^--trace-gap: no second unit is free, so there is no gap; see --depot",
        ),
    ],
)
def test_what_can_go_wrong(
    told: dict[str, Any], town: Path, changes: dict[str, Any], message: str
) -> None:
    if file := changes.get("responses_file"):
        changes = changes | {"responses_file": town / file}
    with pytest.raises(IdealError, match=message):
        decide(**told | changes)


def test_a_trace_tells_every_step(
    told: dict[str, Any], grid: RoadNetwork, capsys: pytest.CaptureFixture[str]
) -> None:
    lon, lat = float(grid.lon[65]), float(grid.lat[65])
    asked = {name: value for name, value in told.items() if name != "node"}
    plain = _said(capsys, **asked, lon=lon, lat=lat)
    answer = _said(capsys, **asked, lon=lon, lat=lat, trace=True)
    steps = answer.pop("trace")
    assert answer == plain, "the answer is the same, and has no trace unless asked for"
    assert [step["step"] for step in steps] == [
        "city and model", "recorded traffic", "snapping", "the call", "quotes from D0",
        "quotes from D1", "quotes from D2", "edge times of the router", "compiled kernels",
        "decision", "explanation",
    ]  # fmt: skip
    assert steps[2]["node"] == 65
    assert steps[2]["distance_m"] == 0.0
    decision = steps[-2]
    assert decision["send_second"] == (answer["decision"] == "send_second")
    assert {one["step"] for one in decision["steps"]} >= {"forecast", "gap search", "threshold"}
    assert sum(one["seconds"] for one in decision["steps"]) <= decision["seconds"]


@pytest.mark.parametrize("policy", ["ideal", "paper"])
def test_the_gap_is_searched_once(
    told: dict[str, Any],
    policy: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    searched = count_searches(monkeypatch)
    answer = _said(capsys, **told, policy=policy, trace=True)
    assert answer["why"]["gap"] is not None
    assert len(searched) == 1
    assert json.dumps(answer["trace"]).count('"step": "gap search"') == 1


def test_a_trace_is_readable_in_eighty_columns(
    told: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    decide(**told, trace=True)
    text = capsys.readouterr().out.split("Step by step")[1]
    assert max(map(len, text.splitlines())) <= 80
    words = " ".join(text.split())
    assert "holiday no" in words
    assert " s, optimistic " in words, "units stand after their numbers"
    assert "  gap search" in text, "steps inside another are indented"


@pytest.mark.parametrize("policy", ["ideal", "paper"])
def test_a_trace_of_algorithm_2(
    told: dict[str, Any], policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = told | {"policy": policy, "seed": 3, "primary": "D2"}
    plain = _said(capsys, **asked)
    answer = _said(capsys, **asked, trace_gap=True)
    rows = answer.pop("algorithm_2")
    assert answer["primary"] == plain["primary"]
    assert answer["decision"] == plain["decision"]
    gap = answer["why"]["gap"]
    if policy == "paper":
        assert rows[-1]["gap_s"] == pytest.approx(gap["lower_s"], abs=1e-3), "the very search"
    else:
        assert rows[-1]["gap_s"] <= gap["upper_s"] + 1e-3
    assert [row["k"] for row in rows] == list(range(len(rows)))
    assert len(rows) > 1
    assert rows[0]["f_s"] > rows[-1]["f_s"], "it finds something here"
    assert all(b["f_s"] <= a["f_s"] + 1e-9 for a, b in pairwise(rows)), "Theorem 4"
    promised_s = sum(row["decrease_s"] for row in rows[:-1])
    assert promised_s <= rows[0]["f_s"] - rows[-1]["f_s"] + 1e-9
    for row in rows:
        assert row["f_s"] == -row["gap_s"]
        assert row["depot"] in {"D0", "D1", "D2"}
        assert 0.0 <= row["shared_m"] <= row["length_m"] + 1e-6
        assert row["seconds"] > 0.0
    assert rows[-1]["decrease_s"] is None
    assert rows[-1]["change"] is None
    assert rows[0]["change"] > 0.0


def test_fruitless_restarts_of_algorithm_2_are_printed_as_two_rows(
    told: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    rows: list[dict[str, Any]] = []
    for node in range(119, 60, -1):  # until every metric that was drawn leads to the primary's path
        asked = told | {"policy": "paper", "seed": 3, "primary": "D2", "node": node}
        rows = _said(capsys, **asked, trace_gap=True)["algorithm_2"]
        if len(rows) == 51:
            break
    assert len(rows) == 51
    assert all(row["f_s"] == 0.0 for row in rows)
    decide(**asked, trace_gap=True)
    text = capsys.readouterr().out.split("Algorithm 2, step by step")[1]
    assert [line.split()[0] for line in text.splitlines()[2:5]] == ["0", "1*", "50*"]


def test_a_trace_of_algorithm_2_is_readable_in_eighty_columns(
    told: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    decide(**told, primary="D2", trace_gap=True)
    text = capsys.readouterr().out.split("Algorithm 2, step by step")[1]
    assert max(map(len, text.splitlines())) <= 80
    assert "change of X" in text
    assert "never more (Theorem 4)" in " ".join(text.split())


def test_units_on_the_road(capsys: pytest.CaptureFixture[str]) -> None:
    """A unit on the road is a start like a depot; one that is nearer goes first."""
    city = harbour_city()
    near = int(city.network.tail[np.flatnonzero(city.network.head == 700)[0]])
    place = f"{city.network.lon[near]},{city.network.lat[near]}"
    said = _said(capsys, node=700, on_road=[f"A7={place}"], seed=4)
    assert said["primary"]["unit"] == "A7"
    assert said["primary"]["start"]["on_road"]
    others = _said(capsys, node=700, on_road=[f"A7={place}"], depot=["A7=0"], seed=4)
    assert others["primary"]["unit"] is None
    sent = _said(capsys, node=700, on_road=[f"A7={place}"], primary="A7", seed=4)
    assert (sent["primary"]["unit"], sent["primary"]["chosen_by"]) == ("A7", "cad")
    assert [row["unit"] for row in sent["considered"]].count("A7") == 1
    for text in ("A7", "A7=1", "=1,2", "A7=a,b"):
        with pytest.raises(InputError, match=f"--on-road {text}: write it as UNIT=LON,LAT"):
            decide(node=700, on_road=[text])


def test_kinds_of_units(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    times = ResponseModel(Effects(60.0, 0.0, kind={"medic": 0.5}))
    times.save(tmp_path / "response_times.json")
    asked = {
        "node": 700,
        "primary": "Kelp Point",
        "responses_file": tmp_path / "response_times.json",
    }
    expected = []
    for kind in (None, ["Kelp Point=medic"]):
        said = _said(capsys, **asked, kind=kind, seed=4)
        expected.append(said["primary"]["arrival"]["expected_s"])
    assert expected[0] - expected[1] == pytest.approx(30.0, abs=0.2)
    with pytest.raises(InputError, match="--kind medic: write it as NAME=KIND"):
        decide(**asked, kind=["medic"])
    with pytest.raises(InputError, match="--kind Nowhere: no such depot"):
        decide(**asked, kind=["Nowhere=medic"])


def _driven(told: dict[str, Any], capsys: pytest.CaptureFixture[str], *closed: str) -> set[int]:
    """The edges of both routes of an answer."""
    said = _said(capsys, **told, threshold="always", closed=list(closed) or None)
    return {edge for unit in ("primary", "second") for edge in said[unit]["route"]["edges"]}


@pytest.mark.parametrize("traffic", [True, False])
def test_closed_roads_are_driven_around(
    told: dict[str, Any], grid: RoadNetwork, tmp_path: Path,
    capsys: pytest.CaptureFixture[str], traffic: bool,
) -> None:  # fmt: skip
    if not traffic:
        del told["traffic_file"]
        told |= HERE
    one, two = sorted(_driven(told, capsys))[3:5]
    assert not _driven(told, capsys, f"{one}, {two}") & {one, two}
    line = {"type": "LineString", "coordinates": grid.polyline(one).tolist()}
    lon, lat = grid.lon[grid.tail[two]], grid.lat[grid.tail[two]]
    box = [[lon + x * 1e-4, lat + y * 1e-4] for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    area = {"type": "Polygon", "coordinates": [[*box, box[0]]]}
    file = tmp_path / "works.geojson"
    features = [{"type": "Feature", "properties": {}, "geometry": it} for it in (line, area)]
    file.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    assert not _driven(told, capsys, str(file)) & {one, two}


@pytest.mark.parametrize(
    "content",
    [
        None,
        "{",
        '{"type": "Point", "coordinates": [114, 22]}',
        '{"type": "FeatureCollection", "features": []}',
        '{"type": "LineString", "coordinates": [[0, 0], [1, 0]]}',
    ],
)
def test_files_of_closed_roads_that_make_no_sense(
    told: dict[str, Any], tmp_path: Path, content: str | None
) -> None:
    file = tmp_path / "works.geojson"
    if content is not None:
        file.write_text(content)
    with pytest.raises(InputError, match=r"--closed .*works\.geojson: "):
        decide(**told, closed=[str(file)])


def test_closed_roads_are_edges_or_a_file(told: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="--closed 3,x: write numbers of edges, as in 12,13"):
        decide(**told, closed=["3,x"])
    with pytest.raises(InputError, match="--closed 99999: edges: edge 99999 is not in the network"):
        decide(**told, closed=["99999"])
