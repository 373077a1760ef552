"""The ``[fleet]`` table of a service's settings or of a file of its own: plain values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from ideal_dispatch.dispatch.recall import Recall
from ideal_dispatch.ranges import Positive, Range, Share, ZeroOrMore, check_fields
from ideal_dispatch.toml_tables import require

HOURS = 24


@dataclass(frozen=True, slots=True)
class FleetTable:
    """What the price of a unit follows from.

    ``units`` are on duty, by the name of their depot; what is free of them at a call is known
    then. ``calls_per_day`` are all that take a unit, for ``occupation_s`` each; ``by_hour`` says
    how they fall on the 24 hours of a day, evenly without. ``arrests`` is the share of cardiac
    arrests among them, ``entitled`` the share of the calls that a second is considered for: the
    arrests alone where it is 0. ``delay_s`` pass between a call and its dispatch. ``recall``
    says when the later unit is stood down; where never, it stays at the scene for ``assist_s``.
    ``curve`` says how survival falls with time, waalewijn-2001 without. ``price`` is a file of
    ``ideal fleet price`` that calibrates the prices for this fleet.
    """

    units: Mapping[str, int]
    calls_per_day: Positive
    occupation_s: Positive = 3600.0
    by_hour: tuple[ZeroOrMore, ...] = ()
    arrests: Annotated[float, Range(0, 1, above=True)] = 0.03
    entitled: Share = 0.0
    recall: Recall = "first arrival"
    delay_s: ZeroOrMore = 60.0
    assist_s: ZeroOrMore = 600.0
    curve: str = ""
    price: str = ""

    def __post_init__(self) -> None:
        check_fields(self)
        for name, count in self.units.items():
            require(0 <= count <= 1000, f"units of {name} {count}: 0 to 1000 is needed")
        require(sum(self.units.values()) > 0, "units: nobody is on duty; give the units of depots")
        hours = len(self.by_hour)
        require(hours in (0, HOURS), f"by_hour: {hours} numbers; 24 are needed, or none")
        require(not hours or sum(self.by_hour) > 0.0, "by_hour: no hour has calls")
        require(
            self.entitled == 0.0 or self.entitled >= self.arrests,
            f"entitled {self.entitled}: no less than arrests, {self.arrests}, is needed",
        )
