"""The tables of judged races."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.evaluation.race_judgement import OURS, SHARES, JudgedRaces
from ideal_dispatch.evaluation.race_predictors import BOOSTING
from ideal_dispatch.evaluation.race_study import RaceStudy
from ideal_dispatch.evaluation.table import Cell, Column, Table

_DAYS = "Intervals hold 95 %, whole days drawn again."
_FEWEST = 15  # races in a row of a breakdown; smaller groups are put together
_BINS = 8
_DISTRICTS = 12

Mask = npt.NDArray[np.bool_]


def race_tables(study: RaceStudy) -> dict[str, Table]:
    """All tables by name, in the order of the page; those without rows are left out."""
    judged = study.judged
    made = [
        volume_table(judged), predictor_table(study), probability_table(judged),
        gain_table(judged), window_table(study), *breakdowns(study),
    ]  # fmt: skip
    return {table.name: table for table in made if table.rows}


def volume_table(judged: JudgedRaces) -> Table:
    """What every ranking saves where a share of races gets a second unit."""
    names = sorted(judged.rankings, key=lambda name: -judged.saved_at(name, (0.5,))[0])
    names.sort(key=lambda name: name != OURS)
    columns = [Column("ranking"), Column("AUC", 2, arrow="↑")]
    columns += [Column(f"+{100 * s:.0f} %: s", arrow="↑") for s in SHARES]
    columns += [Column(f"+{100 * s:.0f} %: % of all", 0, percent=True) for s in SHARES[:2]]
    columns.append(Column("+50 %: behind ours, s", signed=True))
    rows: list[tuple[Cell, ...]] = []
    for name in names:
        behind = None if name == OURS else judged.saved_beyond(OURS, name, 0.5)
        kept = judged.shares_kept(name, SHARES[:2])
        rows.append((name, judged.auc(name), *judged.saved_at(name).tolist(), *kept, behind))
    note = (
        f"{len(judged):,} races of {judged.days:,} days. With a second unit on every call "
        f"{judged.saved_s.mean():.1f} s are saved per call. {_DAYS}"
    )
    title = "Seconds saved per call where a share of the calls gets a second unit"
    return Table("volumes", title, tuple(columns), tuple(rows), frozenset({0}), note)


def predictor_table(study: RaceStudy) -> Table:
    """How well arrivals were predicted, and how late the unit that was expected first came."""
    judged = study.judged
    best = min(judged.expected_s, key=lambda name: judged.mean_primary_s(name).mean)
    columns = (
        Column("predictor"), Column("mean primary s", arrow="↓"), Column("later than ours s", 2),
        Column("MAE s, races", arrow="↓"), Column("MAE s, all arrivals", arrow="↓"),
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            judged.mean_primary_s(name),
            None if name == OURS else judged.primary_beyond(name, OURS),
            judged.mae_s(name),
            study.arrivals_mae_s(name),
        )
        for name in judged.expected_s
    ]
    note = (
        f"The unit that a predictor expects first is its primary; {best} has the earliest. "
        f"Errors are of whole responses, from dispatch to scene, over both units of the races and "
        f"over all {study.arrivals:,} arrivals of the judged days. {_DAYS}"
    )
    title = "Who expects arrivals best"
    return Table("predictors", title, columns, tuple(rows), frozenset({0}), note)


def probability_table(judged: JudgedRaces) -> Table:
    """Whether the second comes first as often as expected."""
    columns = (
        Column("races by expected probability"), Column("races"),
        Column("expected %", percent=True), Column("second came first %", percent=True),
    )  # fmt: skip
    rows = [
        (
            f"{100 * judged.second_first[rows].min():.0f}–"
            f"{100 * judged.second_first[rows].max():.0f} %",
            int(rows.sum()),
            float(judged.second_first[rows].mean()),
            judged.ratio(judged.came_first & rows, rows),
        )
        for rows in equal_groups(judged.second_first)
    ]
    title = "How often the second came first, by how often it was expected to"
    return Table("probability", title, columns, tuple(rows), note=_DAYS)


def gain_table(judged: JudgedRaces) -> Table:
    """Whether the second saves as many seconds as expected."""
    columns = (
        Column("races by expected gain"), Column("races"), Column("expected s per call"),
        Column("saved s per call"),
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = [
        (
            f"{judged.gain_s[rows].min():.1f}–{judged.gain_s[rows].max():.1f} s",
            int(rows.sum()),
            float(judged.gain_s[rows].mean()),
            judged.ratio(np.where(rows, judged.saved_s, 0.0), rows),
        )
        for rows in equal_groups(judged.gain_s)
    ]
    rows.append(("all", len(judged), float(judged.gain_s.mean()), judged.mean(judged.saved_s)))
    ratio = judged.gain_ratio
    title = "Seconds that the second saved, by how many were expected"
    note = (
        f"Expected over saved seconds: {ratio.mean:.2f} "
        f"[{ratio.low:.2f}, {ratio.high:.2f}]. {_DAYS}"
    )
    return Table("gain", title, columns, tuple(rows), note=note)


def equal_groups(values: FloatArray, groups: int = _BINS) -> list[Mask]:
    """Races in groups of about the same size, from low to high values."""
    order = np.argsort(values, kind="stable")
    found = []
    for part in np.array_split(order, min(groups, max(values.size // _FEWEST, 1))):
        mask = np.zeros(values.size, bool)
        mask[part] = True
        found.append(mask)
    return found


def window_table(study: RaceStudy) -> Table:
    """Every window of a study that rolls forward."""
    judged = study.judged
    columns = (
        Column("judged"), Column("arrivals learned from"), Column("races"),
        Column("second first %", percent=True), Column("saved s, all"),
        Column("saved s, +50 %"), Column("expected / saved", 2),
        Column("MAE s, all arrivals"), Column("boosting's"),
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = []
    for number, one in enumerate(study.windows):
        here = study.window == number
        part = part_of(judged, here)
        off = {
            name: float(np.abs(one.predicted_s[name] - one.took_s).mean())
            for name in (OURS, BOOSTING)
            if name in one.predicted_s
        }
        rows.append(
            (one.window.name, one.learned, len(part), float(part.came_first.mean()),
             float(part.saved_s.mean()), float(part.saved_at(OURS, (0.5,))[0]),
             part.gain_ratio.mean, off[OURS], off.get(BOOSTING))
        )  # fmt: skip
    title = "Each part was judged by what was known before it"
    return Table("windows", title, columns, tuple(rows))


def part_of(judged: JudgedRaces, rows: Mask) -> JudgedRaces:
    """Some of the races."""
    tables = (
        {name: values[rows] for name, values in table.items()}
        for table in (judged.expected_s, judged.predicted_s, judged.scores)
    )
    arrays = (judged.took_s, judged.day), (judged.gain_s, judged.second_first)
    first, last = ([values[rows] for values in some] for some in arrays)
    return JudgedRaces(*first, *tables, *last, judged.seed)  # type: ignore[arg-type, call-arg]


# --- how often, by how much -------------------------------------------------------------


def breakdowns(study: RaceStudy) -> list[Table]:
    """How often and by how much the second came first, by distance, hour and district."""
    made = []
    straight_km = study.straight_m / 1000.0
    if not np.isnan(straight_km).any():
        judged = study.judged
        near, far = judged.of_primary(straight_km), judged.of_second(straight_km)
        made.append(
            _breakdown(study, "distance", "how much farther the second starts, straight line",
                       _bands(far - near, (0.0, 0.5, 1.0, 2.0), "km", "nearer than the primary"))
        )  # fmt: skip
    hours = study.of_call("hour")
    bands = ((0, 6), (6, 9), (9, 12), (12, 16), (16, 19), (19, 24))
    by_hour = [(f"{a}–{b} h", (hours >= a) & (hours < b)) for a, b in bands]
    made.append(_breakdown(study, "hour", "hour of the day", by_hour))
    for name, words in (("district", "district"), ("call_kind", "kind of call")):
        column = study.of_call(name)
        if np.unique(column).size > 1:
            made.append(_breakdown(study, name, words, _names(column)))
    station = study.responses.station[study.races.rows]
    primary = study.judged.of_primary(station)
    if np.unique(primary).size > 1:
        made.append(_breakdown(study, "station", "station of the primary", _names(primary)))
    return made


def _breakdown(
    study: RaceStudy, name: str, words: str, groups: Iterable[tuple[str, Mask]]
) -> Table:
    """A row a group; no rows where there are not two groups."""
    judged = study.judged
    columns = (
        Column(words), Column("races"), Column("second first %", 0, percent=True),
        Column("then by s", 0), Column("saved s per call"), Column("expected s per call"),
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = []
    for label, here in groups:
        if here.any():
            ahead = judged.saved_s[here & judged.came_first]
            rows.append(
                (label, int(here.sum()), judged.ratio(judged.came_first & here, here),
                 float(ahead.mean()) if ahead.size else None,
                 judged.ratio(np.where(here, judged.saved_s, 0.0), here),
                 float(judged.gain_s[here].mean()))
            )  # fmt: skip
    title = f"How often and by how much the second came first, by {words}"
    shown = tuple(rows) if len(rows) > 1 else ()
    return Table(f"by-{name.replace('_', '-')}", title, columns, shown, note=_DAYS)


def _bands(
    values: FloatArray, limits: Sequence[float], unit: str, below: str
) -> list[tuple[str, Mask]]:
    found = [(below, values < limits[0])]
    for low, high in pairwise(limits):
        found.append((f"{low:g}–{high:g} {unit}", (values >= low) & (values < high)))
    return [*found, (f"{limits[-1]:g} {unit} and more", values >= limits[-1])]


def _names(values: npt.NDArray[Any]) -> list[tuple[str, Mask]]:
    """The most frequent names, then the rest together."""
    names, counts = np.unique(values, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    often = [i for i in order if counts[i] >= _FEWEST and names[i]][:_DISTRICTS]
    found = [(str(names[i]), values == names[i]) for i in often]
    rest = ~np.isin(values, names[often])
    return [*found, (f"{names.size - len(often)} others", rest)] if rest.any() else found
