"""Response times fitted on a unit log, else on trips, by likelihood.

The responses of one incident are independent once the incident's shared part Z is known;
Z is normal and is integrated out by Gauss–Hermite quadrature. A unit that was recalled
before it arrived counts with the probability that it would have taken longer. Where the
log has the moment at which a unit left, turnout and drive count apart, else their sum.
Factors by station, hour and kind are drawn to one, by as much as their own variation in
the log. A few responses surprise and have a separate wide spread: one forgotten button
must not widen every forecast. The spreads are fitted last, where there are enough on
units that were sent together: a unit alone at a call may have come upon it, one that was
sent later may know the way, and a decision always concerns two at once. Trips are drives
without a turnout; their spread is fitted in the same way.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ideal_dispatch.arrays import BoolArray, FloatArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.forecast.response_time import Effects, ResponseModel
from ideal_dispatch.learning.splits import local_days
from ideal_dispatch.learning.training import TrainedModel, one_thread
from ideal_dispatch.records.responses import Responses
from ideal_dispatch.records.trips import RESPONSE, TARGETS, Trips

LEAST_ROWS = 50
_LEAST_ON_ROAD = 20
_ROUNDS = 4  # of factors and their variation in turn
_FARTHEST = math.log(5.0)  # a fifth of the median, or five times: buttons pressed late
_SURPRISE, _WIDE = 0.05, 0.5  # where fitting begins
_PRIOR_SPREAD = 0.7  # of a number's logarithm around what is published
_VARIATION = 0.1  # of factors, to begin with
_FACTORS = ("station", "hour", "kind")
_COMMON = ("shared", "surprise", "wide")  # numbers of both parts
_SPREADS = ("turnout_spread", "drive_spread", "slack_s", "spread", *_COMMON)
_LEAST_SEVERAL = 200  # responses
_TOGETHER = np.timedelta64(5, "s")

Numbers = dict[str, float]
Tensors = dict[str, torch.Tensor]
_NODES, _WEIGHTS = (torch.from_numpy(part) for part in np.polynomial.hermite_e.hermegauss(9))
_LOG_WEIGHTS = (_WEIGHTS / _WEIGHTS.sum()).log()


def fit_responses(
    responses: Responses,
    path_s: npt.ArrayLike,
    rows: BoolArray | None = None,
    *,
    drive: str = "",
) -> ResponseModel:
    """The response times of greatest likelihood, given each row's seconds along its path.

    ``path_s`` is the sum of the learned times of roads, without the constant of a trip; NaN
    where a place is not known. ``drive`` names the source of these times. A row counts if the
    unit arrived, or was recalled and had not arrived when another one did, and if it has no
    remark. Only ``rows`` are learned from, by default all; when a unit of a call arrived is
    taken from all.
    """
    path = np.asarray(path_s, np.float64)
    if path.shape != (len(responses),):
        raise InputError(f"response times: {path.size} drives for {len(responses)} responses")
    rows = np.ones(len(responses), np.bool_) if rows is None else rows
    known = np.where(responses.arrived, responses.response_s, _not_yet_s(responses))
    used = np.flatnonzero((known > 0.0) & (responses.remark == 0) & rows)
    if used.size < LEAST_ROWS:
        raise InputError(
            f"response times: {used.size} usable responses; at least {LEAST_ROWS} are needed"
        )
    log = _Log.of(responses.select(used), path[used], known[used])
    usual = ResponseModel.published()
    on_road = responses.turnout_s[rows & responses.from_road & (responses.turnout_s > 0.0)]
    road_s = usual.road_turnout_s
    if on_road.size >= _LEAST_ON_ROAD:
        road_s = float(np.median(on_road))
    found: Numbers = {}
    whole: Numbers = {}
    factors: dict[str, Numbers] = {}
    whole_factors: dict[str, Numbers] = {}
    with one_thread():
        if bool((~log.unplaced | ~log.turnout_s.isnan()).any()):
            found, factors = _fit_placed(log, road_s, usual)
        if log.unplaced.any():
            arrived = log.response_s[log.unplaced & log.arrived]
            start = {
                "seconds": float(arrived.median()) if arrived.numel() else 400.0,
                "spread": 0.3,
            }
            common = {} if log.unplaced.all() else {name: found[name] for name in _COMMON}
            whole, whole_factors = _fit(log, partial(_unplaced, log), start, usual, common)
    turnout = usual.turnout
    if found:
        turnout = Effects(found.pop("turnout_s"), found.pop("turnout_spread"), **factors)
    if bool(log.unplaced.all()):  # there were turnouts at most
        found = {name: whole[name] for name in _COMMON}
    return replace(
        usual,
        turnout=turnout,
        road_turnout_s=road_s,
        **found,
        unplaced=Effects(whole["seconds"], whole["spread"], **whole_factors) if whole else None,
        source=f"{used.size:,} responses of {responses.provenance.get('source', 'a log')}",
        until=str(responses.select(used).date.max()),
        rows=int(used.size),
        drive=drive,
    )


def responses_of(model: TrainedModel) -> ResponseModel:
    """How much drives vary about a trained model, by the trips that it did not learn from.

    As published where they are too few.
    """
    unseen = np.concatenate([model.split.validation, model.split.test])
    drive_s = model.predicted_s - model.trip_constant_s
    if (drive_s[unseen] > 0.0).sum() < LEAST_ROWS:
        return ResponseModel.published()
    return fit_trips(model.data.trips, drive_s, unseen, drive=model.checksum)


def fit_trips(
    trips: Trips, drive_s: npt.ArrayLike, rows: npt.NDArray[np.int64], *, drive: str = ""
) -> ResponseModel:
    """How much drives vary about ``drive_s``, the model's seconds for each trip.

    Of the numbered ``rows`` alone is learned: give trips that the model has not seen. The
    shared part is what trips of one call have in common, units that were sent to one place
    within a minute; where such calls are few, what trips of one quarter of an hour have in
    common. Turnout stays as published, unless times were taken from the dispatch.
    """
    path = np.asarray(drive_s, np.float64)
    if path.shape != (len(trips),):
        raise InputError(f"response times: {path.size} drives for {len(trips)} trips")
    used = rows[path[rows] > 0.0]
    if used.size < LEAST_ROWS:
        raise InputError(
            f"response times: {used.size} usable trips; at least {LEAST_ROWS} are needed"
        )
    assert trips.target is not None
    assert trips.at is not None
    whole = trips.target[used] == TARGETS.index(RESPONSE)
    at, destination = trips.at[used], trips.destination[used]
    calls, several = _groups(destination, at, np.timedelta64(60, "s"))
    if several.sum() < _LEAST_SEVERAL:
        quarter, unknown = at.astype("M8[s]").astype(np.int64) // 900, np.isnat(at)
        quarter[unknown] = -1 - np.arange(int(unknown.sum()))  # alone
        calls = np.unique(quarter, return_inverse=True)[1].reshape(-1)
        several = np.zeros(used.size, np.bool_)
    hours = np.where(whole, trips.contexts[used, trips.encoding.columns.index("hour")], np.nan)
    names, level = np.unique(np.nan_to_num(hours, nan=-1.0).astype(int), return_inverse=True)
    nothing = torch.zeros(used.size, dtype=torch.int64)
    log = _Log(
        incident=torch.tensor(calls),
        path_s=torch.tensor(path[used]),
        # a drive alone: as of a unit on the road whose turnout, a second, is known
        turnout_s=torch.tensor(np.where(whole, np.nan, 1.0)),
        response_s=torch.tensor(trips.observed_s[used] + ~whole),
        arrived=torch.ones(used.size, dtype=torch.bool),
        on_road=torch.tensor(~whole),
        several=torch.tensor(several),
        levels=(nothing, torch.from_numpy(level.reshape(-1)), nothing),
        names=(("",), tuple("" if name < 0 else str(name) for name in names), ("",)),
    )
    usual = ResponseModel.published()
    with one_thread():
        found, factors = _fit_placed(log, usual.road_turnout_s, usual)
    turnout = Effects(found.pop("turnout_s"), found.pop("turnout_spread"), **factors)
    known = not np.isnat(at).any()
    numbers: dict[str, Any] = found
    return replace(
        usual,
        turnout=turnout if whole.any() else usual.turnout,
        **numbers,
        source=f"{used.size:,} trips" + ("" if whole.any() else ", turnout as published"),
        until=str(date.fromordinal(int(local_days(trips)[used].max()))) if known else "",
        rows=int(used.size),
        drive=drive,
    )


def _groups(
    key: npt.NDArray[Any], at: npt.NDArray[np.datetime64], within: np.timedelta64
) -> tuple[npt.NDArray[np.int64], BoolArray]:
    """Rows of equal key that follow one another ``within`` a time, as numbered groups.

    The second array marks the rows of groups of several.
    """
    order = np.lexsort((at, key))
    near = (key[order][1:] == key[order][:-1]) & (np.diff(at[order]) <= within)
    group, several = np.zeros(at.size, np.int64), np.zeros(at.size, np.bool_)
    group[order[1:]] = np.cumsum(~near)
    several[order[1:][near]] = several[order[:-1][near]] = True
    return group, several


def _not_yet_s(responses: Responses) -> FloatArray:
    """Seconds for which recalled units had certainly not arrived.

    That is until they were free, or another was there. What they did later is unknown: a unit
    that is not needed any more may drive on, and its arrival need not be logged. NaN
    where no unit arrived, or at an unknown time.
    """
    calls, never = responses.calls, np.datetime64("9999-01-01", "s")
    there = np.full(calls.max(initial=-1) + 1, never)
    np.minimum.at(there, calls[responses.arrived], responses.on_scene[responses.arrived])
    others_s = (there[calls] - responses.dispatched) / np.timedelta64(1, "s")
    waiting = responses.recalled & (there[calls] != never)
    return np.where(waiting, np.minimum(others_s, responses.held_s), np.nan)


@dataclass(frozen=True, slots=True)
class _Log:
    """Responses as tensors; NaN is not known. Without ``arrived``, T is greater than stated.

    ``several`` were sent together with another unit of the incident.
    """

    incident: torch.Tensor
    path_s: torch.Tensor
    turnout_s: torch.Tensor
    response_s: torch.Tensor
    arrived: torch.Tensor
    on_road: torch.Tensor
    several: torch.Tensor
    levels: tuple[torch.Tensor, ...]
    names: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, rows: Responses, path_s: FloatArray, seconds: FloatArray) -> "_Log":
        # a unit that left after it was recalled, or before it was sent, has no turnout
        turnout = np.where(
            (rows.turnout_s > 0) & (rows.turnout_s < seconds), rows.turnout_s, np.nan
        )
        levels, names = [], []
        for column in (rows.station, rows.hour, rows.kind):
            found, place = np.unique(np.asarray(column).astype(str), return_inverse=True)
            names.append(tuple(found.tolist()))
            levels.append(torch.from_numpy(place.reshape(-1)))
        path, left, known = (
            torch.tensor(column, dtype=torch.float64) for column in (path_s, turnout, seconds)
        )
        return cls(
            torch.tensor(rows.calls.reshape(-1)),
            path,
            left,
            known,
            torch.tensor(rows.arrived),
            torch.tensor(rows.from_road),
            torch.tensor(_groups(rows.calls, rows.dispatched, _TOGETHER)[1]),
            tuple(levels),
            tuple(names),
        )

    @property
    def unplaced(self) -> torch.Tensor:
        return self.path_s.isnan()


def _fit_placed(
    log: _Log, road_turnout_s: float, usual: ResponseModel
) -> tuple[Numbers, dict[str, Numbers]]:
    """The numbers of turnout and drive, each where it is known, else of their sum."""
    start = {
        "turnout_s": usual.turnout.seconds,
        "turnout_spread": usual.turnout.spread,
        "drive_scale": usual.drive_scale,
        "drive_spread": usual.drive_spread,
        "slack_s": usual.slack_s,
    }
    # without a stamp, what a drive takes beside its roads cannot be distinguished from turnout
    if bool((~log.turnout_s.isnan() & ~log.unplaced).any()):
        start["beside_s"] = 10.0
    return _fit(log, partial(_placed, log, road_turnout_s), start, usual)


def _placed(
    log: _Log, road_turnout_s: float, number: Tensors, factor: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-likelihood of turnout and drive by row and node of Z; the weight of log ``factor``."""
    spread = number["turnout_spread"]
    stamped, placed = ~log.turnout_s.isnan(), ~log.unplaced
    # the turnout of a unit on the road is one number, which needs no likelihood
    at_station = ~log.on_road
    median = number["turnout_s"] * factor
    off = torch.nan_to_num(log.turnout_s, nan=1.0).log() - median.log()
    likely = torch.where(stamped & at_station, _density(off, spread, number), 0.0)[:, None]
    beside = number.get("beside_s", torch.zeros((), dtype=torch.float64))
    drive = number["drive_scale"] * torch.nan_to_num(log.path_s, nan=60.0) + beside
    square = (number["drive_spread"] * drive) ** 2 + number["slack_s"] ** 2
    leaving = torch.where(at_station, median, road_turnout_s) * (0.5 * spread**2).exp()
    leaving_square = leaving**2 * torch.expm1(spread**2)
    mean = torch.where(stamped, drive, drive + leaving)
    own = (torch.where(stamped, square, square + leaving_square) / mean**2).log1p().sqrt()
    seconds = log.response_s - torch.where(stamped, log.turnout_s, 0.0)
    shared = number["shared"] * drive / mean
    drove = _at_nodes(seconds, mean, own, shared, log.arrived, number)
    weight = torch.where(placed, (leaving / (mean * own)) ** 2, 0.0)
    weight = torch.where(stamped, 1.0 / spread**2, weight) * at_station
    return likely + torch.where(placed[:, None], drove, 0.0), weight


def _unplaced(
    log: _Log, number: Tensors, factor: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same of whole responses, for rows that have no drive."""
    own, shared = number["spread"], number["shared"]
    mean = number["seconds"] * factor * (0.5 * (own**2 + shared**2)).exp()
    whole = torch.full_like(mean, 1.0) * own, torch.full_like(mean, 1.0) * shared
    likely = _at_nodes(log.response_s, mean, *whole, log.arrived, number)
    return torch.where(log.unplaced[:, None], likely, 0.0), log.unplaced / own**2


def _fit(
    log: _Log,
    likelihood: Callable[[Tensors, torch.Tensor], tuple[torch.Tensor, torch.Tensor]],
    start: Numbers,
    usual: ResponseModel,
    known: Numbers | None = None,
) -> tuple[Numbers, dict[str, Numbers]]:
    """The numbers and the factors of greatest likelihood, with their priors.

    Numbers begin at ``start`` and are above zero; those that are ``known`` stay unchanged.
    Rounds of maximising alternate with estimates of how much factors vary: by their squares,
    and by what the rows leave open of them.
    """
    common = {"shared": usual.shared, "surprise": _SURPRISE, "wide": _WIDE} | (known or {})
    common["surprise"] /= 1.0 - common["surprise"]  # its odds
    prior = {name: math.log(value) for name, value in (start | common).items()}
    numbers = {
        name: torch.tensor(value, dtype=torch.float64, requires_grad=True)
        for name, value in prior.items()
    }
    factors = [
        torch.zeros(len(names), dtype=torch.float64, requires_grad=True) for names in log.names
    ]
    variation = [_VARIATION] * len(factors)
    count = int(log.incident.max()) + 1

    def rows() -> tuple[torch.Tensor, torch.Tensor]:
        levels = zip(factors, log.levels, strict=True)
        total = torch.stack([row[level] for row, level in levels]).sum(dim=0)
        return likelihood({name: number.exp() for name, number in numbers.items()}, total.exp())

    def maximise(what: list[torch.Tensor], several: bool = False) -> None:
        search = torch.optim.LBFGS(
            what, max_iter=100, tolerance_change=1e-7, line_search_fn="strong_wolfe"
        )

        def loss() -> torch.Tensor:
            search.zero_grad()
            likely, _ = rows()
            if several:
                likely = torch.where(log.several[:, None], likely, 0.0)
            by_incident = torch.zeros(count, likely.shape[1], dtype=likely.dtype)
            by_incident = by_incident.index_add(0, log.incident, likely)
            value = -(by_incident + _LOG_WEIGHTS).logsumexp(dim=1).sum()
            for name, number in numbers.items():
                value = value + 0.5 * ((number - prior[name]) / _PRIOR_SPREAD) ** 2
            for row, spread in zip(factors, variation, strict=True):
                value = value + 0.5 * ((row / spread) ** 2).sum()
            value = value / log.incident.numel()
            value.backward()  # type: ignore[no-untyped-call]
            return value

        search.step(loss)  # type: ignore[no-untyped-call]

    free = {name: number for name, number in numbers.items() if name not in (known or ())}
    for _ in range(_ROUNDS):
        maximise([*free.values(), *factors])
        with torch.no_grad():
            _, weight = rows()
            for place, (row, level) in enumerate(zip(factors, log.levels, strict=True)):
                seen = torch.zeros_like(row).index_add(0, level, weight.to(row.dtype))
                square = row**2 + 1.0 / (seen + variation[place] ** -2)
                variation[place] = max(float(square.mean().sqrt()), 1e-3)
    if int(log.several.sum()) >= _LEAST_SEVERAL:
        maximise([number for name, number in free.items() if name in _SPREADS], several=True)
    tables = {
        name: {key: round(math.exp(f), 4) for key, f in zip(keys, row.tolist(), strict=True) if key}
        for name, keys, row in zip(_FACTORS, log.names, factors, strict=True)
    }
    found = {name: math.exp(number.item()) for name, number in numbers.items()}
    return found | {"surprise": found["surprise"] / (1.0 + found["surprise"])}, tables


def _at_nodes(
    seconds: torch.Tensor, mean: torch.Tensor, own: torch.Tensor, shared: torch.Tensor,
    arrived: torch.Tensor, number: Tensors,
) -> torch.Tensor:  # fmt: skip
    """Log-likelihood of rows for each node of Z: their density, or the chance of taking longer."""
    middle = mean.log() - 0.5 * (own**2 + shared**2)
    off = seconds.log()[:, None] - middle[:, None] - shared[:, None] * _NODES
    own = own[:, None]
    later = _mixed(torch.special.log_ndtr(-off / own), torch.special.log_ndtr(
        -off / torch.hypot(own, number["wide"])), number)  # fmt: skip
    return torch.where(arrived[:, None], _density(off, own, number), later)


def _density(off: torch.Tensor, spread: torch.Tensor, number: Tensors) -> torch.Tensor:
    """The logarithm of the density, but for a constant, so far off the middle."""
    off = off.clamp(-_FARTHEST, _FARTHEST)
    wide = torch.hypot(spread, number["wide"])
    usual, surprise = (-0.5 * (off / width) ** 2 - width.log() for width in (spread, wide))
    return _mixed(usual, surprise, number)


def _mixed(usual: torch.Tensor, surprise: torch.Tensor, number: Tensors) -> torch.Tensor:
    """Both logarithms, weighted by the odds of a surprise."""
    odds = number["surprise"]
    return torch.logaddexp(usual, odds.log() + surprise) - odds.log1p()
