"""What the service is told: one TOML file and a few environment variables.

Secrets come from the environment or from files of their own, never from the
TOML. This is the only module of the package that reads the environment.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.tables import (
    AuditTable,
    CityFiles,
    ModelFiles,
    Server,
    Token,
    TrafficTable,
    UnitsTable,
    WeatherTable,
)
from ideal_dispatch.toml_tables import built, complaints_about, read_toml, require

__all__ = [
    "AuditTable", "CityFiles", "ModelFiles", "Server", "ServiceSettings", "Token", "TrafficTable",
    "UnitsTable", "WeatherTable", "from_environment", "hand_down", "notify_socket", "state_folder",
]  # fmt: skip

CONFIG = "IDEAL_CONFIG"
DATABASE_URL, ROUTER_KEY, WEATHER_KEY, TOKENS = (
    "IDEAL_DATABASE_URL", "IDEAL_ROUTER_KEY", "IDEAL_WEATHER_KEY", "IDEAL_TOKENS",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """All of it; ``policy`` has the keys of an ideal policy's table in an experiment file.

    ``path`` is the TOML file. ``folder`` is where relative file names begin: beside the TOML file.
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
    path: str = ""
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
        tables = read_toml(path)
        policy = tables.pop("policy", {})
        with complaints_about(path):
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
                path=os.fspath(path), folder=Path(path).resolve().parent, demo=False,
            )  # fmt: skip

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
        for secret in ("tokens", "router_key", "weather_key", "audit", "path", "folder"):
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


def notify_socket() -> str:
    """Where systemd waits to be told that the service is ready; empty where nobody does."""
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
