"""Incidents worth a look: where a policy won, where it lost, and what is usual."""

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.evaluation.result_tables import Judged
from ideal_dispatch.evaluation.strategies import VOLUMES

_EACH = 4


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
        lost = own.arrival_s[world] - judged.at(reference, share).arrival_s[world]
    else:
        lost = np.where(own.sent, 0.0, np.nan_to_num(drives.primary_s - drives.second_s))
    usual = np.where(own.sent, np.abs(drives.primary_s - np.median(drives.primary_s)), np.inf)
    found: dict[str, list[int]] = {}
    taken: set[int] = set()
    for reason, worth, least in (
        ("largest saving", saved, 0.5), ("largest loss", lost, 0.5), ("typical", -usual, -np.inf)
    ):  # fmt: skip
        order = [i for i in _falling(worth) if worth[i] > least and i not in taken]
        found[reason] = order[:_EACH]
        taken.update(found[reason])
    return found


def _falling(worth: FloatArray) -> list[int]:
    order: list[int] = np.argsort(-worth, kind="stable").tolist()
    return order
