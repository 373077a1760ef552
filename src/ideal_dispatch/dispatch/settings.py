"""Policies from the tables of an experiment file."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from ideal_dispatch.dispatch import baselines, controls, ideal, paper_ideal
from ideal_dispatch.dispatch.decision import Policy
from ideal_dispatch.dispatch.fitted import Fitted
from ideal_dispatch.dispatch.survival import USUAL_CURVE, survival_curve
from ideal_dispatch.dispatch.threshold import (
    ALWAYS,
    CapacityCost,
    ClinicalThreshold,
    ConstantThreshold,
    Threshold,
)
from ideal_dispatch.errors import InputError
from ideal_dispatch.records.toml_tables import built

KINDS: Mapping[str, type[Any]] = {
    "region": baselines.RegionPolicy,
    "router": baselines.RouterPolicy,
    "router-dual": baselines.RouterDual,
    "interval": baselines.IntervalPolicy,
    "quote-difference": controls.QuoteDifferencePolicy,
    "random": controls.RandomTrigger,
    "router-alternative": controls.RouterAlternativePolicy,
    "gap-other-depot": controls.GapTriggeredOtherDepot,
    "nominal-gap": paper_ideal.NominalGap,
    "learned-trigger": controls.LearnedTrigger,
    "paper-ideal": paper_ideal.PaperIdeal,
    "ideal": ideal.Ideal,
}
"""The policies by the ``kind`` of their table."""

_PARTS = {"model": "model", "drift": "drift", "gain": "gain", "estimator": "trigger"}
_NEEDED = {"estimator": "a trigger fitted on replays", "model": "a trained model"}


@dataclass(frozen=True, slots=True)
class _Clinical:
    """The keys of a clinical threshold's table."""

    cost: float
    curve: str = USUAL_CURVE
    full_units: int | None = None
    steepness: float = 1.0
    before_drive_s: float = 0.0
    bystander_cpr_s: float | None = None

    def threshold(self) -> ClinicalThreshold:
        curve = survival_curve(
            self.curve, before_drive_s=self.before_drive_s, bystander_cpr_s=self.bystander_cpr_s
        )
        return ClinicalThreshold(curve, CapacityCost(self.cost, self.full_units, self.steepness))


def policies_from(tables: Mapping[str, Any], parts: Fitted) -> tuple[Policy, ...]:
    """The policies of ``[policies.NAME]`` tables, in their order.

    A table has a ``kind`` (see :data:`KINDS`), a ``threshold`` and the fields of
    that policy; a ``time_limit_s`` of "none" leaves the search its time. What was
    fitted comes from ``parts``; ``use_drift`` true corrects quotes by the drift,
    ``use_reversion`` false takes them as they are, ``use_gain`` false leaves the gain
    to the forecast, and ``radius`` "paper" takes the model with the radius of the
    paper's loss.
    """
    return tuple(_policy(name, table, parts) for name, table in tables.items())


def threshold_from(value: Any, where: str = "threshold") -> Threshold:
    """A threshold: seconds, "always", or a table with cost and curve."""
    if isinstance(value, Mapping):
        try:
            return built(_Clinical, value, where).threshold()
        except InputError as error:
            told = str(error)
            raise InputError(told if where in told else f"{where}: {told}") from None
    if value == "always":
        return ALWAYS
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not math.isfinite(value):
        raise InputError(
            f'{where} {value!r}: seconds, "always", or a table with cost and curve is needed'
        )
    return ConstantThreshold(float(value))


def _policy(name: str, table: Any, parts: Fitted) -> Policy:
    where = f"policies.{name}"
    if not isinstance(table, Mapping):
        raise InputError(f"[{where}] must be a table of keys, not {table!r}")
    values = dict(table)
    kind = values.pop("kind", None)
    if kind not in KINDS:
        raise InputError(f"{where}.kind {kind!r}: choose one of {', '.join(KINDS)}")
    cls = KINDS[kind]
    known = {field.name for field in fields(cls)}
    given: dict[str, Any] = {"name": name}
    if "threshold" in known and "threshold" in values:
        given["threshold"] = threshold_from(values.pop("threshold"), f"{where}.threshold")
    if "time_limit_s" in known and values.get("time_limit_s") == "none":
        del values["time_limit_s"]
        given["time_limit_s"] = None
    for field, part in _PARTS.items():
        if field in known:
            given[field] = getattr(parts, part)
    if "model" in known and _choice(values, "radius", ("calibrated", "paper"), where) == "paper":
        given["model"] = parts.paper_model
    if "drift" in known:
        corrected = _flag(values, "use_drift", where, False)
        given["drift"] = parts.drift if corrected else None
        given["gain"] = parts.drift_gain if corrected else parts.gain
        if not _flag(values, "use_gain", where, True):
            given["gain"] = None
        if not _flag(values, "use_reversion", where, True) and given["gain"] is not None:
            given["gain"] = replace(given["gain"], reversion=(0.0, 0.0))
    for field, what in _NEEDED.items():
        if field in given and given[field] is None and kind != "ideal":
            raise InputError(f"[{where}] {kind} needs {what}; none was given")
    policy: Policy = built(cls, values, where, **given)
    return policy


def _choice(values: dict[str, Any], key: str, choices: tuple[str, ...], where: str) -> str:
    chosen = values.pop(key, choices[0])
    if chosen not in choices:
        raise InputError(f"{where}.{key} {chosen!r}: choose {' or '.join(choices)}")
    return str(chosen)


def _flag(values: dict[str, Any], key: str, where: str, default: bool) -> bool:
    flag = values.pop(key, default)
    if not isinstance(flag, bool):
        raise InputError(f"{where}.{key} {flag!r}: true or false is needed")
    return flag
