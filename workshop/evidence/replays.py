"""What policies achieved in replays: the dispatch tables of docs/evidence.md.

Reads the runs of one or more experiments (`ideal replay`), a sub-section each; the
protocol stands above the tables and in the experiment files.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from ideal_dispatch.dispatch.survival import CURVES, USUAL_CURVE
from ideal_dispatch.evaluation.difference_tables import difference_summary, difference_table
from ideal_dispatch.evaluation.figures import pareto
from ideal_dispatch.evaluation.gap_tables import gap_table
from ideal_dispatch.evaluation.outcomes import Outcomes
from ideal_dispatch.evaluation.races import races_of
from ideal_dispatch.evaluation.result_tables import (
    Judged,
    arrival_table,
    benchmark_table,
    regret_table,
    second_table,
)
from ideal_dispatch.evaluation.significance import day_t_interval
from ideal_dispatch.evaluation.strategies import VOLUMES, matched_arrival_s
from ideal_dispatch.evaluation.tables import Column, Table
from ideal_dispatch.files import atomic_write
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.features import edge_features
from ideal_dispatch.network.road_class import ROAD_CLASSES
from ideal_dispatch.replay.drive import World
from ideal_dispatch.replay.experiment import EXPERIMENT
from ideal_dispatch.replay.study import STARTS, TEST, TRAINING, calibration_of, world_folder
from ideal_dispatch.traffic.campaign import processor_hours
from ideal_dispatch.traffic.recording import KIND
from workshop.evidence.printed import RESULTS, regret_beside, wilcoxon_beside

MARK = "replays"
EXPERIMENTS = Path("experiments")  # paths in the files there are relative to it
FIGURE_OF = World.EXPERIENCED
OTHER_DEPOT, ANY_SECOND = "ideal-other-depot", "ideal"
"""Our form with two choices of the second, by their names in the experiment files."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("runs", type=Path, nargs="+", help="folders that `ideal replay` wrote")
    parser.add_argument("--mark", default=MARK, help="of the part that is replaced")
    parser.add_argument("--write", type=Path, help="the page whose tables are replaced")
    given = parser.parse_args()
    found = [*which_second(given.runs), *(line for run in given.runs for line in section(run))]
    text = "\n".join(found)
    if given.write is None:
        print(text)
        return
    replace_part(given.write, given.mark, text)
    for run in given.runs:
        if (run / FIGURE_OF / TEST).exists():
            judged = _judged(run, FIGURE_OF)
            shown = replace(judged, outcomes=judged.outcomes.only(FIGURE_OF))
            picture = given.write.parent / "images" / f"evidence_{_slug(run)}.png"
            pareto(shown).savefig(picture, dpi=110)


def replace_part(page: Path, mark: str, text: str) -> None:
    """Put ``text`` between the marks of a page."""
    begin, end = f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    if not found or end not in rest:
        raise SystemExit(f"{page} has no marks {begin} … {end}; add them where the tables belong")
    with atomic_write(page) as file:
        file.write(f"{before}{begin}\n{text}\n{end}{rest.partition(end)[2]}".encode())


def which_second(runs: Sequence[Path]) -> list[str]:
    """What any road for the second wins over another depot's alone, in every experiment."""
    rows: list[tuple[Any, ...]] = []
    for run in runs:
        name = json.loads((run / EXPERIMENT).read_text(encoding="utf-8"))["name"]
        for days, world in product((TRAINING, TEST), reversed(World)):
            if not (world_folder(run, world) / days / "incidents.jsonl").exists():
                continue
            outcomes = Outcomes.load(world_folder(run, world) / days)
            if not {OTHER_DEPOT, ANY_SECOND} <= set(outcomes.policies):
                continue
            arrivals = [
                [matched_arrival_s(outcomes.policy(policy), share, world) for share in VOLUMES]
                for policy in (ANY_SECOND, OTHER_DEPOT)
            ]
            saved = [other - any_ for any_, other in zip(*arrivals, strict=True)]
            rows.append((
                name, days, world, len(outcomes.days),
                *(day_t_interval(one, outcomes.day) for one in saved),
                float(sum(one.mean() for one in saved) / len(saved)),
            ))  # fmt: skip
    table = Table(
        "which_second",
        f"Seconds that `{ANY_SECOND}` saves over `{OTHER_DEPOT}`, at the same volume",
        (Column("experiment"), Column("days"), Column("world"), Column("n"),
         *(Column(f"+{100 * share:.0f} %", 2, signed=True) for share in VOLUMES),
         Column("mean", 2, signed=True)),
        tuple(rows),
        note="Training days are cross-fitted, and those to choose by; intervals are Student's over "
        "the days' means.",
    )  # fmt: skip
    return ["### Which second", "", *_tables([table])] if rows else []


def section(run: Path) -> list[str]:
    """All tables of one experiment."""
    experiment = json.loads((run / EXPERIMENT).read_text(encoding="utf-8"))
    worlds = [world for world in World if world_folder(run, world).exists()]
    tested: dict[str, Judged] = {
        world: _judged(run, world) for world in worlds if (world_folder(run, world) / TEST).exists()
    }
    lines = [f"### {experiment['name']}", "", *_provenance(run, experiment, tested)]
    if tested:
        printed = RESULTS[experiment.get("printed", "hong-kong-island")]
        lines += ["#### The paper's tables beside ours, test days", ""]
        lines += _tables([regret_beside(tested, printed), wilcoxon_beside(tested, printed)])
        lines += _issues(next(iter(tested.values())).outcomes)
        if FIGURE_OF in tested:
            lines += [f"![Regret against ambulances](images/evidence_{_slug(run)}.png)", ""]
    for world in worlds:
        lines += [f"#### {world.words.capitalize()}", ""]
        lines += _training(run, world)
        if world in tested:
            lines += _test(tested[world], world)
    return lines


def _training(run: Path, world: str) -> list[str]:
    folder = world_folder(run, world)
    if not (folder / TRAINING / "incidents.jsonl").exists():
        return []
    judged = Judged(Outcomes.load(folder / TRAINING), None, CURVES[USUAL_CURVE], 0)
    return [
        f"**Training days, cross-fitted, to choose by:** {len(judged.outcomes):,} calls on "
        f"{len(judged.outcomes.days)} days.",
        "",
        *_tables([difference_summary(judged, world), gap_table(judged, world)]),
        *_fitted(folder),
    ]


def _test(judged: Judged, world: str) -> list[str]:
    outcomes = judged.outcomes
    return [
        f"**Test days:** {len(outcomes):,} calls on {len(outcomes.days)} days. Thresholds for a "
        "volume are those of the training days.",
        "",
        *_tables(
            [
                arrival_table(judged, world),
                arrival_table(judged, world, judged.others),
                difference_table(judged, world),
                gap_table(judged, world),
                regret_table(judged, world),
                benchmark_table(judged, world),
                second_table(judged, world),
            ]
        ),
    ]


def _judged(run: Path, world: str) -> Judged:
    training = Outcomes.load(calibration_of(run, world))
    return Judged(Outcomes.load(world_folder(run, world) / TEST), training, CURVES[USUAL_CURVE], 0)


def _provenance(
    run: Path, experiment: Mapping[str, Any], tested: Mapping[str, Judged]
) -> list[str]:
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
    return [" ".join(said), ""]


def _made(traffic: Path) -> str:
    """How a recording was made, and what it cost, where its file and its days are still there."""
    if not traffic.exists():
        return "The recording is not here any more."
    made = KIND.read(traffic)[0]["provenance"]
    days = traffic.with_name(f"{traffic.stem}_days")
    number, hours = processor_hours(days)
    cost = f", {hours:.1f} hours of one core for {number} of its days" if number else ""
    return f"It was made by `{made['command']}` ({made['engine']} {made['version']}{cost})."


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
    found = races_of(outcomes)
    if found is None:
        return []
    races = found[0]
    region, lost = races.region_share(), races.reversal_share()
    return [
        f"Of {len(races):,} test calls in which the router promises two depots within a quarter of "
        f"each other: the region's depot is the best in {region[0]:.0%} (A) and {region[1]:.0%} "
        f"(B), in the paper in 56 %; the promised best loses in {lost[0]:.0%} and {lost[1]:.0%}; "
        f"the router's ranges overlap in {races.overlap_share():.1%}, by "
        f"{races.overlap_s().mean():.0f} s in the mean of trips of {races.mean_s()[1]:.0f} s, in "
        "the paper in 99.5 %, by 377 s of 596 s.",
        "",
    ]


def _tables(tables: list[Table | None]) -> list[str]:
    lines = []
    for table in tables:
        if table is not None:
            lines += [table.markdown(), ""]
            if table.note:
                lines += [table.note, ""]
    return lines


def _fitted(folder: Path) -> list[str]:
    """What was learned from all training days, where it was."""
    gain, drift = folder / "all" / "gain.json", folder / "all" / "drift" / "manifest.json"
    if not gain.exists():
        return []
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
    return [said, ""]


def _slug(run: Path) -> str:
    return run.resolve().name.replace("-", "_")


if __name__ == "__main__":
    main()
