"""The parts of the trips: to learn from, to hold out, and to test on."""

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import first_where, numbers
from ideal_dispatch.errors import InputError
from ideal_dispatch.learning.parameters import SplitBy
from ideal_dispatch.ranges import Range
from ideal_dispatch.records import Trips

SHARES = (0.7, 0.1, 0.2)
PARTS = ("train", "validation", "test")

IndexArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Rows of each part, ascending; every trip is in exactly one."""

    train: IndexArray
    validation: IndexArray
    test: IndexArray

    @property
    def parts(self) -> tuple[IndexArray, IndexArray, IndexArray]:
        """All three, in the order of :data:`PARTS`."""
        return self.train, self.validation, self.test

    def __repr__(self) -> str:
        return "Split(" + ", ".join(f"{getattr(self, p).size:,} {p}" for p in PARTS) + ")"


def split(
    trips: Trips,
    shares: tuple[float, float, float] = SHARES,
    seed: int = 0,
    by: SplitBy = "trip",
) -> Split:
    """A random split of the trips, or of whole days so that no day is in two parts.

    Days are those of the trips' time zone; parts come as near to the shares as whole
    days allow, and none is empty that has a share. Trips of one day share its traffic:
    a split by trip tests how well a known day is completed, a split by day how well
    a new day is forecast.
    """
    wanted: npt.NDArray[np.float64] = numbers(shares, np.float64, "shares")
    if wanted.shape != (3,) or not (wanted >= 0).all() or abs(wanted.sum() - 1.0) > 1e-9:
        raise InputError(
            f"shares {shares}: three numbers of zero or more that sum to one are needed, "
            "for train, validation and test"
        )
    if not wanted[0]:
        raise InputError(f"shares {shares}: the training part must not be empty")
    Range(whole=True).check(seed, "seed")
    if by == "trip":
        group, sizes = np.arange(len(trips)), np.ones(len(trips), np.int64)
    elif by == "day":
        _, group, sizes = np.unique(local_days(trips), return_inverse=True, return_counts=True)
    else:
        raise InputError(f"split by {by!r}: it must be 'trip' or 'day'")
    needed = int((wanted > 0).sum())
    if sizes.size < needed:
        raise InputError(
            f"{sizes.size} {by}{'' if sizes.size == 1 else 's'} cannot be split into {needed} "
            "parts; give more trips"
        )
    order = np.random.default_rng(seed).permutation(sizes.size)
    ends = np.concatenate([[0], np.cumsum(sizes[order])])
    cuts, start = [], 0  # groups in random order, cut where the parts are nearest to their shares
    for number in range(2):
        least, later = int(wanted[number] > 0), int((wanted[number + 1 :] > 0).sum())
        nearest = int(np.abs(ends - wanted[: number + 1].sum() * ends[-1]).argmin())
        start = min(max(nearest if least else start, start + least), sizes.size - later)
        cuts.append(start)
    part = np.empty(sizes.size, np.int64)
    part[order] = np.searchsorted(cuts, np.arange(sizes.size), side="right")
    return Split(*(np.flatnonzero(part[group] == number) for number in range(len(PARTS))))


def default_split(trips: Trips, seed: int, by: SplitBy | None = None) -> Split:
    """70/10/20; by day where all days are known and there are ten, unless ``by`` is given."""
    if by is None:
        known = not np.isnat(np.asarray(trips.at)).any()
        by = "day" if known and np.unique(local_days(trips)).size >= 10 else "trip"
    return split(trips, seed=seed, by=by)


def local_days(trips: Trips) -> IndexArray:
    """The calendar day of every trip in its time zone, as a number."""
    zone, at = ZoneInfo(trips.time_zone), np.asarray(trips.at)
    unknown = first_where(np.isnat(at))
    if unknown is not None:
        raise InputError(f"trip {unknown}: its time is not known; split by trip instead")
    return np.array([datetime.fromtimestamp(s, zone).toordinal() for s in at.astype(int).tolist()])
