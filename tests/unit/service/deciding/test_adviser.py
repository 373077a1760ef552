"""Advice without HTTP: from a call and the units to an answer of the API's form."""

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ideal_dispatch.context import Weather, WeatherValue
from ideal_dispatch.dispatch import Assignment, Decision, Situation
from ideal_dispatch.dispatch.threshold import ConstantThreshold
from ideal_dispatch.errors import IdealError, InputError
from ideal_dispatch.service.clock import SECOND, moment
from ideal_dispatch.service.deciding.assets import Closed, load_assets
from ideal_dispatch.service.deciding.engine import Advice, Adviser, Picture
from ideal_dispatch.service.deciding.live_traffic import TrafficQuery
from ideal_dispatch.service.deciding.weather import KnownWeather
from tests.polylines import encode_polyline
from tests.service_town import DEPOTS
from tests.unit.dispatch.worlds import bounded_model, count_searches
from tests.unit.service.deciding.conftest import NOW, SCENE, Advise, SmallCity, codes

NOTHING = KnownWeather()


def asked(adviser: Adviser, city: SmallCity, known: KnownWeather = NOTHING, **call: Any) -> Advice:
    picture = Picture(NOW, city.fleet)
    return adviser.advise(city.call(**call), picture, known, time.monotonic() + 60.0)


def test_an_advice_has_all_its_parts(advise: Advise, city: SmallCity) -> None:
    made = advise(threshold_s=0.0)
    fields = made.fields
    assert made.decision == fields["decision"] == "send_second"
    assert (made.primary, made.second) == (fields["primary"]["unit"], fields["second"]["unit"])
    assert made.chosen
    place = city.place(SCENE)
    assert (fields["location"]["lon"], fields["location"]["lat"]) == (place.lon, place.lat)
    assert fields["location"]["node"] == SCENE
    for one in (fields["primary"], fields["second"]):
        path = city.network.path(one["route"]["edges"])
        assert path.destination == SCENE
        assert one["arrival"]["expected_s"] > 0.0
    assert fields["gain_s"] > 0.0
    assert len(fields["considered"]) == 6
    ages = fields["made_with"]["ages"]
    assert 0.0 <= ages["traffic_s"] < 60.0
    assert ages["units_s"] == 0.0
    assert fields["made_with"]["policy"] == "ideal"


def test_advice_needs_the_units_that_it_chose(advise: Advise) -> None:
    made = advise(threshold_s=-1e4)
    assert made.needs == (made.primary, made.second)
    named = advise(threshold_s=-1e4, primary={"unit": "D0-1"})
    assert (named.primary, named.chosen, named.needs) == ("D0-1", False, (named.second,))
    assumed = advise(threshold_s=-1e4, primary={"depot": "D0"})
    assert (assumed.primary, assumed.chosen) == ("D0-1", False)
    assert assumed.needs == ("D0-1", assumed.second), "the CAD named no unit"
    assert advise(threshold_s=3600.0).needs == (advise().primary,)


def test_a_second_that_stays_is_shown_and_not_used(advise: Advise) -> None:
    made = advise(threshold_s=3600.0)
    assert (made.decision, made.second) == ("primary_only", None)
    assert made.fields["second"]["unit"] is not None
    threshold = made.fields["why"]["threshold"]
    assert (threshold["seconds"], threshold["source"]) == (3600.0, "request")
    assert advise().fields["why"]["threshold"]["source"] == "configuration"


def test_units_on_the_road_are_shown_where_they_were_seen(advise: Advise, city: SmallCity) -> None:
    lon, lat = city.network.polyline(40).mean(axis=0).tolist()
    unit = city.unit("A1", node=0, ago_s=7.0, lon=lon, lat=lat, kind="advanced")
    made = advise([unit, city.unit("A2", "D1")], threshold_s=-1e4)
    rows = {row["unit"]: row for row in made.fields["considered"]}
    start = rows["A1"]["start"]
    assert (start["lon"], start["lat"]) == (round(lon, 6), round(lat, 6))
    assert (start["on_road"], start["age_s"], rows["A1"]["kind"]) == (True, 7.0, "advanced")
    assert (rows["A2"]["start"]["on_road"], rows["A2"]["start"]["age_s"]) == (False, None)


def test_how_old_the_position_of_a_standing_unit_is_changes_nothing(city: SmallCity) -> None:
    """Fixes 0 and 100 s old of one that stands, or was just reported to leave."""
    adviser = city.adviser(policy={"report_gap": False, "seconds": ["other-depot"]})
    rng, sends = np.random.default_rng(3), 0
    for turn in range(200):
        node, scene = rng.integers(city.network.num_nodes, size=2).tolist()
        call = city.call(scene, ago_s=float(rng.integers(60)), primary={"unit": "A1"})
        made = []
        for fix_s in (0.0, 100.0):
            status = "en_route" if turn % 2 else "available"
            unit = city.unit("A1", node=node, ago_s=fix_s, status=status)
            picture = Picture(NOW, (unit, *city.fleet))
            made.append(adviser.advise(call, picture, NOTHING, time.monotonic() + 60.0))
        new, old = made
        assert (new.decision, new.second) == (old.decision, old.second)
        assert new.fields["gain_s"] == old.fields["gain_s"]
        assert new.fields["primary"]["arrival"] == old.fields["primary"]["arrival"]
        sends += new.decision == "send_second"
    assert 0 < sends < 200


def test_what_a_primary_has_driven_counts(advise: Advise, city: SmallCity) -> None:
    def arrives(since_s: float) -> float:
        unit = city.unit("A1", node=0, ago_s=100.0, status="en_route", since_s=since_s)
        made = advise((unit, *city.fleet), ago_s=200.0, primary={"unit": "A1"})
        return float(made.fields["primary"]["arrival"]["expected_s"])

    assert arrives(0.0) > arrives(30.0) > arrives(60.0)
    assert arrives(100.0) == arrives(150.0), "it was seen since it left"


def test_a_free_unit_that_is_reported_for_another_call_is_doubtful(
    advise: Advise, city: SmallCity
) -> None:
    odd = city.unit("A2", "D1", call_id="other")
    made = advise([city.unit("A1"), odd], threshold_s=-1e4)
    assert "A2" in (made.primary, made.second)
    assert "other_call" in codes(made)
    assert "other_call" not in codes(advise(threshold_s=-1e4))


def test_no_unit_reported_is_no_advice(advise: Advise) -> None:
    for primary in (None, {"depot": "D0"}, {"unit": "A1"}):
        made = advise([], primary=primary)
        assert (made.decision, codes(made)[0]) == ("no_advice", "units_unknown")


def test_a_depot_without_reported_units_has_none(advise: Advise, city: SmallCity) -> None:
    made = advise([city.unit("A1", "D1")], threshold_s=-1e4)
    assert made.primary == "A1"
    assert {row["depot"] for row in made.fields["considered"]} == {"D1"}


def test_without_a_free_unit_there_is_no_advice_unless_the_cad_sends_one(
    advise: Advise, city: SmallCity
) -> None:
    busy = city.unit("A1", status="on_scene")
    assert codes(advise([busy]))[0] == "no_unit"
    held = city.unit("A1", promised_to="x", promise="sent", promised_until=NOW + SECOND)
    assert codes(advise([held]))[0] == "last_unit_promised"
    made = advise([city.unit("A1", status="dispatched")], primary={"unit": "A1"})
    assert (made.decision, made.primary, made.second) == ("primary_only", "A1", None)


def test_refusals_name_the_primary_that_goes_nevertheless(advise: Advise) -> None:
    made = advise(primary={"unit": "D0-1"}, ago_s=3600.0)
    assert (made.decision, made.primary) == ("no_advice", "D0-1")
    assert codes(made)[0] == "call_too_old"


def test_old_news_of_units_is_said(advise: Advise, city: SmallCity) -> None:
    old = NOW - 3600 * SECOND
    quiet = tuple(replace(unit, told_at=old) for unit in city.fleet)
    assert "units_stale" in codes(advise(quiet))
    assert "units_stale" not in codes(advise((city.unit("A9", "D2"), *quiet)))  # only changes
    counts = tuple(replace(unit, anonymous=True) for unit in quiet)
    assert "units_stale" in codes(advise((city.unit("A9", "D2"), *counts)))


@pytest.mark.parametrize(
    ("ago_s", "code"), [(1000.0, "call_too_old"), (-100.0, "call_in_future"), (-10.0, "clock_skew")]
)
def test_advice_is_for_now(advise: Advise, ago_s: float, code: str) -> None:
    assert code in codes(advise(ago_s=ago_s))


def test_a_call_that_does_not_say_when_it_came_was_received_now(
    adviser: Adviser, city: SmallCity
) -> None:
    call = city.call(primary={"unit": "D0-1"}).model_copy(update={"received_at": None})
    made = adviser.advise(call, Picture(NOW, city.fleet), NOTHING, time.monotonic() + 60.0)
    told = asked(adviser, city, primary={"unit": "D0-1"})
    earlier = asked(adviser, city, primary={"unit": "D0-1"}, ago_s=300.0)
    arrives = [one.fields["primary"]["arrival"] for one in (made, told, earlier)]
    assert arrives[0] == arrives[1] != arrives[2]


def test_an_uncertain_location_is_said(advise: Advise, city: SmallCity) -> None:
    place = city.place(SCENE).model_copy(update={"accuracy_m": 2000.0})
    call = city.call().model_copy(update={"location": place})
    adviser = city.adviser(traffic={"kind": "forecast"})
    made = adviser.advise(call, Picture(NOW, city.fleet), NOTHING, time.monotonic() + 60)
    assert "location_uncertain" in codes(made)
    assert made.decision != "no_advice"
    off = call.model_copy(update={"location": place.model_copy(update={"lat": 50.0})})
    made = adviser.advise(off, Picture(NOW, city.fleet), NOTHING, time.monotonic() + 60)
    assert codes(made)[0] == "off_map"


def test_a_reported_path_of_the_primary_is_kept(advise: Advise, city: SmallCity) -> None:
    network = city.network
    rng = np.random.default_rng(1)
    path = network.shortest_path(rng.uniform(1, 50, network.num_edges), 0, SCENE)
    edges = path.edges.tolist()
    line = encode_polyline(path.coordinates(network))
    for given in ({"edges": edges}, {"polyline": line}):
        made = advise(primary={"unit": "D0-1", **given})
        assert made.fields["primary"]["route"]["edges"] == edges
        assert "primary_path_unknown" not in codes(made)
    far = encode_polyline(np.array([[114.0, 22.0], [115.0, 23.0], [114.005, 22.005]]))
    for wrong in ({"edges": edges[:-1]}, {"edges": [10**30]}, {"polyline": far}):
        made = advise(primary={"unit": "D0-1", **wrong})
        assert "primary_path_unknown" in codes(made)
        assert made.decision != "no_advice"


def test_the_gap_is_searched_once(advise: Advise, monkeypatch: pytest.MonkeyPatch) -> None:
    searched = count_searches(monkeypatch)
    assert advise().fields["why"]["gap"] is not None
    assert len(searched) == 1


def test_a_forecast_at_its_bound_is_no_advice(city: SmallCity) -> None:
    bounded_model(city.network).save(city.folder / "bounded")
    adviser = city.adviser(model={"folder": "bounded"}, traffic={"kind": "forecast"})
    made = asked(adviser, city, primary={"unit": "D0-1"})
    assert (made.decision, codes(made)[0]) == ("no_advice", "forecast_bounded")
    assert (made.primary, made.second) == ("D0-1", None)


FLEET = {"units": dict.fromkeys(DEPOTS, 3), "calls_per_day": 60, "recall": "none"}


def test_with_a_fleet_a_second_must_save_more_than_its_absence_costs(city: SmallCity) -> None:
    adviser = city.adviser(fleet=FLEET)
    lives = []
    for free in (3, 2, 1):
        units = tuple(city.unit(f"{d}-{n}", d) for d in DEPOTS for n in range(free))
        made = adviser.advise(city.call(), Picture(NOW, units), NOTHING, time.monotonic() + 60.0)
        cost = made.fields["why"]["cost"]
        assert (made.decision == "send_second") == (made.fields["gain_survival"] > cost["lives"])
        lives.append(cost["lives"])
    assert lives[0] < lives[1] < lives[2], "the fewer are free, the more one is missed"


def test_remarks_come_by_how_serious_they_are(city: SmallCity) -> None:
    adviser = city.adviser(traffic={"kind": "forecast"})
    made = asked(
        adviser,
        city,
        KnownWeather(doubts=(("weather_unavailable", "no answer"),)),
        primary={"depot": "D0"},
    )
    assert [one["standing"] for one in made.fields["degraded"]] == [False, False, True]
    found = codes(made)
    assert found[:2] == ["unusual_context", "weather_unavailable"]
    assert {"no_live_traffic", "units_assumed"} <= set(found[2:])


def test_weather_of_the_call_comes_before_our_own(city: SmallCity) -> None:
    adviser = city.adviser(traffic={"kind": "forecast"})
    seen: list[Weather] = []
    look = adviser.assets.traffic.look

    def watching(query: TrafficQuery, wait_s: float | None) -> Situation:
        seen.append(query.context.weather)
        return look(query, wait_s)

    adviser.assets.traffic.look = watching  # type: ignore[method-assign]
    own = Weather(WeatherValue(30.0, "s", "", moment(NOW - 300 * SECOND)))
    known = KnownWeather(own, (("weather_stale", "?"), ("weather_unavailable", "?")))
    made = asked(adviser, city, known, context={"weather": {"rainfall_mm": 12.5}})
    assert (seen[0].temperature_c.value, seen[0].rainfall_mm.value) == (30.0, 12.5)
    assert seen[0].rainfall_mm.source == "request"
    assert made.fields["made_with"]["ages"]["weather_s"] == 300.0
    assert {"weather_stale", "weather_unavailable"} <= set(codes(made))
    whole = {"temperature_c": 20.0, "rainfall_mm": 0.0, "humidity_percent": 50.0,
             "wind_kmh": 5.0, "pressure_hpa": 1010.0}  # fmt: skip
    made = asked(adviser, city, known, context={"weather": whole})
    assert made.fields["made_with"]["ages"]["weather_s"] == 0.0
    assert "weather_stale" not in codes(made)


def test_a_surprise_becomes_no_advice(adviser: Adviser, city: SmallCity) -> None:
    class Broken:
        status = "ready"

        def look(self, query: TrafficQuery, wait_s: float | None) -> Situation:
            raise ZeroDivisionError

    broken = Adviser(replace(adviser.assets, traffic=Broken()))  # type: ignore[arg-type]
    made = asked(broken, city)
    assert (made.decision, codes(made)[0]) == ("no_advice", "internal_error")


def test_a_policy_that_breaks_its_contract_gives_no_advice(
    adviser: Adviser, city: SmallCity
) -> None:
    class Broken:
        name = "broken"

        def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
            sent = Assignment(99, situation.quote(0).path)
            return Decision(self.name, sent, None, 0.0, 0.0, "")

    broken = Adviser(replace(adviser.assets, policy=Broken()))
    assert codes(asked(broken, city))[0] == "not_decided"
    assert codes(asked(broken, city, threshold_s=1.0))[0] == "not_decided"


def test_another_policy_has_arrivals_too(city: SmallCity) -> None:
    made = asked(city.adviser(policy={"kind": "router-dual"}), city)
    assert made.fields["primary"]["arrival"]["turnout_s"] > 0.0
    assert made.fields["gain_s"] is not None


def test_little_time_is_shared_with_the_search(adviser: Adviser, city: SmallCity) -> None:
    call, picture = city.call(), Picture(NOW, city.fleet)
    made = adviser.advise(call, picture, NOTHING, time.monotonic() + 0.001)
    assert made.decision in ("send_second", "primary_only")


def test_a_call_by_region_goes_to_its_territory(city: SmallCity) -> None:
    (city.folder / "areas.csv").write_text("node,depot\n65,D2\n64,D0\n")
    with pytest.warns(UserWarning, match="territory"):
        adviser = city.adviser(city={"territories": "areas.csv"}, policy={"kind": "region"})
    for node, depot in ((65, "D2"), (64, "D0")):
        assert asked(adviser, city, node=node).primary == f"{depot}-1"


# --- closed roads -------------------------------------------------------------------


def driven(made: Advice) -> set[int]:
    routes = [made.fields[who]["route"]["edges"] for who in ("primary", "second")]
    return {edge for edges in routes for edge in edges}


@pytest.mark.parametrize("kind", ["recorded", "forecast"])
def test_advice_keeps_off_closed_roads(city: SmallCity, kind: str) -> None:
    adviser, network = city.adviser(traffic={"kind": kind}), city.network

    def advised(*closures: Closed) -> Advice:
        picture = Picture(NOW, city.fleet, closures)
        call = city.call(threshold_s=0.0)
        return adviser.advise(call, picture, NOTHING, time.monotonic() + 60.0)

    before, closures = advised(), list[Closed]()
    for number in range(4):  # each time, what was advised is closed
        some = [
            edge for edge in driven(advised(*closures))
            if not {int(network.tail[edge]), int(network.head[edge])} & {0, 11, 108, SCENE}
        ]  # fmt: skip
        closures.append(Closed(f"c{number}", "parade", tuple(sorted(some)[number::2])))
        made = advised(*closures)
        assert not driven(made) & {edge for one in closures for edge in one.edges}
        assert made.fields["made_with"]["closures"] == [one.id for one in closures]
        assert "closed_road" not in codes(made)
    assert driven(advised()) == driven(before), "opened again"


def test_an_incident_behind_closed_roads_is_unreachable(advise: Advise, city: SmallCity) -> None:
    around = tuple(np.flatnonzero(city.network.head == SCENE).tolist())
    behind = int(np.flatnonzero(city.network.tail == SCENE)[0])  # no way there drives over it
    closures = Closed("c1", "burst main", around), Closed("c2", "fair", (behind,))
    for primary in (None, {"depot": "D1"}):
        made = advise(closures=closures, primary=primary)
        assert codes(made)[0] == "unreachable"
        words = made.fields["degraded"][0]["words"]
        assert "burst main" in words
        assert "fair" not in words
        assert made.fields["made_with"]["closures"] == ["c1", "c2"]


def test_the_depot_that_is_cut_off_is_left_out(advise: Advise, city: SmallCity) -> None:
    around = tuple(np.flatnonzero(city.network.tail == 0).tolist())  # D0 stands there
    made = advise(closures=(Closed("c1", "flood", around),), threshold_s=0.0)
    assert {made.fields[who]["depot"] for who in ("primary", "second")} == {"D1", "D2"}


def test_a_reported_path_over_a_closed_road_gets_a_remark(advise: Advise, city: SmallCity) -> None:
    path = city.network.shortest_path(city.network.length_m, 0, SCENE)
    primary = {"depot": "D0", "edges": path.edges.tolist()}
    closure = Closed("c1", "parade", (int(path.edges[2]),))
    made = advise(closures=(closure,), primary=primary, threshold_s=0.0)
    assert made.fields["primary"]["route"]["edges"] == path.edges.tolist()
    assert "closed_road" in codes(made)
    assert closure.edges[0] not in made.fields["second"]["route"]["edges"]


# --- policies and thresholds that are refused -----------------------------------------


@pytest.mark.parametrize(
    ("tables", "key"),
    [
        ({"fleet": FLEET | {"units": {"D0": 1}}}, "units of D1"),
        ({"fleet": FLEET | {"price": "none.json"}}, "none.json"),
        ({"policy": {"threshold": "priced"}}, "priced"),
    ],
)
def test_policies_that_cannot_advise_are_refused(city: SmallCity, tables: Any, key: str) -> None:
    with pytest.raises(IdealError, match=key):
        load_assets(city.settings(**tables))


def test_a_threshold_of_the_call_needs_a_policy_that_has_one(
    adviser: Adviser, city: SmallCity
) -> None:
    policy = replace(adviser.assets.policy, threshold=ConstantThreshold(0.0))  # type: ignore[type-var]
    own = Adviser(replace(adviser.assets, policy=policy))
    assert asked(own, city, threshold_s=-1e4).decision == "send_second"
    with pytest.raises(InputError):
        city.settings(policy={}, units={"candidates": 0})
