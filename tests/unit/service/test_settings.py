"""Settings: one TOML file and the environment, wrong values in one line."""

import dataclasses
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.fleet.table import FleetTable
from ideal_dispatch.service import settings as module
from ideal_dispatch.service.settings import Server, ServiceSettings, state_folder
from ideal_dispatch.service.solver.assets import load_assets
from ideal_dispatch.service.tokens import digest
from tests.conftest import ROOT
from tests.service_town import DEPOTS, Town


def fleet(**changes: Any) -> dict[str, Any]:
    """A [fleet] table with other values."""
    return {"fleet": {"units": dict.fromkeys(DEPOTS, 2), "calls_per_day": 40, **changes}}


def test_defaults_are_those_of_the_documentation(town: Town) -> None:
    settings = town.settings()
    assert Server().deadline_s == 2.0
    assert settings.weather.stale_s == 5400.0
    assert [token.role for token in settings.tokens] == ["cad", "dispatcher", "auditor", "admin"]
    assert settings.file("x") == town.folder / "x"
    assert settings.database_url == f"sqlite:///{town.folder}/town.toml.db"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"server": {"deadlines": 2.0}}, "server.deadlines is not known; did you mean deadline_s?"),
        ({"server": {"deadline_s": 0.0}}, "[server] deadline_s 0.0: 0.1 to 60 is needed"),
        ({"server": {"deadline_s": "soon"}}, "server.deadline_s 'soon': a number is needed"),
        ({"server": {"queue": -1}}, "queue -1: 0 to 10000 is needed"),
        ({"server": {"solvers": 0}}, "solvers 0: 1 to 64 is needed"),
        ({"server": {"log_level": "loud"}}, "server.log_level 'loud': one of"),
        ({"city": {"time_zone": "Asia/Hongkong"}}, "did you mean Asia/Hong_Kong"),
        ({"city": {"languages": ["fr"]}}, 'the desk has no "fr"; it has "en" and "zh-Hant"'),
        ({"city": {"languages": []}}, "languages: one at least is needed"),
        ({"traffic": {"kind": "radar"}}, "kind 'radar': choose one of forecast"),
        ({"traffic": {"kind": "valhalla", "url": ""}}, "url is missing"),
        ({"traffic": {"kind": "valhalla", "url": "host"}}, "an address such as https://host"),
        ({"traffic": {"kind": "google"}}, "needs a key in IDEAL_ROUTER_KEY"),
        ({"weather": {"source": "frogs"}}, "source 'frogs': choose one of none"),
        ({"audit": {"url": ""}}, "audit.url is missing; give it there or as IDEAL_DATABASE_URL"),
        ({"audit": {"retention_days": 30}}, "kept at least six months"),
        ({"units": {"default": -2}}, "default -2: 0 to 1000 is needed"),
        ({"units": {"statuses": "morse"}}, "units.statuses 'morse': one of 'words', 'fms'"),
        (
            {"units": {"codes": {"C12": "driving"}}},
            "units.codes.C12 'driving': one of '', 'at_station', 'available', 'dispatched'",
        ),
        ({"units": {"codes": {"C12": 3}}}, "units.codes.C12 3: one of"),
        ({"units": {"stale_s": 1e9}}, "stale_s 1000000000.0: more than 0 and at most 86400"),
        ({"server": {"expiry_s": 1e15}}, "expiry_s 1000000000000000.0: more than 0 and at most"),
        ({"server": {"clock_skew_s": 0.0}}, "clock_skew_s 0.0: more than 0 and at most 86400"),
        ({"server": {"eido_bytes": 10**9}}, "eido_bytes 1000000000: 1000 to 10000000 is needed"),
        ({"traffic": {"wait_s": 61.0}}, "wait_s 61.0: more than 0 and at most 60 is needed"),
        ({"weather": {"every_s": 0.5}}, "every_s 0.5: 1 to 86400 is needed"),
        ({"city": {"accuracy_limit_m": 0.0}}, "accuracy_limit_m 0.0: more than 0 and at most"),
        ({"audit": {"retention_days": 10**9}}, "retention_days 1000000000: at most 36500"),
        ({"nonsense": {"a": 1}}, "nonsense is not known"),
        ({"fleet": {"calls_per_day": 40}}, "fleet.units is missing"),
        ({"fleet": {"units": {"D0": 2}}}, "fleet.calls_per_day is missing"),
        (fleet(calls_per_day=0), "[fleet] calls_per_day 0.0: more than 0 is needed"),
        (fleet(units={"D0": 2.5}), "fleet.units.D0 2.5: a whole number is needed"),
        (fleet(units={"D0": -1}), "[fleet] units of D0 -1: 0 to 1000 is needed"),
        (fleet(units={"D0": 0}), "[fleet] units: nobody is on duty; give the units of depots"),
        (fleet(recall="soon"), "fleet.recall 'soon': one of 'none', 'first arrival', 'worth'"),
        (fleet(by_hour=[1, 2]), "[fleet] by_hour: 2 numbers; 24 are needed, or none"),
        (fleet(by_hour=[0] * 24), "[fleet] by_hour: no hour has calls"),
        (fleet(arrests=0), "[fleet] arrests 0.0: more than 0 and at most 1 is needed"),
        (fleet(entitled=0.01), "[fleet] entitled 0.01: no less than arrests, 0.03, is needed"),
        (fleet(occupation_h=1), "fleet.occupation_h is not known; did you mean occupation_s?"),
    ],
)
def test_wrong_values_are_one_line(town: Town, changes: Any, words: str) -> None:
    path = town.config("wrong.toml", **changes)
    with pytest.raises(InputError, match=re.escape(words)) as caught:
        ServiceSettings.load(path, {})
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_are_no_settings(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        ServiceSettings.load(tmp_path / "none.toml", {})
    bad = tmp_path / "bad.toml"
    bad.write_text("[city\n")
    with pytest.raises(FileFormatError, match="not TOML"):
        ServiceSettings.load(bad, {})
    bad.write_bytes(b"\xff\xfe")
    with pytest.raises(FileFormatError, match="not TOML"):
        ServiceSettings.load(bad, {})
    bad.write_text("")
    with pytest.raises(InputError, match=r"\[city\] is missing"):
        ServiceSettings.load(bad, {})


def test_tokens_must_be_hashes_of_somebody(town: Town) -> None:
    path = town.config("tokens.toml")
    text = path.read_text()
    path.write_text(text.replace(digest("x"), "x").replace('role = "cad"', 'role = "boss"'))
    with pytest.raises(InputError, match="role 'boss': one of 'cad'"):
        ServiceSettings.load(path, {})
    path.write_text(re.sub(r'sha256 = "\w+"', 'sha256 = "plain"', text))
    with pytest.raises(InputError, match="64 hexadecimal digits are needed; make a token with"):
        ServiceSettings.load(path, {})
    path.write_text(text.split("[[tokens]]")[0])
    with pytest.raises(InputError, match="nobody could ask"):
        ServiceSettings.load(path, {})
    path.write_text(text + text[text.index("[[tokens]]") :])
    with pytest.raises(InputError, match="is used twice"):
        ServiceSettings.load(path, {})


def test_the_environment_adds_secrets(town: Town) -> None:
    path = town.config("env.toml", traffic={"kind": "google"})
    hashed = digest("t")
    settings = ServiceSettings.load(
        path,
        {
            "IDEAL_ROUTER_KEY": "key-1",
            "IDEAL_WEATHER_KEY": "key-2",
            "IDEAL_DATABASE_URL": "postgresql+psycopg://u:secret@h/d",
            "IDEAL_TOKENS": f"extra:auditor:{hashed}",
        },
    )
    assert settings.database_url == "postgresql+psycopg://u:secret@h/d"
    assert settings.tokens[-1].name == "extra"
    assert "key-1" not in repr(settings)
    assert "key-2" not in repr(settings)
    with pytest.raises(InputError, match=r"IDEAL_TOKENS\[0\].*role 'king'"):
        ServiceSettings.load(path, {"IDEAL_ROUTER_KEY": "k", "IDEAL_TOKENS": f"a:king:{hashed}"})


def test_the_hash_follows_what_shapes_advice_and_no_secret(town: Town) -> None:
    one = town.settings("hash.toml")
    assert town.settings("hash.toml").checksum == one.checksum
    assert town.settings("hash.toml", policy={"threshold": 60}).checksum != one.checksum
    assert town.settings("hash.toml", **fleet()).checksum != one.checksum
    path = town.config("hash.toml")
    other = ServiceSettings.load(path, {"IDEAL_TOKENS": f"a:cad:{digest('a')}"})
    assert other.checksum == one.checksum


def test_the_environment_is_read_here_alone() -> None:
    source = ROOT / "src" / "ideal_dispatch"
    readers = [
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if re.search(r"os\.environ|getenv", path.read_text())
    ]
    assert readers == ["service/settings.py"]


def test_the_state_folder_is_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert state_folder() == tmp_path / "state" / "ideal-dispatch"
    assert state_folder().stat().st_mode & 0o077 == 0
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(InputError, match="XDG_STATE_HOME"):
        state_folder()


def test_workers_find_the_settings(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IDEAL_CONFIG", raising=False)
    assert module.from_environment() is None
    monkeypatch.setenv("IDEAL_CONFIG", str(town.config("worker.toml")))
    found = module.from_environment()
    assert found is not None
    assert found.city.name == "Gridtown"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"policy": {"kind": "oracle"}}, "policy.kind 'oracle': choose one of region"),
        ({"policy": {"decide_by": "luck"}}, "decide_by"),
        ({"policy": {"threshold": "soon"}}, "policy.threshold 'soon'"),
        ({"model": {"folder": "nowhere"}}, "no such folder"),
        ({"model": {"gain": "depots.csv"}}, "damaged"),
        ({"city": {"network": "depots.csv"}}, "not a network file"),
        ({"city": {"depots": "gain.json"}}, "gain.json"),
    ],
)
def test_files_of_the_wrong_kind_are_one_line(town: Town, changes: Any, words: str) -> None:
    settings = town.settings("kind.toml", **changes)
    with pytest.raises(Exception, match=re.escape(words)) as caught:
        load_assets(settings)
    assert isinstance(caught.value, InputError | FileFormatError)
    assert "\n" not in str(caught.value)


def test_a_depot_off_the_map_is_refused(town: Town) -> None:
    (town.folder / "far.csv").write_text("name,lon,lat\nA,114.0,22.0\nB,115.0,22.0\n")
    with pytest.raises(InputError, match="depot B: longitude 115"):
        load_assets(town.settings("far.toml", city={"depots": "far.csv"}))
    (town.folder / "one.csv").write_text("name,lon,lat\nA,114.0,22.0\n")
    with pytest.raises(InputError, match="1 depots on the network: at least two"):
        load_assets(town.settings("far.toml", city={"depots": "one.csv"}))


def test_the_example_of_the_documentation_is_sound_and_shows_the_defaults() -> None:
    example = ROOT / "deploy" / "settings.toml"
    tables = tomllib.loads(example.read_text())
    settings = ServiceSettings.load(example, {module.WEBHOOK_SECRETS: "cad:s3cret"})
    assert settings.server == module.Server()
    assert settings.units == module.UnitsTable()
    shown = {name for name, table in tables.items() if isinstance(table, dict)}
    assert shown == {
        "city", "model", "policy", "traffic", "weather", "units", "fleet", "audit", "server",
        "clock",
    }  # fmt: skip
    assert settings.fleet == FleetTable({"Kelp Point": 3, "Gannet Bay": 3}, 80.0)
    for name in shown - {"policy"}:
        known = {field.name for field in dataclasses.fields(getattr(settings, name))}
        assert set(tables[name]) == known, name


def test_every_degraded_code_is_documented() -> None:
    text = (ROOT / "docs" / "service.md").read_text()
    source = ROOT / "src" / "ideal_dispatch" / "service"
    files = [source / "recommender.py", *sorted((source / "solver").glob("*.py"))]
    code = "\n".join(file.read_text() for file in files)
    used = set(re.findall(r'\(\s*"([a-z]+(?:_[a-z]+)*)",\s*f?"', code))
    used |= set(re.findall(r'NoAdviceError\(\s*"([a-z_]+)"', code))
    used -= {"service", "advice", "advise", "road_map", "kind"}  # an entry, a thread, questions
    used |= {"off_map", "unreachable", "not_decided", "internal_error", "traffic_unavailable"}
    assert len(used) > 15
    assert [code for code in sorted(used) if f"`{code}`" not in text] == []
