"""Is a second ambulance worth sending? From an agency's records to the decision at a call.

The first decision, in the city that comes with the package::

    import ideal_dispatch as ideal

    city = ideal.harbour_city()
    situation = city.call(node=700)
    decision = ideal.decide(situation, model=city.model, responses=city.responses)
    print(decision.explain())

Contents, by task:

A city and its roads
    harbour_city        the fictional city that comes with the package
    City                roads, depots and model; City.from_files for your own, City.call for a call
    RoadNetwork         roads and shortest paths; Depot, Path
An agency's records
    prepare_records     a file of past calls, or a DataFrame, to trips; AgencySettings
    Trips               what a model learns from; Trip, one of them
    Responses           what units did at past calls, from a unit log: read, load, trips, races;
                        Response, one of them
A model
    fit                 a model of travel times and their uncertainty, from trips, with its scores
                        and history; its save(folder) writes a report too; TrainingSettings
    Model               load one; ask it for the scenario set of a context
    Context, Calendar   hour, weekday, holiday; Weather and WeatherValue
    ResponseModel       when a unit will be there: turnout and drive; ResponseTime, its
                        distribution, and ResponsePair, two units of one incident
A decision
    decide              who goes to a call, and whether a second ambulance does
    Incident            a call: its node, and when it came in
    Situation           what a dispatcher knows at the call; observe makes one from any router
                        and a Readiness, who could go
    Decision            the answer, with all that was computed; its explain() says why
    Worth               what a second ambulance is expected to save, part of a decision
A plug-in of your own (docs/plugins.md)
    Policy              what a rule for decisions must have; it names each ambulance's Assignment
    Threshold           how much a second ambulance must be worth; ConstantThreshold is a number
    RouteQuote          what a traffic source answers
    IdealError          the base of all errors; UnreachableError says that there is no way, and
                        WeatherError is that of a weather provider
The method
    ScenarioSet         travel times that are plausible together; burg_divergence, minimise_linear
    optimistic_gap      how much sooner a second ambulance could plausibly arrive, with a proof
    OptimisticGap       its answer; explain_gap says it in roads and seconds
    pairwise_gap        the same for each pair of depots, as in the paper
    target_radius       how uncertain a past trip says that times are; TargetRadius, its answer
A replay
    Experiment          calls, days and policies of a replay, from a TOML file
    run_experiment      fit and replay it into a folder
    run_replay          the given calls in a Replay: traffic, depots and policies
    Outcomes            a finished replay in arrays; load one
    Judged              its policies at equal volumes
    replay_report       its Report: numbers, tables, figures; save it as a page
A whole fleet
    simulate_fleet      years of a fleet under a policy, and what second units cost the others
    FleetCity           stations, units, hospitals, calls and work; harbour_fleet is Port Almery's
    SecondRule          who gets a second unit: never, always, random, fixed or priced

Tables become pandas DataFrames by ``to_frame()``: Trips, Responses, RoadNetwork, Outcomes,
Decision, the result of a fleet and the tables of a report. Everything else is in the packages
below; docs/api.md has it in full.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from ideal_dispatch.lazy import on_first_use

if TYPE_CHECKING:
    from ideal_dispatch.cities import City, harbour_city
    from ideal_dispatch.context import Calendar, Context, Weather, WeatherValue
    from ideal_dispatch.dispatch import (
        Assignment,
        Decision,
        Incident,
        Policy,
        Readiness,
        Situation,
        decide,
        observe,
    )
    from ideal_dispatch.dispatch.candidate import Worth
    from ideal_dispatch.dispatch.threshold import ConstantThreshold, Threshold
    from ideal_dispatch.errors import IdealError, UnreachableError, WeatherError
    from ideal_dispatch.evaluation.judged import Judged
    from ideal_dispatch.evaluation.outcomes import Outcomes
    from ideal_dispatch.evaluation.replay_report import replay_report
    from ideal_dispatch.fleet.city import FleetCity
    from ideal_dispatch.fleet.inputs.city_files import harbour_fleet
    from ideal_dispatch.fleet.run import simulate_fleet
    from ideal_dispatch.fleet.simulation import SecondRule
    from ideal_dispatch.forecast import Model
    from ideal_dispatch.forecast.response_time import ResponseModel, ResponsePair, ResponseTime
    from ideal_dispatch.gap import OptimisticGap, explain_gap, optimistic_gap, pairwise_gap
    from ideal_dispatch.learning import TrainingSettings, fit
    from ideal_dispatch.network import Depot, Path, RoadNetwork
    from ideal_dispatch.records import Response, Responses, Trip, Trips
    from ideal_dispatch.records.agency import AgencySettings
    from ideal_dispatch.records.prepare import prepare_records
    from ideal_dispatch.replay.experiment import Experiment
    from ideal_dispatch.replay.run import run_replay
    from ideal_dispatch.replay.simulation import Replay
    from ideal_dispatch.replay.study import run_experiment
    from ideal_dispatch.report import Report
    from ideal_dispatch.scenarios import (
        ScenarioSet,
        TargetRadius,
        burg_divergence,
        minimise_linear,
        target_radius,
    )
    from ideal_dispatch.traffic.source import RouteQuote

__version__ = "0.2.0"

_NAMES = {
    "cities": "City harbour_city",
    "context": "Calendar Context Weather WeatherValue",
    "dispatch": "Assignment Decision Incident Policy Readiness Situation decide observe",
    "dispatch.threshold": "ConstantThreshold Threshold",
    "dispatch.candidate": "Worth",
    "errors": "IdealError UnreachableError WeatherError",
    "evaluation.outcomes": "Outcomes",
    "evaluation.replay_report": "replay_report",
    "evaluation.judged": "Judged",
    "fleet.city": "FleetCity",
    "fleet.inputs.city_files": "harbour_fleet",
    "fleet.run": "simulate_fleet",
    "fleet.simulation": "SecondRule",
    "forecast": "Model",
    "forecast.response_time": "ResponseModel ResponsePair ResponseTime",
    "gap": "OptimisticGap explain_gap optimistic_gap pairwise_gap",
    "learning": "TrainingSettings fit",
    "network": "Depot Path RoadNetwork",
    "records": "Response Responses Trip Trips",
    "records.agency": "AgencySettings",
    "records.prepare": "prepare_records",
    "replay.experiment": "Experiment",
    "replay.run": "run_replay",
    "replay.simulation": "Replay",
    "replay.study": "run_experiment",
    "report": "Report",
    "scenarios": "ScenarioSet TargetRadius burg_divergence minimise_linear target_radius",
    "traffic.source": "RouteQuote",
}
"""The names that each module gives to the front door."""

__all__ = [
    "AgencySettings", "Assignment", "Calendar", "City", "ConstantThreshold", "Context", "Decision",
    "Depot", "Experiment", "FleetCity", "IdealError", "Incident", "Judged", "Model",
    "OptimisticGap", "Outcomes", "Path", "Policy", "Readiness", "Replay", "Report", "Response",
    "ResponseModel", "ResponsePair", "ResponseTime", "Responses", "RoadNetwork", "RouteQuote",
    "ScenarioSet", "SecondRule", "Situation", "TargetRadius", "Threshold", "TrainingSettings",
    "Trip", "Trips", "UnreachableError", "Weather", "WeatherError", "WeatherValue", "Worth",
    "__version__", "burg_divergence", "decide", "explain_gap", "fit", "harbour_city",
    "harbour_fleet", "minimise_linear", "observe", "optimistic_gap", "pairwise_gap",
    "prepare_records", "replay_report", "run_experiment", "run_replay", "simulate_fleet",
    "target_radius",
]  # fmt: skip

__getattr__ = on_first_use(
    __name__, {name: home for home, names in _NAMES.items() for name in names.split()}
)


def __dir__() -> list[str]:
    """All names but those whose extra is not installed: ``help`` looks at each."""
    missing = () if find_spec("torch") else _NAMES["learning"].split()
    return [name for name in __all__ if name not in missing]
