"""A run with its thresholds set: what tables and figures are made of."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ideal_dispatch.arrays import BoolArray, FloatArray
from ideal_dispatch.dispatch.survival import SurvivalCurve
from ideal_dispatch.errors import InputError
from ideal_dispatch.evaluation.metrics import TARGET_S, RegretSummary, cvar, regret_s
from ideal_dispatch.evaluation.outcomes import BASELINES, STORY, Outcomes
from ideal_dispatch.evaluation.strategies import (
    BEATING,
    VOLUMES,
    Strategy,
    as_decided,
    at_threshold,
    at_volume,
    dual,
    is_selective,
    matched_arrival_s,
    sends_one,
    single,
    threshold_where,
    thresholds,
)
from ideal_dispatch.ranges import Checked, Positive, Share


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Operating points of a policy, from no second ambulance to all of them.

    ``extra`` is second ambulances per incident; regrets are against the paper's candidates.
    """

    extra: FloatArray
    mean_regret_s: FloatArray
    cvar95_regret_s: FloatArray
    mean_arrival_s: FloatArray

    @classmethod
    def of(cls, points: Iterable[Strategy], best_s: FloatArray) -> "Curve":
        rows = []
        for point in points:
            late = regret_s(point.arrival_s, best_s)
            rows.append((point.extra, late.mean(), cvar(late, 0.95), point.arrival_s.mean()))
        return cls(*np.array(rows).T)


@dataclass(frozen=True, slots=True)
class Goal(Checked):
    """A coverage target: the ``share`` of calls to be reached in less than ``within_s``."""

    share: Share
    within_s: Positive = TARGET_S

    def met(self, arrival_s: FloatArray) -> BoolArray:
        """Which calls are reached in time."""
        in_time: BoolArray = arrival_s < self.within_s
        return in_time


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """A run, and the thresholds at which its policies are compared.

    ``calibration`` is the run of other days on which thresholds for a volume
    are set; without one they are set on the run itself. With a ``goal``, tables say which
    thresholds meet it.
    """

    outcomes: Outcomes
    calibration: Outcomes | None = None
    curve: SurvivalCurve | None = None
    seed: int = 0
    goal: Goal | None = None

    @property
    def main(self) -> tuple[str, ...]:
        """Policies with a part in the story, in its order, then those without a role."""
        roles = self.outcomes.roles
        return (*(roles[role] for role in STORY if role in roles), *self.outcomes.free)

    @property
    def others(self) -> tuple[str, ...]:
        """Every other policy: controls and variants."""
        return tuple(name for name in self.outcomes.policies if name not in self.main)

    def rows(self, policies: Iterable[str]) -> list[Strategy]:
        """The rows of the given policies in a table, one policy after the other.

        A policy whose scores are all equal does what it decided. Every other one
        is shown at each of :data:`VOLUMES` and as dual; interval-selective is not
        shown as dual where router dual is, which is the same; and a policy whose
        primary is not always the router's is also shown without a second. The last
        row of a policy is :meth:`as_set`, where there is one.
        """
        found = []
        for name in policies:
            found += [*self._rows_of(name), *filter(None, [self.as_set(name)])]
        return found

    def as_set(self, name: str) -> Strategy | None:
        """A policy at its own threshold, where that sends some second units but not all.

        Candidates have it, and every policy whose table gives a threshold.
        """
        own = as_decided(self.outcomes.policy(name))
        shown = name in self.candidates or name in self.outcomes.thresholds_given
        return own if shown and 0.0 < own.extra < 1.0 else None

    def _rows_of(self, name: str) -> list[Strategy]:
        one, roles = self.outcomes.policy(name), self.outcomes.roles
        if not is_selective(one):
            nearest = self.outcomes.nearest_region and name == roles.get("region")
            return [as_decided(one, "nearest at free flow" if nearest else "")]
        rows = [self.at(name, share) for share in VOLUMES]
        router = self.outcomes.policies.get(roles.get("router", ""))
        if router is not None and not np.array_equal(one.primary_s, router.primary_s):
            rows.insert(0, single(one))
        if name != roles.get("interval") or "router-dual" not in roles:
            rows.append(dual(one))
        return rows

    def at(self, policy: str, share: float) -> Strategy:
        """A policy at a volume; 1 is dual."""
        one = self.outcomes.policy(policy)
        if share >= 1.0:
            return dual(one)
        trained = None if self.calibration is None else self.calibration.policy(policy)
        return at_volume(one, share, trained)

    def regret(self, row: Strategy) -> RegretSummary:
        """The regret of a row against the paper's candidates."""
        return RegretSummary.of(row.arrival_s, self.outcomes.best_s["paper"])

    def rate(self, row: Strategy) -> float:
        """The candidate-optimal rate: the share of incidents no later than the best candidate."""
        return self.regret(row).optimal

    def strongest(self) -> Strategy | None:
        """The baseline with the highest candidate-optimal rate; of equals the first."""
        roles = self.outcomes.roles
        rows = self.rows(roles[role] for role in BASELINES if role in roles)
        return max(rows, key=self.rate, default=None)

    def beating(self, policy: str) -> Strategy | None:
        """A policy where it first exceeds the strongest baseline's candidate-optimal rate.

        [IDEAL] Figures 4 and 7, the point of lower volume: of all thresholds the one that sends the
        fewest second units. As in the paper it is found on the incidents that it is judged on, so
        it is a little too good. None where no threshold does, or where there is no baseline.
        """
        rival, best_s = self.strongest(), self.outcomes.best_s["paper"]
        if rival is None:
            return None
        rate, one = self.rate(rival), self.outcomes.policy(policy)
        threshold_s = threshold_where(
            one, lambda arrival_s: regret_s(arrival_s, best_s) <= 0.0, lambda share: share > rate
        )
        return None if threshold_s is None else at_threshold(one, threshold_s, BEATING)

    def covering(self, policy: str, goal: Goal) -> Strategy | None:
        """A policy at the highest threshold that met a goal in ``calibration``.

        The paper leaves it to the dispatch centre to tune the threshold by its coverage
        target ([IDEAL] section 6.2). None where no threshold met it.
        """
        found_on = self.calibration or self.outcomes
        if found_on.world != self.outcomes.world:
            raise InputError(
                f"{found_on.name}: the calibration is of {found_on.world} traffic; a coverage "
                f"target needs one of {self.outcomes.world} traffic"
            )
        threshold_s = threshold_where(
            found_on.policy(policy), goal.met, lambda share: share >= goal.share
        )
        one = self.outcomes.policy(policy)
        return None if threshold_s is None else at_threshold(one, threshold_s)

    def curves(self, policy: str) -> dict[str, "Curve"]:
        """The points of all its thresholds by the policy's name; of its own, by that label.

        One that has no choice of volume has a single point.
        """
        one = self.outcomes.policy(policy)
        if is_selective(one):
            points = [at_threshold(one, threshold) for threshold in thresholds(one)]
        else:
            points = [single(one) if sends_one(one) else dual(one)]
        best_s = self.outcomes.best_s["paper"]
        found = {policy: Curve.of(points, best_s)}
        if (own := self.as_set(policy)) is not None:
            found[own.label] = Curve.of([own], best_s)
        return found

    def saved_s(self, policy: str, reference: str, share: float) -> FloatArray:
        """By how much each call is reached sooner than under ``reference`` at the same target."""
        return self.at(reference, share).arrival_s - self.at(policy, share).arrival_s

    def matched_saved_s(self, policy: str, reference: str, share: float) -> FloatArray:
        """The same with exactly ``share`` second ambulances per call from both."""
        other, own = (self.outcomes.policy(name) for name in (reference, policy))
        return matched_arrival_s(other, share) - matched_arrival_s(own, share)

    @property
    def candidates(self) -> tuple[str, ...]:
        """The policies to be judged: the paper's, ours, and those without a role."""
        roles, free = self.outcomes.roles, self.outcomes.free
        return (*(roles[role] for role in ("paper", "ideal") if role in roles), *free)

    @property
    def contenders(self) -> tuple[str, ...]:
        """Policies that choose and are held against the baselines: the paper's forms, and ours."""
        able, named = self.rivals(), (*self.printed, *self.candidates)
        return tuple(name for name in dict.fromkeys(named) if name in able)

    @property
    def own(self) -> str | None:
        """The policy a report is about.

        It is ours, else the first without a role, else the paper's, else any that selects.
        """
        roles, free = self.outcomes.roles, self.outcomes.free
        named = (roles.get("ideal"), *free, roles.get("paper"), *self.rivals())
        return next((name for name in named if name is not None), None)

    @property
    def shown(self) -> str:
        """The policy whose ambulances are drawn on maps."""
        return self.own or next(iter(self.outcomes.policies))

    def rivals(self, reference: str | None = None) -> list[str]:
        """Policies that choose who gets a second, but for the one they are compared with."""
        return [
            name
            for name, policy in self.outcomes.policies.items()
            if name != reference and is_selective(policy)
        ]

    @property
    def printed(self) -> tuple[str, ...]:
        """Every form of the paper's policy, the one with a part in the story first."""
        main = self.outcomes.roles.get("paper")
        forms = [name for name, claim in self.outcomes.claims.items() if claim == "paper"]
        return tuple(sorted(forms, key=lambda name: name != main))

    def bold(self, policies: Iterable[str]) -> frozenset[int]:
        """Numbers of the rows to make stand out."""
        return frozenset(i for i, policy in enumerate(policies) if policy == self.own)
