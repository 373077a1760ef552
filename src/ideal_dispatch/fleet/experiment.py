"""An experiment of a fleet: cities, fleet sizes, loads, and who gets a second unit there."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ideal_dispatch.dispatch.price import UNCALIBRATED
from ideal_dispatch.dispatch.recall import RECALLS, UNSEEN, Recall
from ideal_dispatch.dispatch.threshold import USUAL_COST
from ideal_dispatch.errors import InputError
from ideal_dispatch.experiment.engine import Watch, unwatched
from ideal_dispatch.fleet.calibration import Calibration
from ideal_dispatch.fleet.calls import YEAR_DAYS
from ideal_dispatch.fleet.city import FleetCity
from ideal_dispatch.fleet.inputs.city_files import city_from
from ideal_dispatch.fleet.load import at_utilisation, with_units
from ideal_dispatch.fleet.policies import Rule, rule_of
from ideal_dispatch.fleet.results import NEVER
from ideal_dispatch.ranges import Checked, Count, Positive, Seed, Share
from ideal_dispatch.toml_tables import built, complaints_about, read_toml

UNNAMED = ""
"""The key of a city that is alone and has the name that its files give it."""

USUAL_POLICIES: Mapping[str, Mapping[str, Any]] = {
    NEVER: {"kind": "never"},
    "always": {"kind": "always"},
    "random half": {"kind": "random", "threshold": 0.5},
    "fixed C": {"kind": "survival", "threshold": {"cost": USUAL_COST}},
    "priced C": {"kind": "survival", "threshold": "priced"},
}
"""The policies of an experiment that names none."""


@dataclass(frozen=True, slots=True)
class FleetScenario:
    """One city with one fleet and one load; None where the city is left as it is."""

    city: str
    units: int | None = None
    load: float | None = None
    entitled: float | None = None

    @property
    def name(self) -> str:
        """In names of files."""
        parts = {"units": self.units, "load": self.load, "entitled": self.entitled}
        set_ones = [f"{name}_{value:g}" for name, value in parts.items() if value is not None]
        return "_".join([plain(self.city), *set_ones]).lstrip("_")


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
        names = [one.name for one in self.scenarios()]  # of files, as are those of policies
        if twice := [name for name in names if names.count(name) > 1]:
            raise InputError(
                f"scenario {twice[0]!r}: the files of two scenarios would have this name; give "
                "cities other names, and each of units, utilisation and entitled once"
            )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "FleetExperiment":
        """Read the file, or say in one line what is wrong with it."""
        tables = read_toml(path)
        with complaints_about(path):
            return cls.of(tables, Path(path).parent)

    @classmethod
    def of(cls, tables: Mapping[str, Any], folder: Path = Path()) -> "FleetExperiment":
        """From tables as the file has them; other files are looked for in ``folder``."""
        values = dict(tables)
        if "city" in values:
            if "cities" in values:
                raise InputError("both [city] and [cities.NAME]: give one or the other")
            values["cities"] = {UNNAMED: values.pop("city")}
        return built(cls, values, "", folder=folder)

    @property
    def tables(self) -> dict[str, Any]:
        """All that the results depend on, except what the files say of the cities."""
        left = ("cities", "folder")
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
            if name not in left
        }

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

    def scenarios(self) -> Iterator[FleetScenario]:
        """Every combination of city, fleet size, load and share of entitled calls."""
        for city in self.cities:
            for units in self.units or (None,):
                for load in self.utilisation or (None,):
                    for entitled in self.entitled or (None,):
                        yield FleetScenario(city, units, load, entitled)

    def city(self, name: str) -> FleetCity:
        """A city as its files have it."""
        where = "city" if name == UNNAMED else f"cities.{name}"
        city = city_from(self.cities[name], where, self.folder)
        return city if name == UNNAMED else city.changed(name=name)

    def ready(
        self, cities: Mapping[str, FleetCity], watch: Watch = unwatched
    ) -> dict[FleetScenario, FleetCity]:
        """The city of every scenario: its load first, then its fleet, then who is entitled."""
        loaded = {(name, None): city for name, city in cities.items()}
        found, scenarios = {}, list(self.scenarios())
        for k, one in enumerate(scenarios):
            watch("setting loads", k / len(scenarios))
            key: Any = one.city, one.load
            if one.load is not None and key not in loaded:
                loaded[key] = at_utilisation(cities[one.city], one.load, seed=self.seeds[0])
            city = loaded[key] if one.units is None else with_units(loaded[key], one.units)
            found[one] = city if one.entitled is None else city.changed(entitled=one.entitled)
        watch("setting loads", 1.0)
        return found

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


def plain(name: str) -> str:
    """A name as a part of a file's name."""
    return "_".join("".join(c if c.isalnum() else " " for c in name.lower()).split())
