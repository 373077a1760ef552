"""What the service is told: one TOML file and a few environment variables.

Secrets come from the environment or from files of their own, never from the
TOML. This is the only module of the package that reads the environment.
"""

import hashlib
import json
import math
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from ideal_dispatch.context import Calendar
from ideal_dispatch.context.calendar import zone
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.files import check_source
from ideal_dispatch.records.toml_tables import built, require

ROLES = ("cad", "dispatcher", "auditor", "admin")
CONFIG = "IDEAL_CONFIG"
DATABASE_URL, ROUTER_KEY, WEATHER_KEY, TOKENS = (
    "IDEAL_DATABASE_URL", "IDEAL_ROUTER_KEY", "IDEAL_WEATHER_KEY", "IDEAL_TOKENS",
)  # fmt: skip

_SHA256 = re.compile(r"[0-9a-f]{64}")
_DAY_S = 86_400


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
    """The city: a .network file, a CSV of depots (name, lon, lat), its clock and its holidays."""

    network: str
    depots: str
    time_zone: str
    country: str
    name: str = ""
    subdivision: str = ""
    languages: tuple[str, ...] = ("en", "zh-Hant")
    snap_limit_m: float = 300.0
    accuracy_limit_m: float = 500.0

    def __post_init__(self) -> None:
        zone(self.time_zone)
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

    A "google" or "valhalla" router gets ``wait_s`` of a call's time and then is
    left aside for the forecast; ``ranges`` asks Google for its optimistic and
    pessimistic times too.
    """

    kind: Literal["forecast", "recorded", "google", "valhalla"] = "forecast"
    file: str = ""
    url: str = ""
    wait_s: float = 0.8
    ranges: bool = True

    def __post_init__(self) -> None:
        _check_range(self, "wait_s", 60)
        _check_url(self.url)
        needed = {"recorded": "file", "valhalla": "url"}.get(self.kind)
        if needed and not getattr(self, needed):
            raise InputError(f'{needed} is missing; kind = "{self.kind}" needs it')


@dataclass(frozen=True, slots=True)
class WeatherTable:
    """Asked every ``every_s`` in the background; values older than ``stale_s`` are unknown."""

    source: Literal["none", "open-meteo", "hong-kong-observatory"] = "none"
    url: str = ""
    every_s: float = 300.0
    stale_s: float = 5400.0

    def __post_init__(self) -> None:
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
            self.retention_days == 0 or self.retention_days >= 183,
            f"retention_days {self.retention_days}: logs of a high-risk system are kept at least "
            "six months; give 183 or more, or 0 to keep all",
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


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """All of it; ``policy`` has the keys of an ideal policy's table in an experiment file.

    ``folder`` is where relative file names begin: beside the TOML file.
    """

    city: CityFiles
    model: ModelFiles
    server: Server = field(default_factory=Server)
    policy: Mapping[str, Any] = field(default_factory=dict)
    traffic: TrafficTable = field(default_factory=TrafficTable)
    weather: WeatherTable = field(default_factory=WeatherTable)
    units: UnitsTable = field(default_factory=UnitsTable)
    audit: AuditTable = field(default_factory=AuditTable)
    tokens: tuple[Token, ...] = ()
    router_key: str = field(default="", repr=False)
    weather_key: str = field(default="", repr=False)
    folder: Path = Path()
    demo: bool = False

    def __post_init__(self) -> None:
        if not self.tokens:
            raise InputError(
                "no [[tokens]]: nobody could ask; make one with `ideal serve --new-token`"
            )
        for what in ("name", "sha256"):
            given = [getattr(token, what) for token in self.tokens]
            twice = next((value for value in given if given.count(value) > 1), None)
            require(twice is None, f"[[tokens]] {what} {twice} is used twice; give each its own")
        if not self.audit.url:
            raise InputError(f"audit.url is missing; give it there or as {DATABASE_URL}")
        if self.traffic.kind == "google" and not self.router_key:
            raise InputError(f'traffic.kind = "google" needs a key in {ROUTER_KEY}')

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], environment: Mapping[str, str] | None = None
    ) -> "ServiceSettings":
        """Read the file and the environment, or say in one line what is wrong."""
        environment = os.environ if environment is None else environment
        check_source(path)
        where = os.fspath(path)
        try:
            with open(path, "rb") as file:
                tables = tomllib.load(file)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise FileFormatError(f"{where}: not TOML: {error}") from None
        policy = tables.pop("policy", {})
        try:
            require(isinstance(policy, dict), "[policy] must be a table of keys")
            tokens = _tokens(tables.pop("tokens", []), "tokens")
            tokens += _more_tokens(environment.get(TOKENS, ""))
            if environment.get(DATABASE_URL):
                audit = tables.setdefault("audit", {})
                require(isinstance(audit, dict), "[audit] must be a table of keys")
                audit["url"] = environment[DATABASE_URL]
            return built(
                cls, tables, "", policy=policy, tokens=tokens,
                router_key=environment.get(ROUTER_KEY, ""),
                weather_key=environment.get(WEATHER_KEY, ""),
                folder=Path(path).resolve().parent, demo=False,
            )  # fmt: skip
        except InputError as error:
            raise InputError(f"{where}: {error}") from None

    def file(self, name: str) -> Path:
        """A file of the settings, relative to them."""
        return self.folder / name

    @property
    def database_url(self) -> str:
        """The audit's address; a relative SQLite file lies beside the settings."""
        kind, separator, name = self.audit.url.partition(":///")
        if kind.startswith("sqlite") and separator and not os.path.isabs(name):
            return f"{kind}:///{self.file(name)}"
        return self.audit.url

    @property
    def checksum(self) -> str:
        """A hash of everything that shapes an advice; no secret enters."""
        shown = asdict(replace(self, tokens=self.tokens[:1]))
        for secret in ("tokens", "router_key", "weather_key", "audit", "folder"):
            del shown[secret]
        text = json.dumps(shown, sort_keys=True, default=str)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def from_environment() -> "ServiceSettings | None":
    """The settings of the file named in IDEAL_CONFIG, or None without one."""
    path = os.environ.get(CONFIG, "")
    return ServiceSettings.load(path) if path else None


def hand_down(path: str) -> None:
    """Let worker processes find the settings."""
    os.environ[CONFIG] = path


def state_folder() -> Path:
    """Where a user's programs keep what must outlive them; made if need be."""
    home = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local/state")
    folder = Path(home) / "ideal-dispatch"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{folder}: {error.strerror}; name another place in XDG_STATE_HOME"
        ) from None
    return folder


def _check_range(table: object, name: str, most: float) -> None:
    value = getattr(table, name)
    require(0 < value <= most, f"{name} {value}: more than 0 and at most {most:g} is needed")


def _check_url(url: str) -> None:
    whole = re.match(r"https?://[^/\s]+", url) is not None
    require(not url or whole, f"url {url!r}: an address such as https://host/path is needed")


def _tokens(tables: Any, where: str) -> tuple[Token, ...]:
    require(isinstance(tables, list), f"[[{where}]] must be a list of tables")
    return tuple(built(Token, table, f"{where}[{i}]") for i, table in enumerate(tables))


def _more_tokens(text: str) -> tuple[Token, ...]:
    """Tokens of the environment: name:role:sha256, separated by blanks."""
    found = []
    for number, part in enumerate(text.split()):
        name, _, rest = part.partition(":")
        role, _, digest = rest.partition(":")
        table = {"name": name, "role": role, "sha256": digest}
        found.append(built(Token, table, f"{TOKENS}[{number}]"))
    return tuple(found)


def finite(value: float | None) -> float | None:
    """A number that JSON has, or None."""
    return value if value is not None and math.isfinite(value) else None
