"""The ``[fleet]`` table of settings and experiments, and the priced threshold that follows."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from ideal_dispatch.dispatch.price import UNCALIBRATED, PriceTables
from ideal_dispatch.dispatch.recall import Recall
from ideal_dispatch.dispatch.survival import USUAL_CURVE, survival_curve
from ideal_dispatch.dispatch.threshold import PricedThreshold
from ideal_dispatch.errors import InputError
from ideal_dispatch.fleet.city import HOURS
from ideal_dispatch.fleet.inputs.places import cells_by_junctions
from ideal_dispatch.fleet.travel import connected_nodes
from ideal_dispatch.forecast import Model
from ideal_dispatch.forecast.response_time import ResponseModel
from ideal_dispatch.network import Depot, RoadNetwork
from ideal_dispatch.ranges import Positive, Range, Share, ZeroOrMore, check_fields
from ideal_dispatch.toml_tables import require

_CELLS = 500
_SAME_CALLS = 0.2  # a calibration holds for calls a day that differ by at most this share


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
        require(sum(self.units.values()) > 0, "units: none is on duty; give the units of depots")
        hours = len(self.by_hour)
        require(hours in (0, HOURS), f"by_hour: {hours} numbers; 24 are needed, or none")
        require(not hours or sum(self.by_hour) > 0.0, "by_hour: no hour has calls")
        require(
            self.entitled == 0.0 or self.entitled >= self.arrests,
            f"entitled {self.entitled}: no less than arrests, {self.arrests}, is needed",
        )


def priced_threshold(
    table: FleetTable,
    network: RoadNetwork,
    depots: Sequence[Depot],
    *,
    model: Model | None = None,
    responses: ResponseModel | None = None,
    folder: Path = Path(),
) -> PricedThreshold:
    """The rule that a second must save more lives than its absence costs the others.

    Calls come from where junctions are: nothing else is known of the people. Drives take the
    times of the ``model`` in an average context, or free flow without one. ``responses`` are as
    published where not given. Files of the table lie in ``folder``.
    """
    homes = [depot for depot in depots if not depot.on_road]
    names = [depot.name for depot in homes]
    if missing := [name for name in names if name not in table.units]:
        raise InputError(f"[fleet] units of {missing[0]} are missing; give 0 where it has none")
    if unknown := [name for name in table.units if name not in names]:
        raise InputError(
            f"[fleet] units of {unknown[0]}: no such depot; there are {', '.join(names)}"
        )
    nodes = connected_nodes(network)
    cells, weights = cells_by_junctions(network, nodes, _CELLS)
    times_s = network.free_flow_times_s
    if model is not None:
        average = np.full(len(model.encoding.columns), np.nan)  # unknown: the mean of training
        times_s = model.forecast(average, network).nominal_times
    drive_s = np.array([network.distances(times_s, depot.node)[cells] for depot in homes])
    if not np.isfinite(drive_s).all():
        cut_off = names[int((~np.isfinite(drive_s)).sum(axis=1).argmax())]
        raise InputError(f"[fleet] depot {cut_off}: no way leads to parts of the city; move it")
    responses = ResponseModel.published() if responses is None else responses
    by_hour = np.array(table.by_hour or np.ones(HOURS))
    # one curve for what a second saves and for its price: both count from the call
    curve = survival_curve(table.curve or USUAL_CURVE, before_drive_s=table.delay_s)
    on_duty = {name: table.units[name] for name in names}
    prices = PriceTables.of_deaths(
        responses.of(drive_s, station=np.array(names)[:, None]), weights,
        by_hour / by_hour.sum() * table.calls_per_day, sum(on_duty.values()), table.occupation_s,
        arrests=table.arrests, curve=curve,
        factors=_factors(table, folder / table.price) if table.price else UNCALIBRATED,
    )  # fmt: skip
    chance = table.arrests / (table.entitled or table.arrests)
    return PricedThreshold(prices, on_duty, table.recall, curve, chance, table.assist_s)


def _factors(table: FleetTable, file: Path) -> tuple[float, ...]:
    """The factors of a calibration, for prices in lives; that of another fleet is warned about."""
    from ideal_dispatch.fleet.calibration import Calibration  # brings the whole simulation

    found = Calibration.load(file)
    stations = {name for name, count in table.units.items() if count > 0}
    told = ""
    if set(found.stations) != stations:
        told = f"its stations ({', '.join(found.stations)}) are not those of [fleet] units"
    elif abs(found.calls_per_day / table.calls_per_day - 1.0) > _SAME_CALLS:
        told = f"{found.calls_per_day:.0f} calls a day, [fleet] has {table.calls_per_day:.0f}"
    if told:
        warnings.warn(
            f"{file}: the correction of prices was made for another fleet, {found.city}: {told}; "
            "make one for this fleet with `ideal fleet price`",
            stacklevel=3,
        )
    return found.factors["deaths"]
