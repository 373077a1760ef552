"""An experiment of a fleet: cities, fleet sizes, loads, and who gets a second unit there."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np

from ideal_dispatch.dispatch import policy_tables
from ideal_dispatch.dispatch.price import UNCALIBRATED
from ideal_dispatch.dispatch.recall import RECALLS, UNSEEN, Recall
from ideal_dispatch.dispatch.threshold import USUAL_COST
from ideal_dispatch.errors import InputError
from ideal_dispatch.fleet.calibration import Calibration
from ideal_dispatch.fleet.calls import YEAR_DAYS
from ideal_dispatch.fleet.city import FleetCity
from ideal_dispatch.fleet.inputs.city_files import city_from
from ideal_dispatch.fleet.inputs.desk import Desk, desk_of
from ideal_dispatch.fleet.policies import PolicyTable
from ideal_dispatch.fleet.simulation import KINDS, Chooser, SecondRule
from ideal_dispatch.plugins import POLICIES, find_plugin, make_plugin
from ideal_dispatch.ranges import Checked, Count, Positive, Seed, Share
from ideal_dispatch.toml_tables import built, complaints_about, read_toml

CHOOSERS = "ideal_dispatch.fleet_policies"
"""The entry points of policies for a fleet, written in Python."""

NEVER = "never"
"""The policy that all others are compared with; it takes part in every experiment."""

UNNAMED = ""
"""The key of a city that is alone and has the name that its files give it."""

USUAL_POLICIES: Mapping[str, Mapping[str, Any]] = {
    NEVER: {"kind": "never"},
    "always": {"kind": "always"},
    "random half": {"kind": "random", "limit": 0.5},
    "fixed C": {"kind": "fixed", "limit": USUAL_COST},
    "priced C": {"kind": "priced"},
}
"""The policies of an experiment that names none."""

Rule = SecondRule | Chooser | PolicyTable


@dataclass(frozen=True, slots=True)
class Case:
    """One city with one fleet and one load; None where the city is left as it is."""

    city: str
    units: int | None = None
    load: float | None = None
    entitled: float | None = None

    @property
    def name(self) -> str:
        """In names of files."""
        parts = {"units": self.units, "load": self.load, "entitled": self.entitled}
        told = [f"{name}_{value:g}" for name, value in parts.items() if value is not None]
        return "_".join([plain(self.city), *told]).lstrip("_")


@dataclass(frozen=True, slots=True)
class FleetExperiment(Checked):
    """What is simulated, before anything is looked at.

    ``cities`` are tables of :func:`~ideal_dispatch.fleet.inputs.city_files.city_from` by name; one
    ``[city]`` is enough. ``utilisation`` scales the calls until the city's own fleet is busy
    for that share of its time; ``units`` are fleet sizes that answer the same calls;
    ``entitled`` are shares of calls that are considered for a second unit. Every combination
    is simulated over ``years`` years of ``days`` days from each of ``seeds``, under every one
    of ``policies`` with every one of ``recall``. "never" needs no recall and is
    simulated once. ``price`` is a file of ``ideal fleet price`` that calibrates the prices.
    Without ``log`` no log of the first year is written.
    """

    name: str = "fleet"
    cities: Mapping[str, Any] = field(default_factory=lambda: {UNNAMED: {}})
    utilisation: tuple[Positive, ...] = ()
    units: tuple[Count, ...] = ()
    entitled: tuple[Share, ...] = ()
    seeds: tuple[Seed, ...] = (0,)
    years: Count = 20
    days: Count = YEAR_DAYS
    policies: Mapping[str, Any] = field(default_factory=lambda: USUAL_POLICIES)
    recall: tuple[Recall, ...] = UNSEEN
    price: str = ""
    log: bool = True
    folder: Path = Path()

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        for name in ("cities", "seeds", "recall"):
            values = getattr(self, name)
            if not values or len(set(values)) < len(values):
                raise InputError(f"{name} {list(values)}: one or more are needed, each once")
        if self.policies.get(NEVER, {"kind": "never"}) != {"kind": "never"}:
            raise InputError('[policies.never]: it is kept for kind = "never" alone')
        files = [plain(name) for name in self.rules]
        if len(set(files)) < len(files):
            raise InputError(f"policies {', '.join(self.rules)}: their names are too much alike")
        cases = [case.name for case in self.cases()]  # in names of files, as are those of policies
        if twice := [name for name in cases if cases.count(name) > 1]:
            raise InputError(
                f"case {twice[0]!r}: the files of two cases would have this name; give cities "
                "other names, and each of units, utilisation and entitled once"
            )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "FleetExperiment":
        """Read the file, or say in one line what is wrong with it."""
        with complaints_about(path):
            return cls.of(read_toml(path), Path(path).parent)

    @classmethod
    def of(cls, tables: Mapping[str, Any], folder: Path = Path()) -> "FleetExperiment":
        """From tables as the file has them; other files are looked for in ``folder``."""
        told = dict(tables)
        if "city" in told:
            if "cities" in told:
                raise InputError("both [city] and [cities.NAME]: give one or the other")
            told["cities"] = {UNNAMED: told.pop("city")}
        return built(cls, told, "", folder=folder)

    @property
    def tables(self) -> dict[str, Any]:
        """All that the results depend on, in plain JSON; :meth:`of` reads it."""
        lists = ("utilisation", "units", "entitled", "seeds", "recall")
        told = {
            "name": self.name, "cities": self.cities,
            **{name: list(getattr(self, name)) for name in lists},
            "years": self.years, "days": self.days, "policies": self.policies, "log": self.log,
        }  # fmt: skip
        return told | ({"price": self.price} if self.price else {})

    @property
    def rules(self) -> dict[str, Rule]:
        """The policies by name, "never" first."""
        tables = {NEVER: {"kind": "never"}, **self.policies}
        return {name: rule_of(name, table) for name, table in tables.items()}

    @property
    def runs(self) -> list[tuple[str, Recall]]:
        """Every policy with every recall rule; "never" once."""
        others = [name for name in self.rules if name != NEVER]
        return [(NEVER, RECALLS[0]), *((name, recall) for name in others for recall in self.recall)]

    def cases(self) -> Iterator[Case]:
        """Every combination of city, fleet size, load and share of entitled calls."""
        for city in self.cities:
            for units in self.units or (None,):
                for load in self.utilisation or (None,):
                    for entitled in self.entitled or (None,):
                        yield Case(city, units, load, entitled)

    def city(self, name: str) -> FleetCity:
        """A city as its files have it."""
        city = city_from(self.cities[name], _where(name), self.folder)
        return city if name == UNNAMED else city.changed(name=name)

    @property
    def desks(self) -> dict[str, Desk]:
        """What dispatch policies know of each city; nothing where there are none."""
        if not any(isinstance(rule, PolicyTable) for rule in self.rules.values()):
            return {}
        return {
            name: desk_of(table, _where(name), self.folder) for name, table in self.cities.items()
        }

    def factors(self, cities: Iterable[FleetCity]) -> tuple[float, ...]:
        """What calibrates the prices in lives of all these cities."""
        if not self.price:
            return UNCALIBRATED
        found = Calibration.load(self.folder / self.price)
        for city in cities:
            if city.name != found.city:
                raise InputError(
                    f"price {self.price}: it is of {found.city}, not of {city.name}; make one with "
                    "`ideal fleet price`"
                )
        return found.factors["deaths"]


def _where(city: str) -> str:
    """The name of a city's table."""
    return "city" if city == UNNAMED else f"cities.{city}"


def rule_of(name: str, table: Any) -> Rule:
    """The policy of a table: a built-in ``kind``, a dispatch policy, or a class for fleets.

    A built-in one has a ``limit``, a dispatch policy the keys that it has in a replay. The
    last is named as "module:Name", or by its entry point, and made with ``options``.
    """
    where = f"policies.{name}"
    kind = table.get("kind") if isinstance(table, Mapping) else None
    if kind is None or kind in KINDS:
        return built(SecondRule, table, where)
    ours = kind in policy_tables.KINDS or kind in entry_points(group=POLICIES).names
    if not ours:
        known = (*KINDS, *policy_tables.KINDS)
        made_by = find_plugin(CHOOSERS, kind, known, f"{where}.kind")
    if ours or hasattr(made_by, "decide"):
        policy_tables.check_policies({name: table}, fleet=True)
        return PolicyTable(name, table)
    own = built(_Own, table, where)
    made = make_plugin(made_by, own.options, f"{where}.options")
    if not isinstance(made, Chooser):
        raise InputError(
            f"{where}.kind {own.kind!r}: it has no name and choose(view); see docs/fleet.md"
        )
    return made


@dataclass(frozen=True, slots=True)
class _Own:
    """The table of a policy in Python."""

    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)


def plain(name: str) -> str:
    """A name as a part of a file's name."""
    return "_".join("".join(c if c.isalnum() else " " for c in name.lower()).split())


def with_units(city: FleetCity, units: int) -> FleetCity:
    """The same calls with a fleet of another size.

    Every call belongs to the station nearest to it. A further unit goes where there are most
    calls for each unit, the new one counted, and is on duty all day. A unit is taken where
    its absence leaves the fewest calls for each unit of the stations. Of equals the first counts.
    """
    home = city.units.tolist()
    shifts = city.shifts.tolist()
    near = city.travel.fast_s[np.ix_(city.stations, city.cells)].argmin(axis=0)
    calls = np.bincount(near, city.weights, minlength=len(city.stations))
    count = np.bincount(home, minlength=len(city.stations))
    while len(home) < units:
        station = int(np.argmax(calls / (count + 1)))
        home.append(station)
        shifts.append([0.0, 24.0])
        count[station] += 1
    while len(home) > units:
        load = np.where(count > 0, calls / np.maximum(count - 1, 1e-9), np.inf)
        station = int(np.argmin(load))
        last = len(home) - 1 - home[::-1].index(station)
        del home[last], shifts[last]
        count[station] -= 1
    return city.changed(units=np.array(home, np.int32), shifts=np.array(shifts))
