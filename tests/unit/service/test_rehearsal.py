"""A rehearsal that fails keeps no worker from answering."""

from dataclasses import replace

import pytest

from ideal_dispatch.network import Depot
from ideal_dispatch.service.adviser import Adviser
from ideal_dispatch.service.assets import load_assets
from ideal_dispatch.service.rehearsal import rehearse
from tests.service_town import Town, application, bearer, local


def test_a_rehearsal_loads_what_a_call_needs(town: Town) -> None:
    settings = town.settings("rehearsed.toml")
    assert rehearse(Adviser(load_assets(settings), settings))


def test_a_rehearsal_that_fails_is_logged_and_the_worker_answers(
    town: Town, caplog: pytest.LogCaptureFixture
) -> None:
    settings = town.settings("unrehearsed.toml")
    assets = load_assets(settings)
    assets = replace(assets, depots=(Depot("D" * 201, assets.depots[0].node), *assets.depots[1:]))
    assert not rehearse(Adviser(assets, settings))
    with local(application(settings, assets)) as client:
        assert client.get("/readyz").status_code == 200
        answer = client.post("/v1/recommendations", json=town.call(), headers=bearer("cad"))
        assert answer.json()["decision"] != "no_advice"
    assert "the rehearsal failed" in caplog.text
    assert "at most 200 characters" in caplog.text
