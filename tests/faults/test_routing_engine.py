"""A routing engine that fails costs a bounded time and is replaced by the forecast."""

import json
from typing import Any

import pytest

from ideal_dispatch import RoadNetwork
from tests.faults.service_faults import advised, codes, pooled, words
from tests.polylines import encode_polyline
from tests.service_town import Town, application, local
from tests.stand_in import Answer, Asked, serve
from tests.waiting import wait_for


def routed(network: RoadNetwork, asked: Asked, **more: Any) -> str:
    """What Valhalla says to a question, by free flow."""
    places = json.loads(asked.body)["locations"]
    ends = [network.snap(place["lon"], place["lat"]).node for place in places]
    path = network.shortest_path(network.free_flow_times_s, *ends)
    leg = {"shape": encode_polyline(path.coordinates(network), 6), "maneuvers": []}
    summary = {"time": path.time_s(network.free_flow_times_s)}
    return json.dumps({"trip": {"legs": [leg], "summary": summary, **more}})


def settings(town: Town, name: str, url: str, wait_s: float = 10.0) -> Any:
    traffic = {"kind": "valhalla", "url": url, "wait_s": wait_s, "file": ""}
    return town.settings(name, traffic=traffic)


def test_a_good_engine_for_comparison(town: Town) -> None:
    with (
        serve(lambda asked: Answer(routed(town.network, asked))) as server,
        local(application(settings(town, "good.toml", server.url))) as client,
    ):
        before = len(server.asked)
        made = advised(client, town.call(primary={"depot": "D0"}))
        assert made.decision != "no_advice"
        assert not {"traffic_unavailable", "no_live_traffic"} & set(codes(made))
        assert len(server.asked) - before == 3  # each depot once
        assert made.primary is not None
        assert made.primary.route.quoted_s is not None


@pytest.mark.parametrize(
    ("fault", "answer"),
    [
        ("timeout", Answer("{}", delay_s=3.0)),
        ("drip", Answer("{" + " " * 100 + "}", drip_s=0.3)),
        ("500", Answer("oops", 500)),
        ("429", Answer("{}", 429, {"Retry-After": "30"})),
        ("html", Answer("<html>login</html>")),
        ("empty", Answer("")),
        ("nan", Answer('{"trip": {"summary": {"time": NaN}}}')),
        ("refused", Answer('{"error": "bad key"}', 403)),
    ],
)
def test_routing_engine_fails(town: Town, fault: str, answer: Answer) -> None:
    with (
        serve(lambda _: answer) as server,
        local(application(settings(town, f"engine-{fault}.toml", server.url, 0.4))) as client,
    ):
        for number in range(3):
            made = advised(client, town.call(f"{fault}-{number}"))
            assert made.decision != "no_advice"
            assert "traffic_unavailable" in codes(made)
            assert "the forecast is used" in words(made, "traffic_unavailable")
            assert made.primary is not None


def test_routing_engine_down_is_soon_left_alone(town: Town) -> None:
    with (
        serve(lambda _: Answer("no", 503)) as server,
        local(application(settings(town, "breaker.toml", server.url))) as client,
    ):
        for number in range(6):
            made = advised(client, town.call(f"breaker-{number}"))
        asked = len(server.asked)
        made = advised(client, town.call("breaker-last"))
        assert len(server.asked) == asked
        assert "left alone" in words(made, "traffic_unavailable")


def test_routing_engine_says_that_it_fell_back(town: Town) -> None:
    warned = {"warnings": [{"text": "no live traffic here"}]}
    with (
        serve(lambda asked: Answer(routed(town.network, asked, **warned))) as server,
        local(application(settings(town, "fallback.toml", server.url))) as client,
    ):
        made = advised(client, town.call())
        assert "no live traffic here" in words(made, "router_fell_back")
        assert made.decision != "no_advice"


def test_routing_engine_knows_no_way(town: Town) -> None:
    nowhere = Answer('{"error_code": 442, "error": "No path"}', 400)
    with (
        serve(lambda _: nowhere) as server,
        local(application(settings(town, "noway.toml", server.url))) as client,
    ):
        made = advised(client, town.call(primary={"depot": "D0"}))
        assert "traffic_unavailable" in codes(made) or "unreachable" in codes(made)


def test_routing_engine_draws_a_route_elsewhere(town: Town) -> None:
    far = encode_polyline([[0.0, 0.0], [0.1, 0.1]], 6)
    body = json.dumps({"trip": {"legs": [{"shape": far, "maneuvers": []}], "summary": {"time": 9}}})
    with (
        serve(lambda _: Answer(body)) as server,
        local(application(settings(town, "elsewhere.toml", server.url))) as client,
    ):
        made = advised(client, town.call())
        assert "is not on this network" in words(made, "traffic_unavailable")
        assert made.decision != "no_advice"


def test_health_follows_the_routing_engine(town: Town) -> None:
    """It is known by the calls it was asked about, and that by another process."""
    good = True

    def answer(asked: Asked) -> Answer:
        return Answer(routed(town.network, asked)) if good else Answer("oops", 500)

    with (
        serve(answer) as server,
        pooled(settings(town, "followed.toml", server.url)) as (client, _),
    ):

        def traffic() -> Any:
            return client.get("/healthz").json()["parts"]["traffic"]

        advised(client, town.call("up"))
        wait_for(lambda: traffic() == "ready")
        good = False
        assert "traffic_unavailable" in codes(advised(client, town.call("down")))
        wait_for(lambda: traffic() != "ready")
