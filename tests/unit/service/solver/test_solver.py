"""A rehearsal that fails keeps no worker from answering."""

from dataclasses import replace

import pytest

from ideal_dispatch.service import logs
from ideal_dispatch.service.solver.adviser import Adviser
from ideal_dispatch.service.solver.assets import load_assets
from ideal_dispatch.service.solver.solver import rehearse
from tests.service_town import Town, application, bearer, local


def test_a_rehearsal_loads_what_a_call_needs(town: Town) -> None:
    settings = town.settings("rehearsed.toml")
    assert rehearse(Adviser(load_assets(settings), settings))


def test_a_rehearsal_leaves_no_call_in_the_log(town: Town) -> None:
    settings, before = town.settings("rehearsed.toml"), logs.call_id.get()
    rehearse(Adviser(load_assets(settings), settings))
    assert logs.call_id.get() == before


def test_a_rehearsal_that_fails_is_logged_and_the_worker_answers(
    town: Town, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = town.settings("unrehearsed.toml")
    assets = load_assets(settings)
    assert not rehearse(Adviser(replace(assets, depots=assets.depots[:1]), settings))
    monkeypatch.setattr("ideal_dispatch.service.solver.solver.Call", None)
    with local(application(settings, assets)) as client:
        assert client.get("/readyz").status_code == 200
        answer = client.post("/v1/recommendations", json=town.call(), headers=bearer("cad"))
        assert answer.json()["decision"] != "no_advice"
    assert caplog.text.count("the rehearsal failed") >= 2
    assert "not enough values to unpack" in caplog.text
