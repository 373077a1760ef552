"""What the paper claims of its replays, and what came out of ours: docs/evidence/claims.md.

``python -m workshop.evidence.claims out/replays/hong_kong_island …`` reads the runs that
`ideal replay` wrote. Whether a claim holds is decided by the rule in its row, which was
written down before the test days were replayed; why it does not is in ``WHY``.
"""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ideal_dispatch.evaluation.judged import Judged
from ideal_dispatch.evaluation.metrics import RegretSummary, paired_wilcoxon
from ideal_dispatch.evaluation.races import Races, races_of
from ideal_dispatch.evaluation.strategies import Strategy, single
from ideal_dispatch.evaluation.table import Column, Table
from ideal_dispatch.files import write_file
from ideal_dispatch.replay.drive import World
from ideal_dispatch.replay.experiment import EXPERIMENT
from ideal_dispatch.replay.study import TEST, world_folder
from workshop.evidence.pages import FOLDER, markdown
from workshop.evidence.replays import judged_run

_FORMS = {"paper": "as printed", "ideal": "ours"}
_VOLUMES = (0.25, 0.5, 0.75)


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """The test days of one run in one world; ``role`` is the form of IDEAL that is judged."""

    judged: Judged
    races: Races
    world: World
    role: str = "paper"

    def row(self, role: str, share: float = 1.0) -> Strategy:
        """A policy at a volume; a policy that sends one ambulance sends it."""
        name = self.judged.outcomes.roles[role]
        return self.judged.at(name, share) if share else single(self.judged.outcomes.policy(name))

    def regret(self, role: str, share: float = 1.0) -> RegretSummary:
        best_s = self.judged.outcomes.best_s[self.world]["paper"]
        return RegretSummary.of(self.row(role, share).arrival_s[self.world], best_s)

    @property
    def number(self) -> int:
        """Of the world in the races."""
        return self.races.worlds.index(self.world)


Told = Callable[[Seen], tuple[str, bool]]
"""Our figures in words, and whether the claim holds by them."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What the paper says, its figure, the rule by which it holds here, and our figure."""

    name: str
    words: str
    paper: str
    told: Told


def _region(seen: Seen) -> tuple[str, bool]:
    share = float(seen.races.region_share()[seen.number])
    return f"{share:.0%}", share <= 0.6


def _reversal(seen: Seen) -> tuple[str, bool]:
    share = float(seen.races.reversal_share()[seen.number])
    return f"{share:.0%}", share >= 0.1


def _overlap(seen: Seen) -> tuple[str, bool]:
    share, common_s = seen.races.overlap_share(), float(seen.races.overlap_s().mean())
    mean_s = float(seen.races.mean_s()[seen.number])
    return f"{share:.1%}, {common_s:.0f} s of {mean_s:.0f} s", share >= 0.95


def _router(seen: Seen) -> tuple[str, bool]:
    one, two = seen.regret("router", 0.0).optimal, seen.regret("router-dual").optimal
    return f"{one:.1%} → {two:.1%}", two > one


def _optimal(seen: Seen) -> tuple[str, bool]:
    own = seen.regret(seen.role).optimal
    rival = seen.judged.strongest(seen.world)
    assert rival is not None
    other = seen.judged.rate(rival, seen.world)
    return f"{own:.1%}, others {other:.1%}", own > other


def _mean(seen: Seen) -> tuple[str, bool]:
    own, other = seen.regret(seen.role).mean_s, seen.regret("router-dual").mean_s
    return f"{own:.2f} s, router dual {other:.2f} s", own < other


def _tail(seen: Seen) -> tuple[str, bool]:
    own, other = seen.regret(seen.role).cvar95_s, seen.regret("router-dual").cvar95_s
    return f"{own:.1f} s, router dual {other:.1f} s", own < other


def _always(seen: Seen) -> tuple[str, bool]:
    p95_s = seen.regret(seen.role).p95_s
    return f"{p95_s:.1f} s", p95_s <= 0.0


def _tests(seen: Seen) -> tuple[str, bool]:
    own = seen.row(seen.role).arrival_s[seen.world]
    rows = [(role, seen.row(role, share)) for role, share in
            (("region", 0.0), ("router", 0.0), ("router-dual", 1.0))]  # fmt: skip
    worst, name = max(
        (paired_wilcoxon(row.arrival_s[seen.world], own).p_value, role) for role, row in rows
    )
    return f"p = {worst:.2g} ({name})", worst < 0.05


def _selective(figure: str, decimals: int) -> Told:
    def told(seen: Seen) -> tuple[str, bool]:
        pairs = [
            [float(getattr(seen.regret(role, share), figure)) for role in (seen.role, "interval")]
            for share in _VOLUMES
        ]
        words = ", ".join(f"{own:.{decimals}f}/{other:.{decimals}f}" for own, other in pairs)
        return words, all(own < other for own, other in pairs)

    return told


def _point(seen: Seen) -> tuple[str, bool]:
    found = seen.judged.beating(seen.judged.outcomes.roles[seen.role], seen.world)
    if found is None:
        return "at no volume", False
    rate = seen.judged.rate(found, seen.world)
    return f"{rate:.1%} at {100 * found.extra:+.1f} %", found.extra < 1.0


def _most(seen: Seen) -> tuple[str, bool]:
    alone, half, both = (seen.regret(seen.role, share).mean_s for share in (0.0, 0.5, 1.0))
    if alone <= both:
        return "a second wins nothing", False
    return f"{(alone - half) / (alone - both):.0%}", (alone - half) >= 0.5 * (alone - both)


SITUATION = (
    Claim("region", "Near the boundary the region's depot is the best in few calls (at most 60 %)",
          "56 %", _region),
    Claim("reversal", "The depot that looked better at departure often loses (at least 10 %)",
          "an example; 16 % by Figure 4", _reversal),
    Claim("overlap", "The router's ranges of both depots nearly always overlap (at least 95 %)",
          "99.5 %, 377 s of 596 s", _overlap),
    Claim("router", "Two ambulances by the router are candidate-optimal more often than one",
          "84.1 % → 88.4 %", _router),
)  # fmt: skip
METHOD = (
    Claim("optimal", "IDEAL dual is candidate-optimal more often than every baseline",
          "95.8 %, others 88.4 %", _optimal),
    Claim("mean", "IDEAL dual has less mean regret than router dual", "1.0 s, router dual 3.4 s",
          _mean),
    Claim("tail", "… and less CVaR95 of regret", "20.5 s, router dual 60.9 s", _tail),
    Claim("always", "IDEAL dual matches the best candidate in 95 % of calls (P95 of regret is 0)",
          "0.0 s", _always),
    Claim("tests", "IDEAL dual is sooner than region, router and router dual (each p below 0.05)",
          "p = 4e-07 (router dual)", _tests),
    Claim("selective", "At +25, +50 and +75 % IDEAL has less mean regret than interval-selective",
          "3.7/4.1, 2.5/3.5, 2.0/3.4", _selective("mean_s", 2)),
    Claim("selective tail", "… and less P99 of regret", "85/113, 57/104, 50/104",
          _selective("p99_s", 0)),
    Claim("point", "IDEAL exceeds the strongest baseline with fewer than two ambulances per call",
          "88.8 % at +48.7 %", _point),
    Claim("most", "+50 % gives most of what +100 % gives (at least half)", "64 %", _most),
)  # fmt: skip
"""The rules in brackets are ours; where there is none the claim is an order."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+", help="folders that `ideal replay` wrote")
    parser.add_argument("-o", "--output", type=Path, default=FOLDER / "claims.md")
    given = parser.parse_args()
    runs = {_name(run): _seen(run) for run in given.runs}
    write_file(given.output, page(runs, WHY))


def page(runs: Mapping[str, Sequence[Seen]], why: Mapping[str, str]) -> str:
    """The page: a table of the claims about the situation, one of those about each form."""
    tables = [claims_table("The paper's situation", SITUATION, runs, why)]
    for role, form in _FORMS.items():
        judged = {
            name: [Seen(one.judged, one.races, one.world, role) for one in seen]
            for name, seen in runs.items()
        }
        tables.append(claims_table(f"IDEAL {form}", METHOD, judged, why, role))
    return "\n\n".join([*_OPENING, *map(markdown, tables), *_CLOSING]) + "\n"


def claims_table(
    title: str,
    claims: Sequence[Claim],
    runs: Mapping[str, Sequence[Seen]],
    why: Mapping[str, str],
    role: str = "",
) -> Table:
    """A row for each claim: the paper's figure, ours in every run and world, and why not."""
    seen = {f"{name}, {one.world}": one for name, found in runs.items() for one in found}
    rows = []
    for claim in claims:
        told = [claim.told(one) for one in seen.values()]
        held = sum(holds for _, holds in told)
        words = "yes" if held == len(told) else f"in {held} of {len(told)}" if held else "no"
        reason = "" if held == len(told) else why.get(f"{role} {claim.name}".strip(), "")
        cells = (f"{'' if holds else '✗ '}{figure}" for figure, holds in told)
        rows.append((claim.words, claim.paper, *cells, words, reason))
    names = ("claim", "paper", *seen, "holds", "why not")
    return Table("claims", title, tuple(map(Column, names)), tuple(rows))


def _name(run: Path) -> str:
    return str(json.loads((run / EXPERIMENT).read_text(encoding="utf-8"))["name"])


def _seen(run: Path) -> list[Seen]:
    found = []
    for world in World:
        if (world_folder(run, world) / TEST).exists():
            judged = judged_run(run, world)
            races = races_of(judged.outcomes)
            assert races is not None, f"{run}: no two depots compete in it"
            found.append(Seen(judged, races[0], world))
    return found


_OPENING = (
    "# The paper's claims",
    "*Made by `make claims`. The paper's figures are those of its section 1 and of section 6.2, "
    "Hong Kong Island. Ours are of the directed streets of the paper's box, the paper's two "
    "depots, and simulated evenings as volatile as the paper's (how near they come is on the page "
    "[volatile evenings](regime.md)). A cross marks a figure by which the claim does not hold. The "
    "rules in brackets are ours, and were written before the test evenings were replayed.*",
)
_CLOSING: tuple[str, ...] = ()

WHY: Mapping[str, str] = {}
"""Why a claim does not hold here, by its name, with the form's role before it."""

if __name__ == "__main__":
    main()
