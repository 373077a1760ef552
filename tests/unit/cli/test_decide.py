"""One call, one decision: for people, for programs, and with what can go wrong."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.cities import harbour_city
from ideal_dispatch.cli import decide as command
from ideal_dispatch.cli.help import described
from ideal_dispatch.dispatch import Decision, Situation
from ideal_dispatch.dispatch.ideal import Ideal
from ideal_dispatch.dispatch.policy_tables import threshold_from
from ideal_dispatch.errors import IdealError, InputError, PolicyError
from ideal_dispatch.forecast.response_time import Effects, ResponseModel
from tests.unit.cli.test_network_command import ideal
from tests.unit.dispatch.worlds import (
    GAIN,
    bounded_model,
    count_searches,
    depots,
    moment,
    random_drift,
    random_model,
    situation,
    world,
)

decide, _, _ = described(command.decide)


@pytest.fixture(scope="module")
def town(grid: RoadNetwork, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the small world's network, traffic, depots and models."""
    folder = tmp_path_factory.mktemp("town")
    grid.save(folder / "town.network")
    world(grid).recording.save(folder / "town.traffic")
    rows = [f"{one.name},{grid.lon[one.node]},{grid.lat[one.node]}" for one in depots(3)]
    (folder / "depots.csv").write_text("\n".join(["name,lon,lat", *rows, ""]))
    random_model(grid).save(folder / "model")
    random_drift(grid).save(folder / "drift")
    GAIN.save(folder / "gain.json")
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


def test_the_answer_for_programs_is_the_policys(
    told: dict[str, Any], town: Path, grid: RoadNetwork, capsys: pytest.CaptureFixture[str]
) -> None:
    more: dict[str, Any] = {
        "drift_folder": town / "drift",
        "gain_file": town / "gain.json",
        "cost": 0.001,
    }
    decide(**told, **more, depot=["D0=1", "D2 = 0"], json=True)
    answer = json.loads(capsys.readouterr().out)
    call = situation(grid, 65, (1, 2, 0))
    policy = Ideal(random_model(grid), GAIN, random_drift(grid), threshold_from({"cost": 0.001}))
    made = policy.decide(call, None)  # type: ignore[arg-type]
    said = answer["decision"]
    assert said["send_second"] == made.send_second
    assert said["advice"] == ("send_second" if made.send_second else "primary_only")
    assert said["score_s"] == pytest.approx(made.score_s)
    assert said["threshold_s"] == pytest.approx(made.threshold_s)
    assert said["reason"] == made.reason
    assert said["primary"]["depot"] == call.stations[made.primary.station].depot.name
    assert made.second is not None
    assert said["second"]["edges"] == made.second.path.edges.tolist()
    assert said["details"]["times_from"] == "corrected quotes"
    assert "with 3 units free it costs" in said["threshold"]
    assert [one["units"] for one in answer["stations"]] == [1, 2, 0]
    assert answer["stations"][2]["quote"] is None
    assert answer["incident"]["node"] == 65
    assert "could plausibly" in answer["explanation"]


def test_the_answer_for_people(told: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    decide(**told, threshold="always")
    shown = capsys.readouterr()
    text = " ".join(shown.out.split())
    assert "Send a second ambulance" in text
    assert "goes too" in text
    assert "The call: node 65, Mon 08 May 2023 08:10" in text
    assert "a second ambulance always goes" in text
    assert "times from quotes, spread from published spreads" in text
    assert "points by waalewijn-2001" in text
    assert "could plausibly" in text
    assert "Street" in text
    assert max(map(len, shown.out.splitlines())) <= 80
    assert "unlike anything in training" in shown.err
    decide(**told, threshold="900")
    assert "stays; it would go" in " ".join(capsys.readouterr().out.split())


def test_by_region(
    told: dict[str, Any], town: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(IdealError, match="territory of the call is not known; give the city terr"):
        decide(**told, policy="region")
    file = tmp_path / "territories.csv"
    for depot in ("D2", "D0"):
        file.write_text(f"node,depot\n65,{depot}\n")
        with pytest.warns(UserWarning, match="119 of 120 nodes in no territory"):
            decide(**told, policy="region", territories_file=file, json=True)
        said = json.loads(capsys.readouterr().out)["decision"]
        assert said["primary"]["depot"] == depot
        assert said["reason"] == f"{depot}: its territory"


@pytest.mark.parametrize("policy", ["ideal", "router", "router-dual", "interval"])
def test_a_forecast_at_its_bound_is_no_advice(
    told: dict[str, Any],
    town: Path,
    grid: RoadNetwork,
    policy: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bounded_model(grid).save(town / "bounded")
    told |= {"model_folder": town / "bounded", "traffic_file": None, "policy": policy}
    told |= {"threshold": "always"} if policy == "ideal" else {}
    decide(**told, json=True)
    answer = json.loads(capsys.readouterr().out)
    made = answer["decision"]
    assert (made["advice"], made["send_second"]) == ("no_advice", None)
    assert [one["code"] for one in answer["remarks"]][:2] == ["forecast_bounded", "unusual_context"]
    assert made["reason"] == answer["remarks"][0]["words"]
    decide(**told)
    text = " ".join(capsys.readouterr().out.split())
    assert "No advice: the forecast is not to be trusted" in text
    assert "Considered: from D" in text
    assert "goes," not in text
    assert "goes too" not in text


def test_a_primary_that_was_sent_and_who_would_be_sooner(
    told: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    told |= {"node": 14, "primary": "D1", "depot": ["D1=0"]}
    decide(**told, json=True)
    made = json.loads(capsys.readouterr().out)["decision"]
    assert made["primary"]["depot"] == "D1"
    sooner = made["sooner_unit"]
    assert (sooner["depot"], sooner["units"]) == ("D0", 2)
    decide(**told)
    words = f"D0 is expected {sooner['seconds']:.0f} s sooner than D1, "
    assert words in " ".join(capsys.readouterr().out.split())
    decide(**told | {"primary": None}, json=True)
    assert json.loads(capsys.readouterr().out)["decision"]["sooner_unit"] is None


@pytest.mark.parametrize("policy", ["region", "router", "router-dual", "interval", "paper-ideal"])
def test_other_policies(
    told: dict[str, Any], policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if policy == "region":
        with pytest.raises(
            PolicyError, match="policy region, .* territory of the call is not known"
        ):
            decide(**told, policy=policy)
        return
    if policy != "paper-ideal":
        told["model_folder"] = None
    decide(**told, policy=policy, json=True)
    answer = json.loads(capsys.readouterr().out)["decision"]
    assert answer["policy"] == policy
    assert (answer["threshold_s"] is None) == (policy == "router-dual")
    decide(**told, policy=policy)
    assert f"Why, by policy {policy}" in capsys.readouterr().out


def test_the_price_of_a_unit_in_a_fleet(
    told: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text("[fleet]\nunits = { D0 = 3, D1 = 3, D2 = 3 }\ncalls_per_day = 60\n")
    decide(**told, fleet_file=file, json=True)
    said = json.loads(capsys.readouterr().out)["decision"]
    assert said["cost"]["lives"] == said["details"]["cost"] > 0.0
    assert said["cost"]["hold_s"] > 0.0
    assert "it costs the others" in said["threshold"]
    decide(**told, json=True)
    fixed = json.loads(capsys.readouterr().out)["decision"]
    assert fixed["cost"] == {"lives": 0.001, "hold_s": None}
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
        decide(**told, threshold=threshold, policy=kind, json=True)
        assert json.loads(capsys.readouterr().out)["decision"]["threshold_s"] == expected_s


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
    decide(**told, lon=float(grid.lon[30]) + 1e-5, lat=float(grid.lat[30]), json=True)
    assert json.loads(capsys.readouterr().out)["incident"]["node"] == 30


def test_without_traffic_the_model_stands_in_for_the_router(
    told: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    told |= {"traffic_file": None, "at": "2024-03-05T18:00+08:00"}
    decide(**told, json=True)
    answer = json.loads(capsys.readouterr().out)
    assert answer["decision"]["details"]["times_from"] == "forecast"
    assert answer["stations"][0]["quote"]["fell_back"] == "no live traffic: the model's own times"
    assert answer["stations"][0]["quote"]["optimistic_s"] is None
    assert [one["code"] for one in answer["remarks"]] == ["unusual_context", "no_live_traffic"]
    assert answer["remarks"][-1]["standing"]
    decide(**told | {"at": None})
    first, second = capsys.readouterr().err.splitlines()
    assert "unlike anything in training" in first
    assert "no live traffic: the model's own times" in second


def test_the_embedded_city_needs_no_options(tmp_path: Path) -> None:
    for options in ([], ["--node", "700"]):
        done = ideal("decide", *options, cwd=tmp_path)
        assert "The call: " in done.stdout
        assert "responses of a made-up unit log" in " ".join(done.stdout.split())
    assert "node 700" in done.stdout


def test_the_embedded_city_takes_another_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    random_model(harbour_city().network).save(tmp_path / "model")
    decide(model_folder=tmp_path / "model", seed=4, json=True)
    said = json.loads(capsys.readouterr().out)["decision"]["details"]
    assert said["spread_from"] == "published spreads"
    GAIN.save(tmp_path / "model" / "gain.json")
    decide(model_folder=tmp_path / "model", seed=4, json=True)
    own = json.loads(capsys.readouterr().out)["decision"]["details"]["spread_from"]
    assert own == "replays", "a gain beside the model is the model's own"
    ResponseModel.published().save(tmp_path / "model" / "response_times.json")
    decide(model_folder=tmp_path / "model", seed=4, json=True)
    own = json.loads(capsys.readouterr().out)["decision"]["details"]["spread_from"]
    assert own == "published spreads", "what a log says goes before what replays say"
    GAIN.save(tmp_path / "gain.json")
    said = []
    for gain in (None, tmp_path / "gain.json"):
        decide(gain_file=gain, seed=4, json=True)
        said.append(json.loads(capsys.readouterr().out)["decision"]["details"]["spread_s"])
    assert said[0] != said[1], "a gain that is given goes before the city's own"


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
        ({"model_folder": None, "traffic_file": None, "policy": "router"}, "no travel times: give"),
        ({"drift_folder": "model"}, "forecasts travel times, not the drift of quotes"),
        ({"gain_file": "town.network"}, "town.network: "),
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
    for name in ("drift_folder", "gain_file"):
        if name in changes:
            changes = changes | {name: town / changes[name]}
    with pytest.raises(IdealError, match=message):
        decide(**told | changes)


def test_a_trace_tells_every_step(
    told: dict[str, Any], grid: RoadNetwork, capsys: pytest.CaptureFixture[str]
) -> None:
    lon, lat = float(grid.lon[65]), float(grid.lat[65])
    asked = {name: value for name, value in told.items() if name != "node"}
    decide(**asked, lon=lon, lat=lat, json=True)
    plain = json.loads(capsys.readouterr().out)
    decide(**asked, lon=lon, lat=lat, json=True, trace=True)
    answer = json.loads(capsys.readouterr().out)
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
    assert decision["send_second"] == answer["decision"]["send_second"]
    assert {one["step"] for one in decision["steps"]} >= {"forecast", "gap search", "threshold"}
    assert sum(one["seconds"] for one in decision["steps"]) <= decision["seconds"]


@pytest.mark.parametrize("policy", ["ideal", "paper-ideal", "nominal-gap"])
def test_the_gap_is_searched_once(
    told: dict[str, Any],
    policy: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    searched = count_searches(monkeypatch)
    decide(**told, policy=policy, json=True, trace=True)
    answer = json.loads(capsys.readouterr().out)
    assert "could plausibly" in answer["explanation"]
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


@pytest.mark.parametrize("policy", ["ideal", "paper-ideal"])
def test_a_trace_of_algorithm_2(
    told: dict[str, Any], policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = told | {"policy": policy, "json": True, "seed": 3, "primary": "D2"}
    decide(**asked)
    plain = json.loads(capsys.readouterr().out)
    decide(**asked, trace_gap=True)
    answer = json.loads(capsys.readouterr().out)
    rows = answer.pop("algorithm_2")
    assert answer["decision"]["primary"] == plain["decision"]["primary"]
    assert answer["decision"]["send_second"] == plain["decision"]["send_second"]
    if policy == "paper-ideal":
        assert rows[-1]["gap_s"] == answer["decision"]["score_s"], "the very search that decided"
    else:
        assert rows[-1]["gap_s"] <= answer["decision"]["details"]["gap_upper_s"] + 1e-3
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
    asked = told | {"policy": "paper-ideal", "seed": 3, "primary": "D2", "node": 99}
    decide(**asked, trace_gap=True, json=True)
    rows = json.loads(capsys.readouterr().out)["algorithm_2"]
    assert len(rows) == 51, "every metric that was drawn leads to the primary's path"
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
    decide(node=700, on_road=[f"A7={place}"], json=True, seed=4)
    answer = json.loads(capsys.readouterr().out)
    assert answer["decision"]["primary"]["depot"] == "A7"
    decide(node=700, on_road=[f"A7={place}"], depot=["A7=0"], json=True, seed=4)
    assert json.loads(capsys.readouterr().out)["decision"]["primary"]["depot"] != "A7"
    for text in ("A7", "A7=1", "=1,2", "A7=a,b"):
        with pytest.raises(InputError, match=f"--on-road {text}: write it as UNIT=LON,LAT"):
            decide(node=700, on_road=[text])


def test_kinds_of_units(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    times = ResponseModel(Effects(60.0, 0.0, kind={"medic": 0.5}))
    times.save(tmp_path / "response_times.json")
    asked = {"node": 700, "primary": "Kelp Point", "gain_file": tmp_path / "response_times.json"}
    expected = []
    for kind in (None, ["Kelp Point=medic"]):
        decide(**asked, kind=kind, json=True, seed=4)
        expected.append(json.loads(capsys.readouterr().out)["decision"]["details"]["primary_s"])
    assert expected[0] - expected[1] == pytest.approx(30.0, abs=0.2)
    with pytest.raises(InputError, match="--kind medic: write it as NAME=KIND"):
        decide(**asked, kind=["medic"])
    with pytest.raises(InputError, match="--kind Nowhere: no such depot"):
        decide(**asked, kind=["Nowhere=medic"])


def _driven(told: dict[str, Any], capsys: pytest.CaptureFixture[str], *closed: str) -> set[int]:
    """The edges of both routes of an answer."""
    decide(**told, threshold="always", json=True, closed=list(closed) or None)
    said = json.loads(capsys.readouterr().out)["decision"]
    return {*said["primary"]["edges"], *said["second"]["edges"]}


@pytest.mark.parametrize("traffic", [True, False])
def test_closed_roads_are_driven_around(
    told: dict[str, Any], grid: RoadNetwork, tmp_path: Path,
    capsys: pytest.CaptureFixture[str], traffic: bool,
) -> None:  # fmt: skip
    if not traffic:
        del told["traffic_file"]
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
    ("content", "words"),
    [
        (None, "no such file"),
        ("{", "no GeoJSON"),
        ('{"type": "Point", "coordinates": [114, 22]}', "a Point closes no road; draw lines or"),
        ('{"type": "FeatureCollection", "features": []}', "a GeometryCollection closes no road"),
        ('{"type": "LineString", "coordinates": [[0, 0], [1, 0]]}', "line: no road runs within"),
    ],
)
def test_files_of_closed_roads_that_make_no_sense(
    told: dict[str, Any], tmp_path: Path, content: str | None, words: str
) -> None:
    file = tmp_path / "works.geojson"
    if content is not None:
        file.write_text(content)
    with pytest.raises(InputError, match=f"--closed .*works.geojson: .*{words}"):
        decide(**told, closed=[str(file)])


def test_closed_roads_are_edges_or_a_file(told: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="--closed 3,x: write numbers of edges, as in 12,13"):
        decide(**told, closed=["3,x"])
    with pytest.raises(InputError, match="--closed 99999: edges: edge 99999 is not in the network"):
        decide(**told, closed=["99999"])
