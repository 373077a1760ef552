"""A routing engine that fails costs a bounded time and is replaced by the forecast."""

import json
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from tests.polylines import encode_polyline
from tests.service_town import Local, Town, application, bearer, codes, local
from tests.stand_in import Answer, Asked, serve


def routed(network: RoadNetwork, asked: Asked, **more: Any) -> str:
    """What Valhalla answers to a question, by free flow."""
    places = json.loads(asked.body)["locations"]
    ends = [network.snap(place["lon"], place["lat"]).node for place in places]
    path = network.shortest_path(network.free_flow_times_s, *ends)
    leg = {"shape": encode_polyline(path.coordinates(network), 6), "maneuvers": []}
    summary = {"time": path.time_s(network.free_flow_times_s)}
    return json.dumps({"trip": {"legs": [leg], "summary": summary, **more}})


def settings(town: Town, name: str, url: str, wait_s: float = 10.0) -> Any:
    traffic = {"kind": "valhalla", "url": url, "wait_s": wait_s, "file": ""}
    return town.settings(f"engine-{name}.toml", traffic=traffic)


def health(client: Local) -> Any:
    return client.get("/healthz").json()["parts"]["traffic"]


def test_an_engine_is_asked_once_a_depot_and_health_follows_it(town: Town) -> None:
    good = True

    def answer(asked: Asked) -> Answer:
        warned = {"warnings": [{"text": "no live traffic here"}]}
        return Answer(routed(town.network, asked, **warned)) if good else Answer("oops", 500)

    with (
        serve(answer) as server,
        local(application(settings(town, "good", server.url))) as client,
    ):
        client.report()
        before = len(server.asked)
        made = client.advice(town.call("up", primary={"depot": "D0"}))
        assert made["decision"] != "no_advice"
        assert "router_fell_back" in codes(made)
        assert not {"traffic_unavailable", "no_live_traffic"} & {*codes(made)}
        assert len(server.asked) - before == 3
        assert all(one["quote_s"] > 0.0 for one in made["considered"])
        assert health(client) == "ready"
        good = False
        assert "traffic_unavailable" in codes(client.advice(town.call("down")))
        assert health(client) != "ready"
        for number in range(6):
            client.advice(town.call(f"breaker-{number}"))
        asked = len(server.asked)
        client.advice(town.call("breaker-last"))
        assert len(server.asked) == asked, "it is left alone for a while"


FAR = encode_polyline([[0.0, 0.0], [0.1, 0.1]], 6)


@pytest.mark.parametrize(
    ("fault", "answer"),
    [
        ("timeout", Answer("{}", delay_s=3.0)),
        ("drip", Answer("{" + " " * 100 + "}", drip_s=0.3)),
        ("429", Answer("{}", 429, {"Retry-After": "30"})),
        ("html", Answer("<html>login</html>")),
        ("empty", Answer("")),
        ("nan", Answer('{"trip": {"summary": {"time": NaN}}}')),
        ("refused", Answer('{"error": "bad key"}', 403)),
        ("no way", Answer('{"error_code": 442, "error": "No path"}', 400)),
        ("elsewhere", Answer(json.dumps({
            "trip": {"legs": [{"shape": FAR, "maneuvers": []}], "summary": {"time": 9}},
        }))),
    ],
)  # fmt: skip
def test_routing_engine_fails(town: Town, fault: str, answer: Answer) -> None:
    with (
        serve(lambda _: answer) as server,
        local(application(settings(town, fault.replace(" ", "-"), server.url, 0.4))) as client,
    ):
        client.report()
        for number in range(2):
            made = client.advice(town.call(f"{fault}-{number}"))
            assert made["decision"] != "no_advice"
            assert "traffic_unavailable" in codes(made)
            assert made["primary"] is not None


@pytest.mark.parametrize("obeys", [True, False])
def test_a_routing_engine_that_drives_over_closed_roads(town: Town, obeys: bool) -> None:
    """One that obeys is believed; one that does not is replaced by the forecast, for that call."""

    def answer(asked: Asked) -> Answer:
        network, question = town.network, json.loads(asked.body)
        if obeys:
            places = [(one["lon"], one["lat"]) for one in question.get("exclude_locations", [])]
            spots = network.snapper.plane.to_metres(np.array(places).reshape(-1, 2))
            network = network.closing(network.snapper.edges_within(spots, 1.0)[1].tolist())
        return Answer(routed(network, asked))

    with (
        serve(answer) as server,
        local(application(settings(town, f"closing-{obeys}", server.url))) as client,
    ):
        client.report()
        before = client.advice(town.call("open"))
        assert "closed_road" not in codes(before)
        edge = before["primary"]["route"]["edges"][1]
        closed = client.post("/v1/closures", json={"edges": [edge]}, headers=bearer("cad")).json()
        around = client.advice(town.call("closed"))
        assert around["made_with"]["closures"] == [closed["id"]]
        assert edge not in around["primary"]["route"]["edges"]
        assert ("closed_road" in codes(around)) is not obeys
        assert health(client) == "ready"
        client.delete(f"/v1/closures/{closed['id']}", headers=bearer("cad"))
        again = client.advice(town.call("open again"))
        assert "closed_road" not in codes(again)
        assert again["primary"]["route"]["edges"] == before["primary"]["route"]["edges"]
