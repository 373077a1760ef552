"""Settings: one TOML file and the environment, wrong values in one line."""

import dataclasses
import re
import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.fleet.priced import FleetTable
from ideal_dispatch.service import settings as module
from ideal_dispatch.service.settings import Server, ServiceSettings, digest, state_folder
from tests.conftest import ROOT
from tests.service_town import ROLES, Town, token

NO_NETWORK: Any = None
HASHED = digest(token("cad"))


def written(folder: Path, **changes: Mapping[str, Any]) -> Path:
    """A file of settings with other values in some tables."""
    base: dict[str, Mapping[str, Any]] = {"audit": {"url": "sqlite:///record.db"}}
    return Town(folder, NO_NETWORK).config("service.toml", **(base | changes))


def loaded(folder: Path, **changes: Mapping[str, Any]) -> ServiceSettings:
    return ServiceSettings.load(written(folder, **changes), {})


def fleet(**changes: Any) -> dict[str, Any]:
    """A [fleet] table with other values."""
    return {"fleet": {"units": {"D0": 2, "D1": 2}, "calls_per_day": 40, **changes}}


def test_files_lie_beside_the_settings(tmp_path: Path) -> None:
    settings = loaded(tmp_path)
    assert settings.server == Server(deadline_s=30.0)
    assert tuple(one.role for one in settings.tokens) == ROLES
    assert settings.file("x") == tmp_path / "x"
    assert settings.database_url == f"sqlite:///{tmp_path}/record.db"


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"server": {"deadlines": 2.0}}, "server.deadlines"),
        ({"server": {"deadline_s": 0.0}}, "[server] deadline_s"),
        ({"server": {"deadline_s": "soon"}}, "server.deadline_s"),
        ({"server": {"queue": -1}}, "[server] queue"),
        ({"server": {"solvers": 2}}, "server.solvers"),
        ({"server": {"log_level": "loud"}}, "server.log_level"),
        ({"server": {"expiry_s": 1e15}}, "expiry_s"),
        ({"server": {"clock_skew_s": 0.0}}, "clock_skew_s"),
        ({"server": {"eido_bytes": 10**9}}, "eido_bytes"),
        ({"city": {"time_zone": "Asia/Hongkong"}}, "Asia/Hong_Kong"),
        ({"city": {"languages": ["fr"]}}, "languages"),
        ({"city": {"languages": []}}, "languages"),
        ({"city": {"accuracy_limit_m": 0.0}}, "accuracy_limit_m"),
        ({"model": {"gain": "gain.json"}}, "model.gain"),
        ({"traffic": {"kind": "radar"}}, "kind 'radar'"),
        ({"traffic": {"kind": "valhalla", "url": ""}}, "url"),
        ({"traffic": {"kind": "valhalla", "url": "host"}}, "url 'host'"),
        ({"traffic": {"kind": "google"}}, "IDEAL_ROUTER_KEY"),
        ({"traffic": {"wait_s": 61.0}}, "wait_s"),
        ({"weather": {"source": "frogs"}}, "source 'frogs'"),
        ({"weather": {"every_s": 0.5}}, "every_s"),
        ({"audit": {"url": ""}}, "audit.url"),
        ({"audit": {"spool": "spool"}}, "audit.spool"),
        ({"audit": {"retention_days": 30}}, "retention_days"),
        ({"audit": {"retention_days": 10**9}}, "retention_days"),
        ({"units": {"default": 2}}, "units.default"),
        ({"units": {"codes": {"C12": "driving"}}}, "units.codes.C12"),
        ({"units": {"codes": {"C12": 3}}}, "units.codes.C12"),
        ({"units": {"stale_s": 1e9}}, "stale_s"),
        ({"nonsense": {"a": 1}}, "nonsense"),
        ({"webhooks": {"name": "cad"}}, "webhooks"),
        ({"clock": {"origin": datetime(2026, 3, 1, 8, tzinfo=UTC)}}, "origin and started"),
        ({"fleet": {"calls_per_day": 40}}, "fleet.units"),
        ({"fleet": {"units": {"D0": 2}}}, "fleet.calls_per_day"),
        (fleet(calls_per_day=0), "calls_per_day"),
        (fleet(units={"D0": 2.5}), "fleet.units.D0"),
        (fleet(units={"D0": -1}), "units of D0"),
        (fleet(units={"D0": 0}), "[fleet] units"),
        (fleet(recall="soon"), "fleet.recall"),
        (fleet(by_hour=[1, 2]), "by_hour"),
        (fleet(by_hour=[0] * 24), "by_hour"),
        (fleet(arrests=0), "arrests"),
        (fleet(entitled=0.01), "entitled"),
        (fleet(occupation_h=1), "fleet.occupation_h"),
    ],
)
def test_wrong_values_are_one_line(tmp_path: Path, changes: Any, key: str) -> None:
    path = written(tmp_path, **changes)
    with pytest.raises(InputError, match=re.escape(key)) as caught:
        ServiceSettings.load(path, {})
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_are_no_settings(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        ServiceSettings.load(tmp_path / "none.toml", {})
    bad = tmp_path / "bad.toml"
    for content in (b"[city\n", b"\xff\xfe"):
        bad.write_bytes(content)
        with pytest.raises(FileFormatError):
            ServiceSettings.load(bad, {})
    bad.write_text("")
    with pytest.raises(InputError, match=r"\[city\]"):
        ServiceSettings.load(bad, {})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('role = "cad"', 'role = "boss"'),
        (f'sha256 = "{HASHED}"', 'sha256 = "plain"'),
        ('name = "cad"', 'name = " "'),
        ('name = "cad"', 'name = "admin"'),
        (HASHED, digest(token("admin"))),
        ("[[tokens]]", "[[somebody]]"),
    ],
)
def test_tokens_are_hashes_with_a_name_and_a_role(tmp_path: Path, old: str, new: str) -> None:
    path = written(tmp_path)
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InputError):
        ServiceSettings.load(path, {})


def test_the_environment_adds_secrets(tmp_path: Path) -> None:
    path, hashed = written(tmp_path, traffic={"kind": "google"}), digest("t")
    given = {
        "IDEAL_ROUTER_KEY": "key-1",
        "IDEAL_WEATHER_KEY": "key-2",
        "IDEAL_DATABASE_URL": "postgresql+psycopg://u:secret@h/d",
        "IDEAL_TOKENS": f"extra:auditor:{hashed}",
    }
    settings = ServiceSettings.load(path, given)
    assert settings.database_url == "postgresql+psycopg://u:secret@h/d"
    assert settings.tokens[-1].name == "extra"
    assert "key-1" not in repr(settings)
    assert "key-2" not in repr(settings)
    with pytest.raises(InputError, match=r"IDEAL_TOKENS\[0\]"):
        ServiceSettings.load(path, {**given, "IDEAL_TOKENS": f"a:king:{hashed}"})


def test_the_hash_follows_what_shapes_advice_and_no_secret(tmp_path: Path) -> None:
    one = loaded(tmp_path).checksum
    assert loaded(tmp_path).checksum == one
    for changes in ({"policy": {"threshold": 60}}, fleet(), {"model": {"responses": "r.json"}}):
        assert loaded(tmp_path, **changes).checksum != one
    other = ServiceSettings.load(written(tmp_path), {"IDEAL_TOKENS": f"a:cad:{digest('a')}"})
    assert other.checksum == one


def test_the_state_folder_is_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert state_folder() == tmp_path / "state" / "ideal-dispatch"
    assert state_folder().stat().st_mode & 0o077 == 0
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(InputError, match="XDG_STATE_HOME"):
        state_folder()


def test_workers_find_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IDEAL_CONFIG", raising=False)
    with pytest.raises(InputError, match="IDEAL_CONFIG"):
        module.from_environment()
    monkeypatch.setenv("IDEAL_CONFIG", str(written(tmp_path, city={"name": "Gridtown"})))
    found = module.from_environment()
    assert found.city.name == "Gridtown"


def test_the_example_of_the_documentation_is_sound_and_shows_the_defaults() -> None:
    example = ROOT / "deploy" / "settings.toml"
    tables = tomllib.loads(example.read_text())
    settings = ServiceSettings.load(example, {})
    assert settings.server == module.Server()
    assert settings.units == module.UnitsTable()
    shown = {name for name, table in tables.items() if isinstance(table, dict)}
    assert settings.fleet == FleetTable({"Kelp Point": 3, "Gannet Bay": 3}, 80.0)
    for name in shown - {"policy"}:
        known = {field.name for field in dataclasses.fields(getattr(settings, name))}
        assert set(tables[name]) == known, name
    assert shown == {
        "city", "model", "policy", "traffic", "weather", "units", "fleet", "audit", "server",
        "clock",
    }  # fmt: skip
