"""A solver that is slow, does not converge, or is given odd radii."""

import time
from typing import Any

import pytest

from ideal_dispatch.service.app import create_app
from tests.faults.service_faults import advised, codes, words
from tests.service_town import Town, local, with_radius
from tests.unit.dispatch.worlds import random_model


def test_solver_slow(town: Town) -> None:
    """The answer is no_advice, in time, and says why; the next call is answered."""
    with local(create_app(town.settings("slow.toml", server={"deadline_s": 1.0}))) as client:
        adviser = client.service.adviser
        advise = adviser.advise

        def hanging(*given: Any) -> Any:
            time.sleep(5.0)  # beyond the deadline and the slack
            return advise(*given)

        setattr(adviser, "advise", hanging)  # noqa: B010
        made = advised(client, town.call("slow"))
        assert made.decision == "no_advice"
        assert words(made, "late") == "no answer within the 1 s there are"
        setattr(adviser, "advise", advise)  # noqa: B010
        assert advised(client, town.call("next")).decision != "no_advice"


def test_solver_not_converged(town: Town) -> None:
    """A search without time gives an open interval, and the advice stands on the gain."""
    policy = {"time_limit_s": 0.0, "method": "certified"}
    with local(create_app(town.settings("open.toml", policy=policy))) as client:
        for threshold_s, decision in ((5.0, "send_second"), (300.0, "primary_only")):
            made = advised(client, town.call(f"over {threshold_s}", threshold_s=threshold_s))
            assert made.gap is not None
            assert made.gap.status == "open"
            assert made.gap.upper_s is not None
            assert made.gap.lower_s < made.gap.upper_s
            assert made.gain_s is not None
            assert 5.0 < made.gain_s < 300.0
            assert made.decision == decision


@pytest.mark.parametrize("radius", [0.0, 1e-12, 5.0, 500.0])
def test_radius_zero_or_huge(town: Town, radius: float) -> None:
    with_radius(random_model(town.network), radius).save(town.folder / "radius-model")
    settings = town.settings("radius.toml", model={"folder": "radius-model"})
    with local(create_app(settings)) as client:
        made = advised(client, town.call(f"r{radius}"))
        assert made.decision != "no_advice"
        assert made.gap is not None
        if radius == 0.0:
            assert made.gap.status == "exact"


def test_starting_is_said_so(town: Town) -> None:
    """A call before the kernels are loaded gets an honest answer at once."""
    with local(create_app(town.settings("starting.toml"))) as client:
        client.service.warm.clear()
        made = advised(client, town.call())
        assert made.decision == "no_advice"
        assert codes(made) == ["starting"]
        assert client.get("/readyz").status_code == 503
        client.service.warm.set()
        assert client.get("/readyz").status_code == 200
        assert client.service.engine.inside == 0
