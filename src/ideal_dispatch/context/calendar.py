"""The city's calendar: its clock and its public holidays."""

import difflib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import lru_cache
from types import MappingProxyType
from zoneinfo import ZoneInfo, available_timezones

from ideal_dispatch.context.context import Context, Weather, require_zone
from ideal_dispatch.errors import InputError

USUAL_CATEGORIES: Mapping[str, tuple[str, ...]] = {"HK": ("optional",)}
"""Categories of the ``holidays`` library that make up what people call public holidays.

Only where its own default differs: in Hong Kong that is the statutory holidays
of the Employment Ordinance, without Good Friday; the general holidays, when
offices and schools close, are its "optional" ones.
"""

_NO_WEATHER = Weather()
_NOTHING: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Calendar:
    """Local time and public holidays of one city.

    ``country`` is an ISO code of two or three letters, ``subdivision`` a state
    or province where holidays differ by it. Several ``categories`` of the
    ``holidays`` library are joined: a day is a holiday if any of them has it.
    ``years`` are those whose holidays were looked up: see :meth:`looked_up`.
    """

    time_zone: str
    country: str
    subdivision: str | None = None
    categories: tuple[str, ...] | None = None
    years: Mapping[int, frozenset[date]] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        zone(self.time_zone)
        country = _country_code(self.country)
        object.__setattr__(self, "country", country)
        usual = USUAL_CATEGORIES.get(country, ())
        given = usual if self.categories is None else self.categories
        names = (given,) if isinstance(given, str) else tuple(given)
        subdivision, categories = _checked(country, self.subdivision or "", names)
        object.__setattr__(self, "subdivision", subdivision or None)
        object.__setattr__(self, "categories", categories)

    def local(self, at: datetime) -> datetime:
        """The same moment on the city's clock."""
        require_zone(at)
        return at.astimezone(zone(self.time_zone))

    def is_holiday(self, day: date) -> bool:
        """Whether ``day``, a date of the city, is a public holiday."""
        if isinstance(day, datetime):
            day = self.local(day).date()
        known = self.years.get(day.year)
        return day in (self._holidays(day.year) if known is None else known)

    def is_holiday_eve(self, day: date) -> bool:
        """Whether the day after ``day`` is a public holiday."""
        if isinstance(day, datetime):
            day = self.local(day).date()
        return self.is_holiday(day + timedelta(days=1))

    def looked_up(self, first_year: int, last_year: int) -> "Calendar":
        """The same with the holidays of these years: sent to another process, it needs no library.

        That one is imported with all its countries, which takes a quarter of a second. Years
        that it does not know stay unknown.
        """
        years: dict[int, frozenset[date]] = {}
        for year in range(first_year, last_year + 1):
            with suppress(InputError):
                years[year] = self._holidays(year)
        return replace(self, years=years)

    def _holidays(self, year: int) -> frozenset[date]:
        return _holidays(self.country, self.subdivision, self.categories or (), year)

    def context(
        self, at: datetime, weather: Weather = _NO_WEATHER, extra: Mapping[str, float] = _NOTHING
    ) -> Context:
        """The context of a call at ``at``, an aware time of any zone."""
        local = self.local(at)
        holiday, eve = self.is_holiday(local.date()), self.is_holiday_eve(local.date())
        return Context(local, holiday, eve, weather, extra)


@lru_cache(maxsize=64)
def zone(name: str) -> ZoneInfo:
    """The time zone called ``name``, or an :class:`InputError` with names that are close."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError, TypeError):  # unknown, odd characters, a folder
        pass
    known = {entry.casefold(): entry for entry in sorted(available_timezones())}
    close = difflib.get_close_matches(str(name).casefold(), known, n=3, cutoff=0.7)
    hint = f"did you mean {' or '.join(known[entry] for entry in close)}? " if close else ""
    raise InputError(
        f"time zone {name!r} is not known; {hint}"
        "use a name such as Asia/Hong_Kong or America/New_York"
    )


def _country_code(name: str) -> str:
    from holidays.registry import COUNTRIES

    codes = {code.casefold(): one[1] for one in COUNTRIES.values() for code in one[1:3]}
    words = {module.replace("_", ""): one[1] for module, one in COUNTRIES.items()}
    asked = str(name).replace(" ", "").casefold()
    if asked in codes:
        return codes[asked]
    hint = f"did you mean {words[asked]}? " if asked in words else ""
    raise InputError(
        f"country {name!r} has no known holidays; {hint}"
        f"use one of {', '.join(sorted(set(codes.values())))}"
    )


@lru_cache(maxsize=64)
def _checked(
    country: str, subdivision: str, categories: tuple[str, ...]
) -> tuple[str, tuple[str, ...]]:
    """Subdivision as a code, and categories that exist."""
    import holidays

    entity = holidays.country_holidays(country)
    if subdivision:
        codes = {code.casefold(): code for code in entity.subdivisions}
        codes |= {alias.casefold(): code for alias, code in entity.subdivisions_aliases.items()}
        if subdivision.casefold() not in codes:
            known = ", ".join(entity.subdivisions) or "none; leave it out"
            raise InputError(
                f"subdivision {subdivision!r} of {country} is not known; possible: {known}"
            )
        subdivision = codes[subdivision.casefold()]
    possible = sorted(entity.supported_categories)
    for category in categories:
        if category not in possible:
            raise InputError(
                f"holiday category {category!r} is not known for {country}; "
                f"possible: {', '.join(possible)}"
            )
    return subdivision, tuple(sorted(set(categories or (entity.default_category or "public",))))


@lru_cache(maxsize=4096)
def _holidays(
    country: str, subdivision: str | None, categories: tuple[str, ...], year: int
) -> frozenset[date]:
    import holidays

    entity = holidays.country_holidays(
        country, subdiv=subdivision, years=year, categories=categories
    )
    if not entity.start_year <= year <= entity.end_year:
        raise InputError(
            f"holidays of {country} are known for {entity.start_year} to {entity.end_year}, "
            f"not for {year}; check the date"
        )
    return frozenset(entity)
