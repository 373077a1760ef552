"""What advice is made with: checked when it is loaded, and told apart by its contents."""

import re
import shutil
from dataclasses import replace

import pytest

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.solver.assets import load_assets
from tests.service_town import SolverThreads, Town
from tests.unit.dispatch.worlds import GAIN, random_drift


def test_a_depot_that_no_request_could_name_is_refused(town: Town) -> None:
    rows = (town.folder / "depots.csv").read_text()
    for name, why in (("D" * 201, "at most 200 characters"), ("D\0", "a NUL or half a character")):
        (town.folder / "name.csv").write_text(rows.replace("D0,", f"{name},"))
        with pytest.raises(InputError, match=f"its name cannot be used: .*{why}") as caught:
            load_assets(town.settings("name.toml", city={"depots": "name.csv"}))
        assert "\n" not in str(caught.value)
    (town.folder / "name.csv").write_text(rows.replace("D0,", f"{'D' * 200},"))
    load_assets(town.settings("name.toml", city={"depots": "name.csv"}))


def test_versions_follow_the_contents_of_every_file(town: Town) -> None:
    """Two deciders that differ are told apart by their rows, whatever their files are called."""
    model, city = {"gain": "own-gain.json", "drift": "own-drift"}, {"depots": "own.csv"}

    def versions() -> dict[str, str]:
        settings = town.settings("versions.toml", model=model, city=city)
        facts = SolverThreads(settings, load_assets(settings)).facts
        return {**facts.checksums, "configuration": settings.checksum}

    depots = (town.folder / "depots.csv").read_text()
    (town.folder / "own.csv").write_text(depots)
    GAIN.save(town.folder / "own-gain.json")
    random_drift(town.network).save(town.folder / "own-drift")
    before = versions()
    assert versions() == before
    assert set(before) == {"model", "network", "depots", "gain", "drift", "configuration"}

    def differ() -> set[str]:
        now = versions()
        return {part for part, hashed in before.items() if now[part] != hashed}

    replace(GAIN, coefficients=(0.5, 0.4, 0.1, 0.2)).save(town.folder / "own-gain.json")
    assert differ() == {"gain"}
    GAIN.save(town.folder / "own-gain.json")
    shutil.rmtree(town.folder / "own-drift")
    random_drift(town.network, seed=2).save(town.folder / "own-drift")
    assert differ() == {"drift"}
    before = versions()
    place = town.place(37)
    moved = re.sub("D0,.*", f"D0,{place['lon']},{place['lat']}", depots)
    (town.folder / "own.csv").write_text(moved)
    assert differ() == {"depots"}
    (town.folder / "own.csv").write_text(depots.replace("D0,", "D9,"))
    assert differ() == {"depots"}
    (town.folder / "own.csv").write_text(depots)
    (town.folder / "areas.csv").write_text("node,depot\n65,D1\n")
    city["territories"] = "areas.csv"
    with pytest.warns(UserWarning, match="nodes in no territory"):
        before = versions()
    (town.folder / "areas.csv").write_text("node,depot\n65,D0\n")
    with pytest.warns(UserWarning, match="nodes in no territory"):
        assert differ() == {"territories"}
    del city["territories"]
    model = {"gain": "", "drift": ""}
    assert not {"gain", "drift"} & set(versions())
