"""What whole fleets say, for and against second ambulances, in sentences."""

import math
from collections.abc import Iterable, Iterator, Sequence

from ideal_dispatch.dispatch.recall import Recall
from ideal_dispatch.evaluation.fleet_report import RECALL_WORDS, STOOD_DOWN
from ideal_dispatch.evaluation.fleet_runs import (
    ALWAYS,
    PRICED,
    SURE,
    FleetRun,
    FleetRuns,
    Setting,
)

BOTH: tuple[Recall, ...] = ("none", STOOD_DOWN)
"""Never stood down, and at first arrival."""

_RULES: tuple[tuple[str, Recall], ...] = (
    (ALWAYS, "none"), (ALWAYS, STOOD_DOWN), (PRICED, STOOD_DOWN)
)  # fmt: skip


def by_entitled(runs: FleetRuns) -> list[list[list[Setting]]]:
    """Groups of settings that differ by load, city by city, for each share of entitled calls."""
    groups = runs.by_load()
    shares = sorted({group[0].entitled for group in groups})
    return [[group for group in groups if group[0].entitled == share] for share in shares]


def survivors(run: FleetRun) -> str:
    """More survivors, with their sign and standard error."""
    error = "" if run.paired_se is None else f" ± {run.paired_se:.1f}"
    return f"{run.more_survivors:+.1f}{error}".replace("-", "−")


def in_short(runs: FleetRuns) -> Iterator[str]:
    """What the front page says of these cities: sentences that hold whatever came out."""
    held = [
        f"{city}, for {_range([run.second_unit_minutes for _, run in none])} minutes if it is "
        f"never stood down, and for {_range([run.second_unit_minutes for _, run in kept])} if it "
        "turns round when the first one arrives"
        for city, settings in _cities(runs.settings)
        if (none := _under(settings, ALWAYS, "none"))
        and (kept := _under(settings, ALWAYS, STOOD_DOWN))
    ]
    if held:
        yield f"**How long the unit that is not first is held.** {'; '.join(held)}."
    for groups in by_entitled(runs):
        settings = [one for group in groups for one in group]
        for policy, recall in _RULES:
            if found := _under(settings, policy, recall):
                yield (
                    f"**{100 * settings[0].entitled:.0f} % of the calls entitled, {policy}, "
                    f"{RECALL_WORDS[recall]}.** The others wait longer by "
                    f"{_later_by_city(settings, policy, recall)}. "
                    f"{_counts([_gain(run) for _, run in found])}"
                )


def _cities(settings: Sequence[Setting]) -> list[tuple[str, list[Setting]]]:
    """Settings by city."""
    names = dict.fromkeys(one.city for one in settings)
    return [(name, [one for one in settings if one.city == name]) for name in names]


def _under(
    settings: Sequence[Setting], policy: str, recall: Recall
) -> list[tuple[Setting, FleetRun]]:
    """The runs of a rule, each with its setting."""
    return [(one, run) for one in settings if (run := one.find(policy, recall))]


def _later_by_city(settings: Sequence[Setting], policy: str, recall: Recall) -> str:
    told = []
    for city, some in _cities(settings):
        if found := _under(some, policy, recall):
            later = _known(one.others_later_s(run) for one, run in found)
            busy = _range([one.never.utilisation for one, _ in found], 100)
            longer = f"{_range(later, digits=1, sign='+')} s" if later else "–"
            told.append(f"{longer} in {city} ({busy} % busy)")
    return ", ".join(told)


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _gain(run: FleetRun) -> int | None:
    """Whether more survive than without seconds, as :func:`_sign` says it."""
    return _sign(run.more_survivors, run.paired_se, run)


def _counts(signs: Sequence[int | None]) -> str:
    """In how many fleets and loads more or fewer survive, beyond chance."""
    judged = len(signs) - signs.count(None)
    if not judged:
        return "There are too few years to say whether more survive."
    told = (
        f"Surely more survive in {signs.count(1)} and surely fewer in {signs.count(-1)} of "
        f"{judged} fleets and loads"
    )
    few = len(signs) - judged
    return f"{told}; {few} more have too few years." if few else f"{told}."


def _sign(difference: float, error: float | None, run: FleetRun) -> int | None:
    """1 where a difference is surely above zero, −1 below, 0 neither, None with too few years."""
    if error is None or not run.enough_years:
        return None
    return 0 if abs(difference) <= SURE * error else 1 if difference > 0.0 else -1


def findings(runs: FleetRuns) -> list[str]:
    """What the runs say, for and against, in sentences that hold whatever came out."""
    return [*_recall(runs), *_price(runs), *_earlier(runs), *_negative(runs)]


def _recall(runs: FleetRuns) -> Iterator[str]:
    """What standing down changes, share by share of entitled calls."""
    for groups in by_entitled(runs):
        pairs = [
            (one, none, kept)
            for group in groups for one in group
            if (none := one.find(ALWAYS, "none")) and (kept := one.find(ALWAYS, STOOD_DOWN))
            and none.unit_hours
        ]  # fmt: skip
        if pairs:
            none_s = _known(one.others_later_s(none) for one, none, _ in pairs)
            kept_s = _known(one.others_later_s(kept) for one, _, kept in pairs)
            freed = [1.0 - kept.unit_hours / none.unit_hours for _, none, kept in pairs]
            gain = [kept.more_survivors for _, _, kept in pairs]
            waited = (
                f"The mean wait of the others changes by {_range(kept_s, digits=1, sign='+')} s, "
                f"and by {_range(none_s, digits=1, sign='+')} s if the second is never stood down. "
            )
            yield (
                f"{100 * groups[0][0].entitled:.0f} % entitled, always two, {len(pairs)} fleets "
                "and loads: standing the unit that is not first down when the first arrives frees "
                f"{_range(freed, 100)} % of its time. {waited if none_s else ''}More "
                f"survivors, stood down: {_range(gain, digits=1, sign='+')} of 1,000."
            )


def _price(runs: FleetRuns) -> Iterator[str]:
    """Whether choosing by price beats always sending two, and a fixed cost."""
    for recall in BOTH:
        for rival in (ALWAYS, "fixed C"):
            signs = [
                _lead(own, other)
                for one in runs.settings
                if (own := one.find(PRICED, recall)) and (other := one.find(rival, recall))
            ]
            if signs:
                yield (
                    f"*{PRICED}* instead of *{rival}*, {RECALL_WORDS[recall]}. {_counts(signs)} "
                    "Both differences to never are taken as independent, which is cautious."
                )


def _lead(own: FleetRun, other: FleetRun) -> int | None:
    """1 where surely more survive, −1 where fewer do, 0 where that may be chance."""
    error = math.hypot(own.paired_se or 0.0, other.paired_se or 0.0)
    return _sign(own.more_survivors - other.more_survivors, error, own)


def _earlier(runs: FleetRuns) -> Iterator[str]:
    """What recall on the way, before anybody arrives, adds."""
    pairs = [
        (early, kept)
        for one in runs.settings
        if (early := one.find(PRICED, "worth"))
        and (kept := one.find(PRICED, STOOD_DOWN))
        and kept.unit_hours
    ]
    if pairs:
        freed = [1.0 - early.unit_hours / kept.unit_hours for early, kept in pairs]
        gain = [early.more_survivors - kept.more_survivors for early, kept in pairs]
        yield (
            "Standing down earlier, by the price on the way, changes that time by "
            f"{_range([-share for share in freed], 100, sign='+')} % and the survivors by "
            f"{_range(gain, digits=1, sign='+')} of 1,000 (*priced C*). "
            f"{_counts([_lead(*pair) for pair in pairs])}"
        )


def _negative(runs: FleetRuns) -> Iterator[str]:
    """Where always sending two costs lives, or that it does so nowhere."""
    found = [(one, run) for one in runs.settings for run in one.chosen((ALWAYS,))]
    signs = [_gain(run) for _, run in found]
    harmed = [
        f"{one.name} ({RECALL_WORDS[run.recall]}: {survivors(run)})"
        for (one, run), sign in zip(found, signs, strict=True) if sign == -1
    ]  # fmt: skip
    judged = len(signs) - signs.count(None)
    yield (
        f"Always sending two surely costs lives among the arrests in {len(harmed)} of {judged} "
        f"runs that have enough years{''.join(f'; {one}' for one in harmed)}."
    )


def _range(values: Sequence[float], times: float = 1.0, digits: int = 0, sign: str = "") -> str:
    ends = (round(times * end, digits) + 0.0 for end in (min(values), max(values)))  # no −0.0
    low, high = (f"{end:{sign}.{digits}f}".replace("-", "−") for end in ends)
    return low if low == high else f"{low} to {high}"
