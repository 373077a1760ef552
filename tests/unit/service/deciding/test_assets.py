"""What advice is made with: checked when it is loaded, and told apart by its contents."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from ideal_dispatch.context import Context, Weather, WeatherValue
from ideal_dispatch.errors import IdealError, InputError
from ideal_dispatch.forecast import Model
from ideal_dispatch.forecast.response_time import ResponseModel
from ideal_dispatch.network.depot import DepotNames
from ideal_dispatch.service.deciding.assets import RememberedModel, load_assets
from tests.unit.dispatch.worlds import CALENDAR
from tests.unit.service.deciding.conftest import SmallCity

OWN = replace(ResponseModel.published(), source="a log", slack_s=20.0)


def test_a_recording_that_cannot_be_read_is_refused_at_the_start(city: SmallCity) -> None:
    (city.folder / "bad.traffic").write_bytes(b"no recording")
    for name in ("bad.traffic", "none.traffic"):
        with pytest.raises(IdealError, match=name) as refused:
            load_assets(city.settings(traffic={"file": name}))
        assert "\n" not in str(refused.value)


def test_gains_of_replays_are_no_response_times(city: SmallCity) -> None:
    old = '{"kind": "ideal-dispatch expected gain", "version": 1}'
    (city.folder / "gain.json").write_text(old)
    with pytest.raises(IdealError, match="gain.json: .*ideal races") as refused:
        load_assets(city.settings(model={"responses": "gain.json"}))
    assert "\n" not in str(refused.value)
    with pytest.raises(IdealError, match="none.json"):
        load_assets(city.settings(model={"responses": "none.json"}))


def test_response_times_are_those_of_the_model_folder_unless_others_are_named(
    city: SmallCity,
) -> None:
    assert load_assets(city.settings()).responses == ResponseModel.published()
    OWN.save(city.folder / "own.json")
    assert load_assets(city.settings(model={"responses": "own.json"})).responses == OWN
    beside = city.folder / "model" / "response_times.json"
    try:
        OWN.save(beside)
        assert load_assets(city.settings()).responses == OWN
    finally:
        beside.unlink()


def test_checksums_follow_the_contents_of_every_file(city: SmallCity) -> None:
    """Two deciders that differ are told apart by their rows, whatever their files are called."""
    tables = {"city": {"depots": "own.csv"}, "model": {"responses": "own.json"}}
    depots = (city.folder / "depots.csv").read_text()
    (city.folder / "own.csv").write_text(depots)
    OWN.save(city.folder / "own.json")

    def checksums() -> dict[str, str]:
        return load_assets(city.settings(**tables)).checksums

    before = checksums()
    assert checksums() == before
    assert set(before) == {"model", "network", "depots", "responses"}

    def differ() -> set[str]:
        return {part for part, hashed in checksums().items() if before.get(part) != hashed}

    replace(OWN, slack_s=21.0).save(city.folder / "own.json")
    assert differ() == {"responses"}
    OWN.save(city.folder / "own.json")
    place = city.place(37)
    (city.folder / "own.csv").write_text(re.sub("D0,.*", f"D0,{place.lon},{place.lat}", depots))
    assert differ() == {"depots"}
    (city.folder / "own.csv").write_text(depots)
    (city.folder / "areas.csv").write_text("node,depot\n65,D1\n")
    tables["city"]["territories"] = "areas.csv"
    with pytest.warns(UserWarning, match="territory"):
        assert differ() == {"territories"}


# --- depots by name -----------------------------------------------------------------

NAMES = DepotNames(["Kelp Point", "North", "NORTH"], {"A11": "Kelp Point", "N": "NORTH"})


@pytest.mark.parametrize(
    ("word", "name"),
    [("Kelp Point", "Kelp Point"), ("KELP POINT", "Kelp Point"), ("a11", "Kelp Point"),
     ("North", "North"), ("NORTH", "NORTH"), ("n", "NORTH")],
)  # fmt: skip
def test_a_depot_is_found_by_any_case_of_its_name_and_aliases(word: str, name: str) -> None:
    assert NAMES.knows(word)
    assert NAMES.find(word) == name


@pytest.mark.parametrize("word", ["north", "Kelp Pint", ""])
def test_which_depot_is_meant_is_not_guessed(word: str) -> None:
    assert not NAMES.knows(word)
    with pytest.raises(InputError, match=f"^depot .*{word}"):
        NAMES.find(word)


@pytest.mark.parametrize("aliases", [{"X": "Kelp"}, {"North": "Kelp Point"}])
def test_aliases_that_mislead_are_refused(aliases: dict[str, str], city: SmallCity) -> None:
    with pytest.raises(InputError, match=r"\[city.aliases\]"):
        DepotNames(["Kelp Point", "North"], aliases)
    with pytest.raises(InputError, match=r"\[city.aliases\]"):
        load_assets(city.settings(city={"aliases": {"X": "nowhere"}}))


# --- a model that remembers ---------------------------------------------------------

NOON = datetime(2025, 3, 5, 4, tzinfo=UTC)


def context(minutes: float = 0.0, **weather: float) -> Context:
    values = {name: WeatherValue(value, "s", "", NOON) for name, value in weather.items()}
    return CALENDAR.context(NOON + timedelta(minutes=minutes), Weather(**values))


def test_remembered_forecasts_are_those_of_the_model(city: SmallCity) -> None:
    folder, network = city.folder / "model", city.network
    plain, remembered = Model.load(folder), RememberedModel.load(folder)
    assert remembered.checksum == plain.checksum
    for asked in (context(), context(30), context(60), context(rainfall_mm=90.0), context(3)):
        own, kept = (model.forecast(asked, network) for model in (plain, remembered))
        assert np.array_equal(own.embeddings, kept.embeddings)
        assert (own.radius, own.unusual) == (kept.radius, kept.unusual)
    assert remembered.forecast(context(), network) is kept  # the same hour and weather
    with pytest.raises(ValueError, match="read-only"):
        kept.embeddings[0, 0] = 1.0
    for temperature_c in range(12):
        remembered.forecast(context(temperature_c=temperature_c), network)
    assert remembered.forecast(context(), network) is not kept  # what is remembered is bounded
