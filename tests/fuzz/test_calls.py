"""Calls as a CAD might really send them, in all variety: each gets an answer in form."""

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ideal_dispatch.service.http.answer_schemas import Recommendation
from tests.service_town import PATIENCE_S, Served, Town, bearer

NUMBER = count()
DEPOTS = st.sampled_from(["D0", "D1", "D2", "D3", "d0", ""])
PRIMARIES = st.none() | st.fixed_dictionaries(
    {"depot": DEPOTS},
    optional={
        "unit": st.none() | st.text(max_size=20),
        "edges": st.none() | st.lists(st.integers(-5, 500), max_size=12),
        "polyline": st.none() | st.text(max_size=40) | st.just("_ocfCo{vyT?gE?gE"),
    },
)
CALLS = st.fixed_dictionaries(
    {
        "location": st.fixed_dictionaries(
            {"lon": st.floats(113.99, 114.02), "lat": st.floats(21.99, 22.02)},
            optional={"accuracy_m": st.none() | st.floats(0, 2000)},
        ),
        "age_s": st.floats(-120, 1200),
    },
    optional={
        "primary": PRIMARIES,
        "threshold_s": st.none() | st.floats(-100, 100_000),
        "context": st.none()
        | st.fixed_dictionaries(
            {"weather": st.fixed_dictionaries({"rainfall_mm": st.floats(0, 600)})}
        ),
        "note": st.none() | st.text(max_size=50),
    },
)


@given(CALLS)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_call_is_answered(served: Served, town: Town, call: dict[str, Any]) -> None:
    received = datetime.now(UTC) - timedelta(seconds=call.pop("age_s"))
    body = {"call_id": f"fuzz-{next(NUMBER)}", "received_at": received.isoformat(), **call}
    answer = served.ask(body)
    assert answer.status_code in (200, 422), answer.text
    if answer.status_code == 422:
        assert answer.json()["error"]["message"]
        return
    made = Recommendation.model_validate(answer.json())
    assert "internal_error" not in [reason.code for reason in made.degraded], made.degraded
    assert made.degraded or made.decision != "no_advice"
    if made.decision == "send_second":
        assert made.second is not None
        assert made.second.unit is not None
    if made.primary is not None and made.primary.route is not None and made.primary.route.edges:
        assert town.network.path(made.primary.route.edges).destination == made.location.node


def test_a_key_may_be_any_printable_text(served: Served, town: Town) -> None:
    for key in ("a", " " * 3, "x" * 200, "~!@#$%^&*()"):
        answer = served.ask(town.call(f"key {key[:5]}", idempotency_key=key))
        assert answer.status_code == 200
    with httpx.Client(timeout=PATIENCE_S) as client:
        for key in ("é", "x" * 201, ""):
            body = town.call("odd key", idempotency_key=key)
            answer = client.post(
                f"{served.url}/v1/recommendations", json=body, headers=bearer("cad")
            )
            assert answer.status_code == 422
