"""The calls that a page shows on maps: where a policy won, where it lost, and usual ones."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ideal_dispatch.evaluation.incident_map import incident_map, words
from ideal_dispatch.evaluation.judged import Judged
from ideal_dispatch.evaluation.strategies import VOLUMES
from ideal_dispatch.network import RoadNetwork

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_EACH = 4
"""Calls drawn for each reason to look at them."""


def _shown(judged: Judged) -> str:
    """The policy whose ambulances are drawn."""
    return judged.own or next(iter(judged.outcomes.policies))


def maps_in_words(judged: Judged) -> str:
    """What the maps of a page show."""
    world, share = judged.outcomes.worlds[-1], f"+{100 * VOLUMES[0]:.0f} %"
    return (
        f"Calls as {_shown(judged)} saw them in {world} traffic: the largest savings and losses at "
        f"{share}, and calls of usual length. The first ambulance is solid, the second dashed, "
        "drawn whether it was sent or not; where both drive one street its dashes lie on the "
        "solid line. Below the map, what the router promised on the way: time elapsed plus time "
        "still to go."
    )


def call_maps(
    judged: Judged, network: RoadNetwork, chosen: int | None, why: str
) -> "Iterator[tuple[str, Figure, str]]":
    """Names, maps and captions of the calls that stand out, first of the chosen one and ``why``."""
    outcomes = judged.outcomes
    policy, world = _shown(judged), outcomes.worlds[-1]
    own = judged.at(policy, VOLUMES[0])
    groups = standing_out(judged, policy, world)
    if chosen is not None:
        others = {why: [n for n in numbers if n != chosen] for why, numbers in groups.items()}
        groups = {why: [chosen], **others}
    entries = outcomes.entries({number for numbers in groups.values() for number in numbers})
    for reason, numbers in groups.items():
        for number in numbers:
            entry = entries[number]
            figure = incident_map(network, entry, policy, world)
            caption = f"{reason.capitalize()}. {words(entry, policy, world)}"
            if entry["decisions"][policy]["second"] is not None:
                goes = "it was sent" if own.sent[number] else "it was not sent"
                score_s = entry["decisions"][policy]["score_s"]
                caption += (
                    f" {policy} valued the second at {score_s:.1f} s; "
                    f"the threshold at {own.form} is {own.threshold_s:.1f} s, so {goes}."
                )
            yield outcomes.incidents[number], figure, caption


def standing_out(judged: Judged, policy: str, world: str) -> dict[str, list[int]]:
    """Incidents worth a look by reason: largest savings and losses at +25 %, and typical ones.

    A loss is against interval-selective at the same volume, or else a second
    that was not sent and would have saved.
    """
    share = VOLUMES[0]
    own = judged.at(policy, share)
    drives = judged.outcomes.policy(policy).drives[world]
    saved = np.where(own.sent, drives.primary_s - own.arrival_s[world], 0.0)
    reference = judged.outcomes.roles.get("interval")
    if reference is not None and reference != policy:
        lost = -judged.saved_s(policy, reference, share, world)
    else:
        lost = np.where(own.sent, 0.0, np.nan_to_num(drives.primary_s - drives.second_s))
    usual = np.where(own.sent, np.abs(drives.primary_s - np.median(drives.primary_s)), np.inf)
    found: dict[str, list[int]] = {}
    taken: set[int] = set()
    for reason, worth, least in (
        ("largest saving", saved, 0.5), ("largest loss", lost, 0.5), ("typical", -usual, -np.inf)
    ):  # fmt: skip
        order = [
            i
            for i in np.argsort(-worth, kind="stable").tolist()
            if worth[i] > least and i not in taken
        ]
        found[reason] = order[:_EACH]
        taken.update(found[reason])
    return found
