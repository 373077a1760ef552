"""The tables of the service's TOML file, each checked as it is made."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ideal_dispatch.context import Calendar
from ideal_dispatch.context.calendar import zone
from ideal_dispatch.errors import InputError
from ideal_dispatch.network import SNAP_LIMIT_M
from ideal_dispatch.plugins import TRAFFIC_SOURCES, WEATHER, check_name
from ideal_dispatch.toml_tables import require

_SHA256 = re.compile(r"[0-9a-f]{64}")
_DAY_S = 86_400

LEAST_RETENTION_DAYS = 183
"""Logs of a high-risk system are kept at least six months."""

TRAFFIC_KINDS = ("forecast", "recorded", "google", "valhalla")
WEATHER_SOURCES = ("none", "open-meteo", "hong-kong-observatory")
"""What the service itself can ask; others come by plug-ins."""

LANGUAGES = ("en", "zh-Hant")
"""What the desk can speak: the files of static/locales."""


@dataclass(frozen=True, slots=True)
class Server:
    """Limits of answering. ``queue`` calls may wait beyond the ``solvers`` that are being answered.

    An answer is due after ``deadline_s``; an advice holds for ``expiry_s``. Calls
    older than ``oldest_call_s`` or further in the future than ``clock_skew_s`` get
    no advice. Bodies have at most ``body_bytes``, an EIDO ``eido_bytes``.
    """

    deadline_s: float = 2.0
    solvers: int = 2
    queue: int = 16
    expiry_s: float = 120.0
    oldest_call_s: float = 900.0
    clock_skew_s: float = 60.0
    body_bytes: int = 65_536
    eido_bytes: int = 262_144
    nesting: int = 32
    body_timeout_s: float = 10.0
    secure_cookie: bool = False
    public_metrics: bool = False
    trusted_proxies: tuple[str, ...] = ("127.0.0.1",)
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    def __post_init__(self) -> None:
        require(0.1 <= self.deadline_s <= 60, f"deadline_s {self.deadline_s}: 0.1 to 60 is needed")
        require(1 <= self.solvers <= 64, f"solvers {self.solvers}: 1 to 64 are needed")
        require(0 <= self.queue <= 10_000, f"queue {self.queue}: 0 to 10000 is needed")
        for name in ("expiry_s", "oldest_call_s", "clock_skew_s"):
            _check_range(self, name, _DAY_S)
        _check_range(self, "body_timeout_s", 600)
        for name in ("body_bytes", "eido_bytes"):
            size = getattr(self, name)
            require(1000 <= size <= 10_000_000, f"{name} {size}: 1000 to 10000000 is needed")
        require(4 <= self.nesting <= 200, f"nesting {self.nesting}: 4 to 200 is needed")


@dataclass(frozen=True, slots=True)
class CityFiles:
    """The city: a .network file, a CSV of depots (name, lon, lat), its clock and its holidays.

    ``aliases`` are other names of depots, such as call signs: the depot's name by alias.
    """

    network: str
    depots: str
    time_zone: str
    country: str
    name: str = ""
    subdivision: str = ""
    languages: tuple[str, ...] = LANGUAGES
    aliases: Mapping[str, str] = field(default_factory=dict)
    snap_limit_m: float = SNAP_LIMIT_M
    accuracy_limit_m: float = 500.0

    def __post_init__(self) -> None:
        zone(self.time_zone)
        known = " and ".join(f'"{language}"' for language in LANGUAGES)
        require(bool(self.languages), f"languages: one at least is needed; the desk has {known}")
        for one in self.languages:
            require(one in LANGUAGES, f'languages: the desk has no "{one}"; it has {known}')
        for name in ("snap_limit_m", "accuracy_limit_m"):
            _check_range(self, name, 100_000)

    def calendar(self) -> Calendar:
        """Local time and holidays there."""
        return Calendar(self.time_zone, self.country, self.subdivision or None)


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A directory of ``ideal train``, and optionally what was fitted on replays."""

    folder: str
    gain: str = ""
    drift: str = ""


@dataclass(frozen=True, slots=True)
class TrafficTable:
    """Where travel times come from.

    ``kind`` is "forecast", "recorded", "google", "valhalla", or a source of your own
    with its ``options``. A router gets ``wait_s`` of a call's time and then is
    left aside for the forecast; ``ranges`` asks Google for its optimistic and
    pessimistic times too.
    """

    kind: str = "forecast"
    file: str = ""
    url: str = ""
    wait_s: float = 0.8
    ranges: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_name(TRAFFIC_SOURCES, self.kind, TRAFFIC_KINDS, "kind")
        _check_range(self, "wait_s", 60)
        _check_url(self.url)
        needed = {"recorded": "file", "valhalla": "url"}.get(self.kind)
        if needed and not getattr(self, needed):
            raise InputError(f'{needed} is missing; kind = "{self.kind}" needs it')


@dataclass(frozen=True, slots=True)
class WeatherTable:
    """Asked every ``every_s`` in the background; values older than ``stale_s`` are unknown.

    ``source`` is "none", "open-meteo", "hong-kong-observatory", or a provider of your
    own with its ``options``.
    """

    source: str = "none"
    url: str = ""
    every_s: float = 300.0
    stale_s: float = 5400.0
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_name(WEATHER, self.source, WEATHER_SOURCES, "source")
        _check_url(self.url)
        require(1 <= self.every_s <= _DAY_S, f"every_s {self.every_s}: 1 to {_DAY_S} is needed")
        _check_range(self, "stale_s", _DAY_S)


@dataclass(frozen=True, slots=True)
class UnitsTable:
    """Units free at a depot that nobody told about, and when a report is too old to trust."""

    default: int = 0
    stale_s: float = 900.0

    def __post_init__(self) -> None:
        require(0 <= self.default <= 1000, f"default {self.default}: 0 to 1000 units are needed")
        _check_range(self, "stale_s", _DAY_S)


@dataclass(frozen=True, slots=True)
class AuditTable:
    """The database (an address with a password belongs into IDEAL_DATABASE_URL) and the spool."""

    url: str = ""
    spool: str = "spool"
    retention_days: int = 0

    def __post_init__(self) -> None:
        require(
            self.retention_days == 0 or self.retention_days >= LEAST_RETENTION_DAYS,
            f"retention_days {self.retention_days}: logs of a high-risk system are kept at least "
            f"six months; give {LEAST_RETENTION_DAYS} or more, or 0 to keep all",
        )
        require(
            self.retention_days <= 36_500,
            f"retention_days {self.retention_days}: at most 36500; 0 keeps all",
        )


@dataclass(frozen=True, slots=True)
class Token:
    """Who may ask: ``sha256`` is the hash of a token made by ``ideal serve --new-token``."""

    name: str
    role: Literal["cad", "dispatcher", "auditor", "admin"]
    sha256: str

    def __post_init__(self) -> None:
        require(bool(self.name.strip()), "name is empty; say whose token it is")
        require(
            _SHA256.fullmatch(self.sha256) is not None,
            f"sha256 of {self.name}: 64 hexadecimal digits are needed; make a token with "
            "`ideal serve --new-token`",
        )


def _check_range(table: object, name: str, most: float) -> None:
    value = getattr(table, name)
    require(0 < value <= most, f"{name} {value}: more than 0 and at most {most:g} is needed")


def _check_url(url: str) -> None:
    whole = re.match(r"https?://[^/\s]+", url) is not None
    require(not url or whole, f"url {url!r}: an address such as https://host/path is needed")
