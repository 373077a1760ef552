"""Advice without HTTP: from a request to an answer that keeps the API's form."""

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from ideal_dispatch.context import Weather, WeatherValue
from ideal_dispatch.dispatch import Assignment, Decision, Situation
from ideal_dispatch.dispatch.price import UNCALIBRATED
from ideal_dispatch.errors import IdealError, InputError
from ideal_dispatch.fleet.calibration import Calibration
from ideal_dispatch.service.http.answer_schemas import Recommendation
from ideal_dispatch.service.http.schemas import RecommendationRequest
from ideal_dispatch.service.solver.adviser import Adviser
from ideal_dispatch.service.solver.assets import load_assets
from ideal_dispatch.service.solver.case import Case
from ideal_dispatch.service.solver.messages import KnownUnits, KnownWeather
from tests.polylines import encode_polyline
from tests.service_town import DEPOTS, Town, codes
from tests.unit.dispatch.worlds import bounded_model, count_searches

NOTHING = KnownWeather()
Advise = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def adviser(town: Town) -> Adviser:
    settings = town.settings()
    assets = load_assets(settings)
    assets.traffic.prepare()
    return Adviser(assets, settings)


@pytest.fixture
def advise(adviser: Adviser, town: Town) -> Advise:
    def asked(node: int = 65, units: KnownUnits | None = None, **changes: Any) -> dict[str, Any]:
        request = RecommendationRequest.model_validate(town.call("x", node, **changes)).call()
        known = units or KnownUnits({}, None)
        return adviser.advise(request, known, NOTHING, time.monotonic() + 60.0)

    return asked


def completed(advice: dict[str, Any]) -> Recommendation:
    """The advice with what the service adds, checked against the API's form."""
    now = datetime.now(UTC).isoformat()
    return Recommendation.model_validate({
        "id": "1", "call_id": "x", "revision": 1, "revision_of": None,
        "asked_at": now, "created_at": now, "expires_at": now,
        "received_at": now, "note": None, "simulated": False,
        "versions": dict.fromkeys(("software", "model", "network", "configuration"), "1"),
        "latency_ms": 1.0, "response": None, **advice,
    })  # fmt: skip


def test_an_advice_has_all_its_parts(advise: Advise, town: Town) -> None:
    told = completed(advise(threshold_s=0.0))
    assert told.decision == "send_second"
    assert told.headline.startswith("Send a second ambulance from D")
    assert told.primary is not None
    assert told.second is not None
    assert told.primary.chosen_by == "router"
    assert told.primary.route.edges != told.second.route.edges
    assert told.location.node == 65
    for one in (told.primary.route, told.second.route):
        path = town.network.path(one.edges)
        assert path.destination == 65
        assert one.length_m == pytest.approx(path.length_m(town.network), abs=0.1)
        ends = town.place(path.origin), town.place(65)
        drawn = one.geojson.coordinates
        for point, end in zip((drawn[0], drawn[-1]), ends, strict=True):
            assert point == pytest.approx((end["lon"], end["lat"]), abs=1e-5)
    shared = set(told.primary.route.edges) & set(told.second.route.edges)
    assert set(told.second.shared_edges) == shared
    assert told.gain_s is not None
    assert told.gain_s > 0.0
    assert told.gap is not None
    assert told.gap.upper_s is not None
    assert told.gap.lower_s <= told.gap.upper_s
    assert told.data_ages.traffic_s is not None
    assert told.data_ages.traffic_s < 60.0
    assert told.explanation.text


def test_the_gap_is_searched_once(advise: Advise, monkeypatch: pytest.MonkeyPatch) -> None:
    searched = count_searches(monkeypatch)
    assert completed(advise()).gap is not None
    assert len(searched) == 1


@pytest.mark.parametrize("policy", [{}, {"report_gap": False, "seconds": ["other-depot"]}])
def test_a_forecast_at_its_bound_is_no_advice(town: Town, policy: dict[str, Any]) -> None:
    """A model whose times are all held at what can be driven says nothing about these roads."""
    bounded_model(town.network).save(town.folder / "bounded")
    settings = town.settings(
        "bounded.toml", model={"folder": "bounded"}, traffic={"kind": "forecast"}, policy=policy
    )
    adviser = Adviser(load_assets(settings), settings)
    request = RecommendationRequest.model_validate(town.call("x", 65)).call()
    advice = adviser.advise(request, KnownUnits({}, None), NOTHING, time.monotonic() + 60.0)
    assert completed(advice).decision == "no_advice"
    assert advice["degraded"][0]["code"] == "forecast_bounded"
    assert "sits at the bound of what can be driven" in advice["degraded"][0]["words"]
    assert codes(advice)[1] == "unusual_context"


def test_seconds_by_road_add_up_to_the_lead_of_the_second(advise: Advise) -> None:
    told = completed(advise(threshold_s=0.0))
    assert told.explanation.seconds_from == "router"
    roads = sum(road.seconds for road in told.explanation.roads)
    assert told.nominal.primary_s is not None
    assert told.nominal.second_s is not None
    assert roads == pytest.approx(told.nominal.primary_s - told.nominal.second_s, abs=1.5)


def test_the_explanation_is_of_the_second_that_is_advised(advise: Advise, town: Town) -> None:
    others = 0
    for node in range(3, town.network.num_nodes):
        told = completed(advise(node, primary={"depot": "D0"}, threshold_s=0.0))
        assert told.primary is not None
        assert told.second is not None
        why, second = told.explanation, told.second
        assert why.shared_m == pytest.approx(second.overlap * second.route.length_m, abs=0.5)
        assert f"The two ways share {(why.shared_m or 0.0) / 1000:.1f} km." in why.text
        for parts, one in ((why.primary_only, told.primary), (why.second_only, second)):
            alone = [e for e in one.route.edges if e not in second.shared_edges]
            assert {part.name for part in parts} == {town.network.name[e] for e in alone}
            metres = sum(part.length_m for part in parts)
            assert metres == pytest.approx(town.network.length_m[alone].sum(), abs=1.0)
        if why.other_way is not None:
            others += 1
            words = f"belongs to another way: from {why.other_way.depot}"
            assert words in why.text
    assert others, "a gap whose way is not the second's"


def test_a_unit_that_is_sooner_than_the_primary_is_named(advise: Advise) -> None:
    told = completed(advise(14, primary={"depot": "D1"}, threshold_s=3600.0))
    assert told.decision == "primary_only"
    assert told.primary is not None
    assert told.primary.depot == "D1"
    assert told.sooner_unit is not None
    assert told.second is not None
    assert told.sooner_unit.depot == told.second.depot == "D0"
    assert told.sooner_unit.units == told.second.units
    assert told.sooner_unit.seconds > 30.0
    assert 0.8 <= told.sooner_unit.probability <= 1.0
    for others in ({"primary": {"depot": "D0"}}, {}):
        assert completed(advise(14, **others)).sooner_unit is None
    assert completed(advise(14, primary={"depot": "nowhere"})).sooner_unit is None
    received_at = (datetime.now(UTC) - timedelta(seconds=600)).isoformat()
    long_gone = advise(14, primary={"depot": "D1"}, threshold_s=3600.0, received_at=received_at)
    assert completed(long_gone).sooner_unit is None, "the primary has been there for long"


def test_a_high_threshold_keeps_the_second_at_home(advise: Advise) -> None:
    told = completed(advise(threshold_s=3600.0))
    assert told.decision == "primary_only"
    assert told.second is not None  # it is still shown
    assert told.threshold is not None
    assert (told.threshold.seconds, told.threshold.source) == (3600.0, "request")
    usual = completed(advise())
    assert usual.threshold is not None
    assert usual.threshold.source == "configuration"
    assert "of survival" in usual.threshold.words


FLEET = {"units": dict.fromkeys(DEPOTS, 3), "calls_per_day": 60, "recall": "none"}


def served_by(town: Town, name: str, **tables: Any) -> Advise:
    """The adviser of other settings, asked about units that are told with the call."""
    settings = town.settings(name, **tables)
    assets = load_assets(settings)
    assets.traffic.prepare()
    adviser = Adviser(assets, settings)

    def asked(free: int, **changes: Any) -> dict[str, Any]:
        depots = [{"name": name, "units": free} for name in DEPOTS]
        told = town.call("x", 65, depots=depots, **changes)
        call = RecommendationRequest.model_validate(told).call()
        return adviser.advise(call, KnownUnits({}, None), NOTHING, time.monotonic() + 60.0)

    return asked


def test_with_a_fleet_a_second_must_save_more_than_its_absence_costs(town: Town) -> None:
    asked = served_by(town, "fleet.toml", fleet=FLEET)
    lives = []
    for free in (3, 2, 1):
        told = completed(asked(free))
        assert told.cost is not None
        assert told.threshold is not None
        assert told.gain_survival is not None
        assert told.cost.source == "fleet"
        assert told.cost.hold_s is not None
        assert told.cost.hold_s > 600.0, "nobody stands it down"
        assert "it costs the others" in told.threshold.words
        assert (told.decision == "send_second") == (told.gain_survival > told.cost.lives)
        lives.append(told.cost.lives)
    assert lives[0] < lives[1] < lives[2], "the fewer are free, the more one is missed"
    recalled = served_by(town, "recall.toml", fleet=FLEET | {"recall": "first arrival"})
    shorter = completed(recalled(2))
    assert shorter.cost is not None
    assert shorter.cost.lives < lives[1]


def test_what_replaces_the_price_of_the_fleet(town: Town) -> None:
    asked = served_by(town, "fleet.toml", fleet=FLEET)
    assert completed(asked(2, threshold_s=10.0)).cost is None, "the request has a threshold"
    fixed = served_by(town, "both.toml", fleet=FLEET, policy={"threshold": {"cost": 0.002}})
    told = completed(fixed(2))
    assert told.cost is not None
    assert (told.cost.lives, told.cost.hold_s, told.cost.source) == (0.002, None, "fixed")
    said = served_by(town, "said.toml", fleet=FLEET, policy={"threshold": "priced"})
    assert said(2)["cost"] == asked(2)["cost"]


def test_without_a_fleet_the_cost_is_fixed(advise: Advise) -> None:
    told = completed(advise())
    assert told.cost is not None
    assert (told.cost.lives, told.cost.hold_s, told.cost.source) == (0.001, None, "fixed")
    assert completed(advise(primary={"depot": "nowhere"})).cost is None


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"fleet": FLEET | {"units": {"D0": 1}}}, "units of D1 are missing; give 0 where it has"),
        ({"fleet": FLEET | {"units": dict.fromkeys((*DEPOTS, "D7"), 1)}},
         "units of D7: no such depot; there are D0, D1, D2"),
        ({"fleet": FLEET | {"curve": "nobody-1900"}}, "survival curve 'nobody-1900': choose one"),
        ({"fleet": FLEET | {"price": "none.json"}}, "none.json: no such file"),
        ({"fleet": FLEET | {"price": "depots.csv"}},
         "depots.csv: truncated or damaged file of prices .* make one with `ideal fleet price`"),
        ({"policy": {"threshold": "priced"}}, 'threshold "priced": no fleet is known'),
    ],
)  # fmt: skip
def test_fleets_that_cannot_be_priced(town: Town, tables: Any, words: str) -> None:
    with pytest.raises(IdealError, match=words):
        load_assets(town.settings("unpriced.toml", **tables))


def test_a_calibration_changes_prices_and_their_hash(town: Town) -> None:
    double = tuple(2.0 * factor for factor in UNCALIBRATED)
    found = Calibration("town", DEPOTS, 60.0, 0, {"deaths": double, "late": UNCALIBRATED}, ())
    found.save(town.folder / "price.json")
    asked = [served_by(town, "fleet.toml", fleet=FLEET | own)
             for own in ({}, {"price": "price.json"})]  # fmt: skip
    usual, twice = (completed(one(2)) for one in asked)
    assert usual.cost is not None
    assert twice.cost is not None
    assert twice.cost.lives == pytest.approx(2.0 * usual.cost.lives, rel=1e-3)
    hashes = [load_assets(town.settings("fleet.toml", fleet=FLEET | own)).checksums["fleet"]
              for own in ({}, {}, {"price": "price.json"})]  # fmt: skip
    assert hashes[0] == hashes[1] != hashes[2]


def test_the_primary_that_the_agency_sent_is_kept(advise: Advise) -> None:
    for depot in ("D0", "D1", "D2"):
        told = completed(advise(primary={"depot": depot, "unit": "A1"}))
        assert told.primary is not None
        assert (told.primary.depot, told.primary.unit) == (depot, "A1")
        assert told.primary.chosen_by == "cad"


def slow_path(town: Town, origin: int, destination: int) -> Any:
    """A path that no router would choose."""
    rng = np.random.default_rng(3)
    return town.network.shortest_path(
        rng.uniform(1, 60, town.network.num_edges), origin, destination
    )


def test_the_path_that_the_agency_told_is_kept(advise: Advise, town: Town) -> None:
    path = slow_path(town, 0, 65)
    given = [
        {"depot": "D0", "edges": path.edges.tolist()},
        {"depot": "D0", "polyline": encode_polyline(path.coordinates(town.network))},
    ]
    for primary in given:
        told = completed(advise(primary=primary))
        assert told.primary is not None
        assert told.primary.route.edges == path.edges.tolist()
        assert "primary_path_unknown" not in codes(advise(primary=primary))
    router = completed(advise(primary={"depot": "D0"}))
    assert router.nominal.primary_s is not None
    assert told.nominal.primary_s is not None
    assert told.nominal.primary_s > router.nominal.primary_s


def test_units_come_from_the_request_or_from_what_was_told(advise: Advise, town: Town) -> None:
    only_far = [{"name": "D2", "units": 1}]
    told = completed(advise(primary={"depot": "D0"}, depots=only_far, threshold_s=-1.0))
    assert told.second is not None
    assert (told.second.depot, told.second.units) == ("D2", 1)
    assert told.data_ages.units_s == 0.0
    known = KnownUnits({"D0": 0, "D1": 3, "D2": 0}, 12.0)
    told = completed(advise(primary={"depot": "D0"}, depots=None, units=known, threshold_s=-1.0))
    assert told.second is not None
    assert (told.second.depot, told.second.units) == ("D1", 3)
    assert told.data_ages.units_s == 12.0
    default = completed(advise(depots=None))
    assert default.decision != "no_advice"


@pytest.mark.parametrize(
    ("told_s", "second", "assumed"),
    [(-60.0, None, True), (None, None, True), (30.0, "D0", False)],
)
def test_the_primary_is_taken_off_counts_older_than_the_call(
    advise: Advise, told_s: float | None, second: str | None, assumed: bool
) -> None:
    """Its unit was still free then; it cannot be its own second."""
    now = datetime.now(UTC)
    told_at = {} if told_s is None else {"D0": now + timedelta(seconds=told_s)}
    known = KnownUnits({"D0": 1, "D1": 0, "D2": 0}, 1.0, told_at)
    path = {"received_at": now.isoformat(), "depots": None, "threshold_s": -1e4}
    advice = advise(primary={"depot": "D0"}, units=known, **path)
    told = completed(advice)
    assert (None if told.second is None else told.second.depot) == second
    assert ("units_assumed" in codes(advice)) == assumed
    elsewhere = advise(primary={"depot": "D1"}, units=known, **path)
    assert "units_assumed" not in codes(elsewhere)  # nothing to take off
    assert elsewhere["second"]["depot"] == "D0"
    assert "units_assumed" not in codes(advise(units=known, **path))


def test_old_counts_of_units_are_said_to_be_old(advise: Advise) -> None:
    known = KnownUnits({"D0": 1, "D1": 1}, 3600.0)
    advice = advise(depots=None, units=known)
    assert "units_stale" in codes(advice)
    assert advice["decision"] != "no_advice"


def test_counts_that_nobody_told_are_said_to_be_unknown(advise: Advise) -> None:
    advice = advise(depots=None, units=KnownUnits({"D1": 1}, 1.0))
    assert "units_unknown" in codes(advice)
    words = advice["degraded"][-1]["words"]
    assert "nobody told free units of D0, D2; 2 each are assumed" in words
    for known in ({"depots": None, "units": KnownUnits({"D0": 1, "D1": 1, "D2": 1}, 1.0)}, {}):
        assert "units_unknown" not in codes(advise(**known))


def test_remarks_come_by_how_serious_they_are(town: Town) -> None:
    settings = town.settings(traffic={"kind": "forecast"})
    adviser = Adviser(load_assets(settings), settings)
    place = town.place(65) | {"accuracy_m": 5000.0}
    body = town.call(location=place, depots=None, primary={"depot": "D0"})
    request = RecommendationRequest.model_validate(body).call()
    known = KnownWeather(problem="no answer")
    advice = adviser.advise(request, KnownUnits({}, None), known, time.monotonic() + 60)
    told = completed(advice).degraded
    assert [one.code for one in told] == [
        "unusual_context", "location_uncertain", "weather_unavailable", "no_live_traffic",
    ]  # fmt: skip
    assert told[-1].also == ("units_unknown", "units_assumed")
    assert [one.standing for one in told] == [False, False, False, True]


def test_the_cause_of_no_advice_comes_first(advise: Advise, town: Town) -> None:
    place = town.place(65) | {"accuracy_m": 5000.0}
    told = completed(advise(location=place, primary={"depot": "nowhere"}))
    assert [one.code for one in told.degraded] == ["unknown_depot", "location_uncertain"]
    assert told.headline == f"No advice: {told.degraded[0].words}"


def test_a_second_from_the_same_depot_may_be_the_last_resort(advise: Advise) -> None:
    told = completed(
        advise(primary={"depot": "D0"}, depots=[{"name": "D0", "units": 1}], threshold_s=-1.0)
    )
    assert told.decision == "send_second"
    assert told.second is not None
    assert told.second.depot == "D0"
    assert told.headline == "Send a second ambulance from D0, by another road"


def test_weather_of_the_request_comes_before_our_own(town: Town) -> None:
    settings = town.settings(traffic={"kind": "forecast"})
    assets = load_assets(settings)
    now = datetime.now(UTC)
    own = Weather(WeatherValue(30.0, "s", "", now - timedelta(minutes=5)))
    known = KnownWeather(own, 300.0, "", stale=False)
    seen: list[Weather] = []
    look = assets.traffic.look

    def watching(case: Case, wait_s: float) -> Situation:
        seen.append(case.weather)
        return look(case, wait_s)

    assets.traffic.look = watching  # type: ignore[method-assign]
    adviser = Adviser(assets, settings)
    body = town.call("x", context={"weather": {"rainfall_mm": 12.5}})
    request = RecommendationRequest.model_validate(body).call()
    advice = adviser.advise(request, KnownUnits({}, None), known, time.monotonic() + 60)
    assert seen[0].temperature_c.value == 30.0
    assert (seen[0].rainfall_mm.value, seen[0].rainfall_mm.source) == (12.5, "request")
    assert advice["data_ages"]["weather_s"] == pytest.approx(300.0, abs=30.0)
    assert "no_live_traffic" in codes(advice)


def test_weather_told_whole_is_fresh_whatever_ours_is(town: Town) -> None:
    settings = town.settings(traffic={"kind": "forecast"})
    own = Weather(WeatherValue(30.0, "s", "", datetime.now(UTC) - timedelta(minutes=5)))
    known = KnownWeather(own, 300.0, "no answer", stale=True)
    adviser = Adviser(load_assets(settings), settings)
    whole = {"temperature_c": 20.0, "rainfall_mm": 0.0, "humidity_percent": 50.0,
             "wind_kmh": 5.0, "pressure_hpa": 1010.0}  # fmt: skip
    part = {"temperature_c": 20.0}
    for given, age_s, said in ((whole, 0.0, False), (part, 0.0, True), (None, 300.0, True)):
        request = RecommendationRequest.model_validate(town.call(context={"weather": given})).call()
        advice = adviser.advise(request, KnownUnits({}, None), known, time.monotonic() + 60)
        assert advice["data_ages"]["weather_s"] == age_s
        assert ({"weather_stale", "weather_unavailable"} <= set(codes(advice))) == said


@pytest.mark.parametrize("what", ["gap", "both"])
def test_what_the_desk_cannot_show_does_not_decide(town: Town, what: str) -> None:
    settings = town.settings(policy={"decide_by": what})
    with pytest.raises(InputError, match=f"decide_by '{what}': the service decides by \"gain\""):
        Adviser(load_assets(settings), settings)


def test_a_surprise_becomes_no_advice(adviser: Adviser, town: Town) -> None:
    class Broken:
        status = "ready"

        def look(self, case: Case, wait_s: float) -> Situation:
            raise ZeroDivisionError("what")

    broken = Adviser(replace(adviser.assets, traffic=Broken()), adviser.settings)  # type: ignore[arg-type]
    request = RecommendationRequest.model_validate(town.call()).call()
    told = completed(broken.advise(request, KnownUnits({}, None), NOTHING, time.monotonic() + 60))
    assert told.decision == "no_advice"
    assert told.degraded[0].code == "internal_error"
    assert "ZeroDivisionError" in told.degraded[0].words
    assert told.headline.startswith("No advice: a fault of this program")


def test_a_policy_that_breaks_its_contract_gives_no_advice(adviser: Adviser, town: Town) -> None:
    class Broken:
        name = "broken"

        def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
            sent = Assignment(99, situation.quote(0).path)
            return Decision(self.name, sent, None, 0.0, 0.0, "")

    broken = Adviser(replace(adviser.assets, policy=Broken()), adviser.settings)
    request = RecommendationRequest.model_validate(town.call()).call()
    told = completed(broken.advise(request, KnownUnits({}, None), NOTHING, time.monotonic() + 60))
    assert (told.decision, told.degraded[0].code) == ("no_advice", "not_decided")
    assert "station 99, which is not available" in told.degraded[0].words


def test_an_uncertain_location_is_said_to_be_uncertain(advise: Advise, town: Town) -> None:
    place = {**town.place(65), "accuracy_m": 2000.0}
    advice = advise(location=place)
    assert "location_uncertain" in codes(advice)
    assert advice["decision"] != "no_advice"


def test_little_time_is_shared_with_the_search(adviser: Adviser, town: Town) -> None:
    request = RecommendationRequest.model_validate(town.call()).call()
    told = completed(
        adviser.advise(request, KnownUnits({}, None), NOTHING, time.monotonic() + 0.001)
    )
    assert told.decision in ("send_second", "primary_only")


def test_a_call_by_region_goes_to_its_territory(town: Town) -> None:
    (town.folder / "areas.csv").write_text("node,depot\n65,D2\n64,D0\n")
    settings = town.settings(
        "region.toml", city={"territories": "areas.csv"}, policy={"kind": "region"}
    )
    with pytest.warns(UserWarning, match="nodes in no territory"):
        assets = load_assets(settings)
    assets.traffic.prepare()
    for node, depot in ((65, "D2"), (64, "D0")):
        request = RecommendationRequest.model_validate(town.call("x", node)).call()
        known = KnownUnits({}, None)
        said = Adviser(assets, settings).advise(request, known, NOTHING, time.monotonic() + 60.0)
        assert said["primary"]["depot"] == depot
