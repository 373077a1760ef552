"""What policies achieved in replays: a page for each experiment, tables as CSV.

``python -m workshop.evidence.replays out/replays/port_almery`` reads the runs that
`ideal replay` wrote and writes into docs/evidence.
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ideal_dispatch.dispatch.survival import CURVES, USUAL_CURVE
from ideal_dispatch.evaluation.judged import Judged
from ideal_dispatch.evaluation.outcomes import Outcomes
from ideal_dispatch.evaluation.paper_issues import contests_of
from ideal_dispatch.evaluation.result_tables import (
    arrival_table,
    beating_table,
    benchmark_table,
    difference_table,
    gap_table,
    regret_table,
    second_table,
)
from ideal_dispatch.evaluation.table import Table
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.features import edge_features
from ideal_dispatch.network.road_class import ROAD_CLASSES
from ideal_dispatch.replay.drive import World
from ideal_dispatch.replay.experiment import EXPERIMENT
from ideal_dispatch.replay.study import STARTS, TEST, TRAINING, calibration_of, world_folder
from ideal_dispatch.traffic.recording import KIND
from ideal_dispatch.traffic.sumo.campaign import DAY
from workshop.evidence.pages import FOLDER, WORLDS, ExperimentPage, Kept
from workshop.evidence.printed import RESULTS, regret_beside, wilcoxon_beside
from workshop.evidence.tables import training_table, which_second

EXPERIMENTS = Path("experiments")  # paths in the files there are relative to it


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("runs", type=Path, nargs="+", help="folders that `ideal replay` wrote")
    parser.add_argument("-o", "--output", type=Path, default=FOLDER, help="folder of the pages")
    given = parser.parse_args()
    for run in given.runs:
        page_of(run).write(given.output)


def page_of(run: Path) -> ExperimentPage:
    """The page of one experiment."""
    experiment = json.loads((run / EXPERIMENT).read_text(encoding="utf-8"))
    tested = {
        world: judged_run(run, world)
        for world in WORLDS
        if (world_folder(run, world) / TEST).exists()
    }
    stem = run.resolve().name.replace("-", "_")
    words = [_provenance(run, experiment, tested)]
    tables: list[Kept] = []
    learned, test = {}, {}
    for world in WORLDS:
        tables += _training(world_folder(run, world), world)
        if said := _fitted(world_folder(run, world)):
            learned[world] = said
    for world, judged in tested.items():
        outcomes = judged.outcomes
        test[world] = (
            f"{len(outcomes):,} test calls on {len(outcomes.days)} days. Thresholds for a volume "
            "are those of the training days."
        )
        tables += _test(judged, world)
    if tested:
        printed = RESULTS[experiment.get("printed", "hong-kong-island")]
        tables += [
            Kept("paper_regret", TEST, "both", regret_beside(tested, printed)),
            Kept("paper_tests", TEST, "both", wilcoxon_beside(tested, printed)),
        ]
        words += _issues(next(iter(tested.values())).outcomes)
    versions = [one.outcomes.manifest["versions"].get("ideal-dispatch") for one in tested.values()]
    made = (
        f"Made by `make dispatch-evidence EXPERIMENTS={stem}`, ideal-dispatch "
        f"{next(iter(versions), None) or 'of an unknown version'}."
    )
    return ExperimentPage(stem, experiment["name"], made, words, test, learned, tables)


def _training(folder: Path, world: World) -> list[Kept]:
    if not (folder / TRAINING / "incidents.jsonl").exists():
        return []
    judged = Judged(Outcomes.load(folder / TRAINING), None, CURVES[USUAL_CURVE], 0)
    return _kept(
        TRAINING,
        world,
        training=training_table(judged, world),
        gap=gap_table(judged, world),
        which_second=which_second(judged.outcomes, world),
    )


def _test(judged: Judged, world: World) -> list[Kept]:
    return [
        *_kept(TEST, world, arrival=arrival_table(judged, world)),
        *_kept(
            TEST,
            world,
            arrival=arrival_table(judged, world, judged.others),
            saved=difference_table(judged, world),
            gap=gap_table(judged, world),
            regret=regret_table(judged, world),
            benchmarks=benchmark_table(judged, world),
            beating=beating_table(judged, world),
            second=second_table(judged, world),
            which_second=which_second(judged.outcomes, world),
        ),
    ]


def _kept(days: str, world: str, **tables: Table | None) -> list[Kept]:
    return [
        Kept(kind, days, world, table)
        for kind, table in tables.items()
        if table is not None and table.rows
    ]


def judged_run(run: Path, world: World) -> Judged:
    training = Outcomes.load(calibration_of(run, world))
    return Judged(Outcomes.load(world_folder(run, world) / TEST), training, CURVES[USUAL_CURVE], 0)


def _provenance(run: Path, experiment: Mapping[str, Any], tested: Mapping[World, Judged]) -> str:
    """What was run, of what, and when."""
    starts = [json.loads(line) for line in (run / STARTS).read_text(encoding="utf-8").splitlines()]
    files = list(dict.fromkeys(start["experiment_file"] for start in starts))
    first = next((start["at"] for start in starts if start["test_days"]), None)
    said = [
        f"Experiment file {' then '.join(f'`{digest}`' for digest in files)}, begun "
        f"{starts[0]['at']}" + (f", test days first replayed {first}" if first else "") + ".",
        f"Recording `{experiment['recording']}`, seed {experiment['seed']}; of the first "
        f"{experiment['training_days']} days {experiment['warm_up_days']} "
        f"{'is' if experiment['warm_up_days'] == 1 else 'are'} history alone.",
    ]
    if traffic := experiment["city"]["traffic"]:
        said.append(_made(EXPERIMENTS / traffic))
    if network := experiment["city"]["network"]:
        said.append(_streets(EXPERIMENTS / network))
    if experiment["transfer"]["run"]:
        said.append(f"Nothing was fitted here: all parts are those of {starts[-1]['transfer']}.")
    for world, judged in tested.items():
        manifest = judged.outcomes.manifest
        made = ", ".join(f"{name} {number}" for name, number in manifest["versions"].items())
        said.append(
            f"{world.capitalize()} traffic: {manifest['replayed']:,} test calls replayed, "
            f"{len(manifest['dropped'])} dropped, network `{manifest['network']}` ({made})."
        )
    return " ".join(said)


def _made(traffic: Path) -> str:
    """How a recording was made, and what it cost, where its file and its days are still there."""
    if not traffic.exists():
        return "The recording is not here any more."
    made = KIND.read(traffic)[0]["provenance"]
    days = traffic.with_name(f"{traffic.stem}_days")
    number, hours = processor_hours(days)
    took = f"{hours:.1f} hours" if hours >= 1 else f"{60 * hours:.0f} minutes"
    cost = f", {took} of one core for {number} of its days" if number else ""
    return f"It was made by `{made['command']}` ({made['engine']} {made['version']}{cost})."


def processor_hours(folder: Path) -> tuple[int, float]:
    """How many simulated days of a folder say what they took, and how many hours in all."""
    took = [DAY.read(file)[0].get("cpu_s") for file in sorted(folder.glob("*.day"))]
    known = [seconds for seconds in took if seconds is not None]
    return len(known), sum(known) / 3600.0


def _streets(file: Path) -> str:
    """What the streets lack, where their file is still there, and what stands for territories."""
    territories = (
        "An agency's territories are not known: region-based dispatch here sends the depot that is "
        "nearest at free flow."
    )
    if not file.exists():
        return f"The network is not here any more. {territories}"
    network = RoadNetwork.load(file)
    features = edge_features(network)
    lanes, limits = (np.mean(~np.isnan(v)) for v in (network.lanes, network.speed_kmh))
    return (
        f"Of the {network.num_edges:,} edges of its network {np.mean(~network.oneway):.0%} are "
        f"two-way, {lanes:.0%} have a number of lanes and {limits:.0%} a speed limit; "
        f"{np.unique(network.road_class).size} of {len(ROAD_CLASSES)} road classes occur, and "
        f"{int((np.ptp(features, axis=0) > 0).sum())} of {features.shape[1]} features vary. "
        f"{territories}"
    )


def _issues(outcomes: Outcomes) -> list[str]:
    """Issues 1 to 3 of the paper's introduction on the test calls."""
    found = contests_of(outcomes)
    if found is None or len(found[0].worlds) < 2:
        return []
    contests = found[0]
    region, lost = contests.region_share(), contests.reversal_share()
    return [
        f"Of {len(contests):,} test calls in which the router promises two depots within a "
        f"quarter of each other: the region's depot is the best in {region[0]:.0%} "
        f"(instantaneous) and {region[1]:.0%} (experienced), in the paper in 56 %; the promised "
        f"best loses in {lost[0]:.0%} and {lost[1]:.0%}; the router's ranges overlap in "
        f"{contests.overlap_share():.1%}, by {contests.overlap_s().mean():.0f} s in the mean of "
        f"trips of {contests.mean_s()[1]:.0f} s, in the paper in 99.5 %, by 377 s of 596 s.",
    ]


def _fitted(folder: Path) -> str:
    """What was learned from all training days, where it was."""
    gain, drift = folder / "all" / "gain.json", folder / "all" / "drift" / "manifest.json"
    if not gain.exists():
        return ""
    above, below = json.loads(gain.read_text())["reversion"]
    said = (
        f"Learned from all training days: a quote moves by {above:.2f} of what the router's range "
        f"reaches above it and by {below:.2f} of what it reaches below."
    )
    for trained, place in (("practical mode", "model"), ("Algorithm 1", "model-paper-calibrated")):
        card = folder / "all" / place / "manifest.json"
        if card.exists():
            mae_s = json.loads(card.read_text())["details"]["scores"][0]["mae_s"]
            said += f" The network of {trained} errs by {mae_s:.1f} s on held-out training days."
    if drift.exists():
        held_out = json.loads(drift.read_text())["details"]["held_out"]
        said += (
            f" The drift network's error there: quotes {held_out['quoted_mae_s']:.1f} s, corrected "
            f"{held_out['corrected_mae_s']:.1f} s."
        )
    return said


if __name__ == "__main__":
    main()
