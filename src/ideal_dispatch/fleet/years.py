"""A year of a fleet under every policy: a piece of an experiment's work."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from ideal_dispatch.dispatch.price import UNCALIBRATED
from ideal_dispatch.dispatch.recall import Recall
from ideal_dispatch.fleet.calls import WARM_UP_DAYS, Calls, counted_from_s, days_of, draw_calls
from ideal_dispatch.fleet.city import FleetCity
from ideal_dispatch.fleet.experiment import Case, Rule, plain
from ideal_dispatch.fleet.inputs.desk import Desk
from ideal_dispatch.fleet.log import CALLS, calls_file, log_file
from ideal_dispatch.fleet.policies import PolicyRule, PolicyTable
from ideal_dispatch.fleet.results import deaths_of, entry
from ideal_dispatch.fleet.simulation import SecondRule, Simulator, summed
from ideal_dispatch.fleet.units import Log, State


class Piece(NamedTuple):
    """A year of a case."""

    case: Case
    seed: int
    year: int
    logged: bool

    @property
    def file(self) -> str:
        """Its name in the folder of years."""
        return f"{self.case.name}_seed_{self.seed}_year_{self.year:04d}.json".lstrip("_")


class Done(NamedTuple):
    """What a year came to, by policy and recall, and the files of its log."""

    piece: Piece
    runs: list[dict[str, Any]]
    logs: dict[str, bytes]


@dataclass(frozen=True, eq=False)
class Fleets:
    """Every case made ready, and the rules that are tried on it: what workers share."""

    cities: Mapping[Case, FleetCity]
    rules: Mapping[str, Rule]
    runs: Sequence[tuple[str, Recall]]
    days: int
    factors: tuple[float, ...] = UNCALIBRATED
    desks: Mapping[str, Desk] = field(default_factory=dict)

    @cached_property
    def simulators(self) -> dict[Case, Simulator]:
        """A simulator for each case."""
        return {case: Simulator(city, self.factors) for case, city in self.cities.items()}

    @cached_property
    def made(self) -> dict[tuple[Case, str, Recall], PolicyRule]:
        """Dispatch policies that were made for a case: they keep the paths that they asked for."""
        return {}

    def run(self, case: Case, calls: Calls, policy: str, recall: Recall) -> tuple[State, Log]:
        """Calls under one policy."""
        rule, simulator = self.rules[policy], self.simulators[case]
        if isinstance(rule, SecondRule):
            return simulator.run(calls, rule.compiled(recall))
        if isinstance(rule, PolicyTable):
            key = case, policy, recall
            if key not in self.made:
                self.made[key] = rule.of(simulator, self.desks[case.city], recall)
            rule = self.made[key]
        return simulator.run(calls, rule, recall)

    def year(self, piece: Piece) -> Done:
        """One year under every policy."""
        case, simulator = piece.case, self.simulators[piece.case]
        listed = simulator.city.listed is not None
        days = days_of(simulator.city) if listed else self.days + WARM_UP_DAYS
        calls = draw_calls(simulator.city, piece.seed, piece.year, days=days)
        from_s = counted_from_s(simulator.city, days)
        runs, logs, never = [], {}, None
        for policy, recall in self.runs:
            state, log = self.run(case, calls, policy, recall)
            deaths = deaths_of(simulator.city, calls, log, from_s)
            never = deaths if never is None else never
            came_to = entry(summed(simulator, calls, state, log, days), deaths - never)
            runs.append({"policy": policy, "recall": recall, **came_to})
            if piece.logged:
                logs[log_name(policy, recall)] = log_file(simulator.city, calls, log)
        if piece.logged:
            logs[CALLS] = calls_file(simulator.city, calls)
        return Done(piece, runs, logs)


def log_name(policy: str, recall: str) -> str:
    """The file of a policy's log."""
    return f"{plain(policy)}_{plain(recall)}.csv.gz"
