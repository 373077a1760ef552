"""Policies from the tables of an experiment file."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, get_args

from ideal_dispatch.dispatch import baselines, controls, ideal, paper_ideal, quarter_hours
from ideal_dispatch.dispatch.candidate import ALL_KINDS
from ideal_dispatch.dispatch.decision import Policy
from ideal_dispatch.dispatch.fitted import (
    USUAL,
    FittedParts,
    Form,
    Radius,
    SecondKinds,
    Trained,
    in_order,
)
from ideal_dispatch.dispatch.survival import USUAL_CURVE, survival_curve
from ideal_dispatch.dispatch.threshold import (
    ALWAYS,
    CapacityCost,
    ClinicalThreshold,
    ConstantThreshold,
    Threshold,
)
from ideal_dispatch.errors import InputError
from ideal_dispatch.toml_tables import built

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
    "quarter-hour": quarter_hours.QuarterHourPolicy,
    "paper-ideal": paper_ideal.PaperIdeal,
    "ideal": ideal.Ideal,
}
"""The policies by the ``kind`` of their table."""

_PARTS = {"estimator": "trigger", "hours": "hours", "gain": "hours_gain"}
_NEEDED = {
    "estimator": "a trigger fitted on replays",
    "model": "a trained model",
    "hours": "ratios of quarter hours",
    "gain": "a gain fitted on quotes corrected by the quarter hour",
}
_WORDS = {
    "practical": "network trained in our practical mode",
    "paper": "network trained by Algorithm 1",
}
_RADIUS_WORDS = {
    "calibrated": "radius by the quantile loss, conformally scaled",
    "paper": "radius by the mean absolute loss",
}
_PRINTED: Form = ("paper", "paper")


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


def policies_from(tables: Mapping[str, Any], parts: FittedParts) -> tuple[Policy, ...]:
    """The policies of ``[policies.NAME]`` tables, in their order.

    A table has a ``kind`` (see :data:`KINDS`), a ``threshold`` and the fields of
    that policy; a ``time_limit_s`` of "none" leaves the search its time. What was
    fitted comes from ``parts``; ``use_drift`` true corrects quotes by the drift,
    ``use_reversion`` false takes them as they are, ``use_gain`` false leaves the gain
    to the forecast. ``trained`` ("practical" or "paper") and ``radius``
    ("calibrated" or "paper") choose among the forms of the model: both are "paper"
    for paper-ideal unless told, and our own for all others. Where ``parts`` has
    a single model and the table does not choose, it is that one as it is.
    """
    return tuple(_policy(name, table, parts) for name, table in tables.items())


def check_policies(tables: Mapping[str, Any]) -> None:
    """Refuse tables that :func:`policies_from` would refuse once all is fitted."""
    any_part: Any = object()
    forms: Any = {(trained, radius): any_part for trained in _WORDS for radius in _RADIUS_WORDS}
    policies_from(
        tables,
        FittedParts(any_part, trigger=any_part, models=forms, hours=any_part, hours_gain=any_part),
    )


@dataclass(frozen=True, slots=True)
class NeededParts:
    """What the policies of some tables must be fitted with."""

    models: frozenset[Form]
    gains: frozenset[tuple[SecondKinds, bool]]
    drift: bool
    hours: bool
    trigger: bool


def needed_parts(tables: Mapping[str, Any]) -> NeededParts:
    """The parts that :func:`policies_from` will look for."""
    models, gains, drift = set(), set(), False
    found = [(name, dict(table)) for name, table in tables.items() if isinstance(table, Mapping)]
    for name, table in found:
        kind, where = str(table.get("kind")), f"policies.{name}"
        if kind in KINDS and "model" in {field.name for field in fields(KINDS[kind])}:
            models.add(_form(table, kind, where)[0])
        if kind == "ideal":
            corrected = _flag(table, "use_drift", where, False)
            drift |= corrected
            gains.add((in_order(_kinds(table)), corrected))
    used = {table.get("kind") for _, table in found}
    return NeededParts(
        frozenset(models), frozenset(gains), drift, "quarter-hour" in used,
        "learned-trigger" in used,
    )  # fmt: skip


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


def _policy(name: str, table: Any, parts: FittedParts) -> Policy:
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
    if "model" in known:
        form, chosen = _form(values, kind, where)
        model = parts.model if form == USUAL else parts.models.get(form)
        alone = not chosen and not parts.models
        given["model"] = parts.model if alone else model
        if "form" in known:
            words = f"{_WORDS[form[0]]}, {_RADIUS_WORDS[form[1]]}"
            given["form"] = "the model that was given" if alone else words
    if "drift" in known:
        corrected = _flag(values, "use_drift", where, False)
        given["drift"] = parts.drift if corrected else None
        given["gain"] = parts.gain_for(_kinds(values), corrected)
        if not _flag(values, "use_gain", where, True):
            given["gain"] = None
        if not _flag(values, "use_reversion", where, True) and given["gain"] is not None:
            given["gain"] = replace(given["gain"], reversion=(0.0, 0.0))
    for field, what in _NEEDED.items():
        if field in given and given[field] is None and kind != "ideal":
            raise InputError(f"[{where}] {kind} needs {what}; none was given")
    policy: Policy = built(cls, values, where, **given)
    return policy


def _form(values: dict[str, Any], kind: str, where: str) -> tuple[Form, bool]:
    """The form of the model that a table takes, and whether it says so itself."""
    usual = _PRINTED if kind == "paper-ideal" else USUAL
    chosen = "trained" in values or "radius" in values
    trained = values.pop("trained", usual[0])
    radius = values.pop("radius", usual[1])
    for key, value, choices in (
        ("trained", trained, get_args(Trained)), ("radius", radius, get_args(Radius)),
    ):  # fmt: skip
        if value not in choices:
            raise InputError(f"{where}.{key} {value!r}: choose {' or '.join(choices)}")
    return (trained, radius), chosen


def _kinds(values: Mapping[str, Any]) -> SecondKinds:
    """The kinds of second that a table of our form considers; nonsense is refused later."""
    given = values.get("seconds", ALL_KINDS)
    return tuple(given) if isinstance(given, list | tuple) else (given,)


def _flag(values: dict[str, Any], key: str, where: str, default: bool) -> bool:
    flag = values.pop(key, default)
    if not isinstance(flag, bool):
        raise InputError(f"{where}.{key} {flag!r}: true or false is needed")
    return flag
