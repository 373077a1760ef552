"""The settings of the service: one TOML file and a few environment variables.

``deploy/settings.toml`` says what each key means. Secrets come from the environment, never from
the TOML. This is the only module of the package that reads the environment.
"""

import hashlib
import json
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from ideal_dispatch.context.calendar import zone
from ideal_dispatch.errors import InputError
from ideal_dispatch.fleet.priced import FleetTable
from ideal_dispatch.network import SNAP_LIMIT_M
from ideal_dispatch.plugins import TRAFFIC_SOURCES, WEATHER, check_name
from ideal_dispatch.ranges import Checked, Range, check_fields
from ideal_dispatch.service.clock import ClockTable
from ideal_dispatch.service.errors import UnauthorizedError
from ideal_dispatch.service.units import Status
from ideal_dispatch.toml_tables import built, complaints_about, read_toml, require

CONFIG = "IDEAL_CONFIG"
DATABASE_URL, ROUTER_KEY, WEATHER_KEY, TOKENS = (
    "IDEAL_DATABASE_URL", "IDEAL_ROUTER_KEY", "IDEAL_WEATHER_KEY", "IDEAL_TOKENS",
)  # fmt: skip

_SHA256 = re.compile(r"[0-9a-f]{64}")
_DAY_S = 86_400
_WithinADay = Annotated[float, Range(0, _DAY_S, above=True)]
_Bytes = Annotated[int, Range(1000, 10_000_000, whole=True)]
_Metres = Annotated[float, Range(0, 100_000, above=True)]

LEAST_RETENTION_DAYS = 183
"""Logs of a high-risk system are kept at least six months."""

TRAFFIC_KINDS = ("forecast", "recorded", "google", "valhalla")
WEATHER_SOURCES = ("none", "open-meteo")
"""What the service itself can ask; others come by plug-ins."""

Language = Literal["en", "zh-Hant"]
"""What the desk can speak: the files of static/locales."""


@dataclass(frozen=True, slots=True)
class Server(Checked):
    """Limits of answering, and how the service is reached."""

    deadline_s: Annotated[float, Range(0.1, 60)] = 2.0
    queue: Annotated[int, Range(0, 10_000, whole=True)] = 16
    expiry_s: _WithinADay = 120.0
    oldest_call_s: _WithinADay = 900.0
    clock_skew_s: _WithinADay = 60.0
    body_bytes: _Bytes = 65_536
    eido_bytes: _Bytes = 262_144
    nesting: Annotated[int, Range(4, 200, whole=True)] = 32
    body_timeout_s: Annotated[float, Range(0, 600, above=True)] = 10.0
    secure_cookie: bool = False
    public_metrics: bool = False
    trusted_proxies: tuple[str, ...] = ("127.0.0.1",)
    log_level: Literal["debug", "info", "warning", "error"] = "info"


@dataclass(frozen=True, slots=True)
class CityFiles:
    """The city: its roads, its depots and their ``aliases``, its clock and its holidays."""

    network: str
    depots: str
    time_zone: str
    country: str
    name: str = ""
    subdivision: str = ""
    languages: tuple[Language, ...] = get_args(Language)
    aliases: Mapping[str, str] = field(default_factory=dict)
    snap_limit_m: _Metres = SNAP_LIMIT_M
    accuracy_limit_m: _Metres = 500.0
    territories: str = ""

    def __post_init__(self) -> None:
        zone(self.time_zone)
        require(bool(self.languages), "languages: name at least one")
        check_fields(self)


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A directory of ``ideal train``, and a file of response times fitted by ``ideal races``."""

    folder: str
    responses: str = ""


@dataclass(frozen=True, slots=True)
class TrafficTable:
    """Where travel times come from; ``options`` are of a source of the centre's own."""

    kind: str = "forecast"
    file: str = ""
    url: str = ""
    wait_s: Annotated[float, Range(0, 60, above=True)] = 0.8
    ranges: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_name(TRAFFIC_SOURCES, self.kind, TRAFFIC_KINDS, "kind")
        check_fields(self)
        _check_url(self.url)
        needed = {"recorded": "file", "valhalla": "url"}.get(self.kind)
        given = not needed or bool(getattr(self, needed))
        require(given, f'{needed} is missing; kind = "{self.kind}" needs it')


@dataclass(frozen=True, slots=True)
class WeatherTable:
    """Where the weather comes from; ``options`` are of a provider of the centre's own."""

    source: str = "none"
    url: str = ""
    every_s: Annotated[float, Range(1, _DAY_S)] = 300.0
    stale_s: _WithinADay = 5400.0
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_name(WEATHER, self.source, WEATHER_SOURCES, "source")
        _check_url(self.url)
        check_fields(self)


@dataclass(frozen=True, slots=True)
class UnitsTable(Checked):
    """When a report of units is too old to trust, and what the centre's status codes mean."""

    stale_s: _WithinADay = 900.0
    position_stale_s: _WithinADay = 120.0
    codes: Mapping[str, Literal[Status, ""]] = field(default_factory=dict)
    candidates: Annotated[int, Range(1, 200, whole=True)] = 8


@dataclass(frozen=True, slots=True)
class AuditTable:
    """The database, whose address belongs into IDEAL_DATABASE_URL if it has a password."""

    url: str = ""
    retention_days: Annotated[int, Range(0, 36_500, whole=True)] = 0

    def __post_init__(self) -> None:
        check_fields(self)
        require(
            self.retention_days == 0 or self.retention_days >= LEAST_RETENTION_DAYS,
            f"retention_days {self.retention_days}: logs of a high-risk system are kept at least "
            f"six months; give {LEAST_RETENTION_DAYS} or more, or 0 to keep all",
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
    """All of it; ``path`` is the TOML file, and relative file names begin in its ``folder``."""

    city: CityFiles
    model: ModelFiles
    server: Server = field(default_factory=Server)
    policy: Mapping[str, Any] = field(default_factory=dict)
    traffic: TrafficTable = field(default_factory=TrafficTable)
    weather: WeatherTable = field(default_factory=WeatherTable)
    units: UnitsTable = field(default_factory=UnitsTable)
    fleet: FleetTable | None = None
    audit: AuditTable = field(default_factory=AuditTable)
    clock: ClockTable = field(default_factory=ClockTable)
    tokens: tuple[Token, ...] = ()
    router_key: str = field(default="", repr=False)
    weather_key: str = field(default="", repr=False)
    path: str = ""
    folder: Path = Path()
    demo: bool = False

    def __post_init__(self) -> None:
        require(
            bool(self.tokens),
            "no [[tokens]]: every request needs one; make one with `ideal serve --new-token`",
        )
        for what in ("name", "sha256"):
            given = [getattr(one, what) for one in self.tokens]
            twice = next((value for value in given if given.count(value) > 1), None)
            require(twice is None, f"[[tokens]] {what} {twice} is used twice; give each its own")
        require(bool(self.audit.url), f"audit.url is missing; give it there or as {DATABASE_URL}")
        keyed = self.traffic.kind != "google" or bool(self.router_key)
        require(keyed, f'traffic.kind = "google" needs a key in {ROUTER_KEY}')

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], environment: Mapping[str, str] | None = None
    ) -> "ServiceSettings":
        """Read the file and the environment, or say in one line what is wrong."""
        environment = os.environ if environment is None else environment
        tables = read_toml(path)
        with complaints_about(path):
            tokens = _tokens(tables.pop("tokens", []), environment.get(TOKENS, ""))
            if environment.get(DATABASE_URL):
                audit = tables.setdefault("audit", {})
                require(isinstance(audit, dict), "[audit] must be a table of keys")
                audit["url"] = environment[DATABASE_URL]
            return built(
                cls, tables, "", tokens=tokens,
                router_key=environment.get(ROUTER_KEY, ""),
                weather_key=environment.get(WEATHER_KEY, ""),
                path=os.fspath(path), folder=Path(path).resolve().parent, demo=False,
            )  # fmt: skip

    def file(self, name: str) -> Path:
        """A file of the settings, relative to them."""
        return self.folder / name

    @property
    def invents(self) -> bool:
        """Whether calls are invented from the start; with a simulated clock a player owns them."""
        return self.demo and not self.clock.simulated

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
        shown = asdict(self)
        for aside in ("tokens", "router_key", "weather_key", "audit", "path", "folder"):
            del shown[aside]
        text = json.dumps(shown, sort_keys=True, default=str)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def from_environment() -> ServiceSettings:
    """The settings of the file named in IDEAL_CONFIG."""
    require(CONFIG in os.environ, f"{CONFIG} names no configuration")
    return ServiceSettings.load(os.environ[CONFIG])


def notify_socket() -> str:
    """The socket on which systemd waits for the service to be ready; empty without systemd."""
    return os.environ.get("NOTIFY_SOCKET", "")


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


def _tokens(tables: Any, environment: str) -> tuple[Token, ...]:
    """Those of the file, and those of the environment: name:role:sha256, separated by blanks."""
    require(isinstance(tables, list), "[[tokens]] must be a list of tables")
    found = [built(Token, table, f"tokens[{i}]") for i, table in enumerate(tables)]
    for i, part in enumerate(environment.split()):
        table = dict(zip(("name", "role", "sha256"), part.split(":", 2), strict=False))
        found.append(built(Token, table, f"{TOKENS}[{i}]"))
    return tuple(found)


def _check_url(url: str) -> None:
    whole = re.match(r"https?://[^/\s]+", url) is not None
    require(not url or whole, f"url {url!r}: an address such as https://host/path is needed")


# --- tokens of 256 random bits, of which only hashes are stored -------------------------


def new_token() -> tuple[str, str]:
    """A token and its hash for the settings."""
    token = secrets.token_urlsafe(32)
    return token, digest(token)


def digest(token: str) -> str:
    """What is stored of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def authenticate(token: str | None, configured: Sequence[Token]) -> Token:
    """The configured token that was presented; comparing hashes reveals nothing by its time."""
    how = "send `Authorization: Bearer …` with one that is configured"
    if token is None:
        raise UnauthorizedError(f"no token; {how}")
    found = {known.sha256: known for known in configured}.get(digest(token))
    if found is None:
        raise UnauthorizedError(f"unknown token; {how}")
    return found
