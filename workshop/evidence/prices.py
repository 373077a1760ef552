"""Prices of a unit against the referee: docs/evidence/fleet_price.md.

``python -m workshop.evidence.prices FILES`` reads what ``ideal fleet price -o`` wrote, one file
for each city and load, named CITY_LOAD.json; `make price-evidence` makes them first.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ideal_dispatch import __version__
from ideal_dispatch.files import write_file
from ideal_dispatch.fleet.calibration import HARMS, Calibration, PriceCheck
from ideal_dispatch.fleet.prices import Harm
from ideal_dispatch.report import Column, Table
from workshop.evidence.pages import FOLDER, markdown

NEAR = 0.15
"""A price is near the referee where it differs by at most this share."""

WORDS: Mapping[Harm, str] = {"deaths": "lives lost", "late": "late arrivals"}
COLUMNS = (
    Column("city"), Column("busy"), Column("away"), Column("referee"), Column("before"),
    Column("after"), Column("R² before", 2), Column("R² after", 2),
)  # fmt: skip
PROTOCOL = (
    "**Question.** Is the price of a unit right, by which a second ambulance is sent or not?",
    "**Protocol.** The calls of a city are scaled until its units are busy for 30, 50 or 70 % of "
    "their time. At moments of a simulated year at which a second might be sent, the unit that "
    "would go is taken away for 6, 15 or 80 minutes. The *referee* continues the same future with "
    "the unit and without it, 200 futures for each moment. 1,000 moments of one year correct the "
    "price (factors for its size, the length of the absence, the share of busy units, and units "
    "on the road). 1,000 moments of another year judge it, with futures of yet another year.",
    "**Words.** *Before* and *after*: the mean price divided by the referee's mean cost, as "
    "computed and as corrected; 1 is right. ± is the standard error of the referee over futures. "
    "*R²*: how much of the differences between moments the price explains, the referee's own "
    "noise taken out. *Late*: a first arrival more than 8 minutes after the call.",
    "**Tried before.** With 200 moments instead of 1,000, and otherwise the same, 9 of 36 "
    "corrected prices were not within 15 % of the referee (0.79 to 1.26 of it, 2026-11-18): so few "
    "moments do not fix five factors.",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", type=Path, nargs="+", help="CITY_LOAD.json of `ideal fleet price`")
    parser.add_argument("--docs", type=Path, default=FOLDER, help="folder of the page")
    given = parser.parse_args()
    write_file(given.docs / "fleet_price.md", page(read(given.files)))


def read(files: Sequence[Path]) -> list[tuple[float, Calibration]]:
    """Every calibration with its load, by city and load."""
    found = [(load_of(file), Calibration.load(file)) for file in files]
    return sorted(found, key=lambda one: (one[1].city, one[0]))


def load_of(file: Path) -> float:
    """The share of time for which units are busy, from the file's name."""
    try:
        return float(file.stem.rpartition("_")[2])
    except ValueError:
        raise SystemExit(f"{file}: name it CITY_LOAD.json, as in auckland_0.5.json") from None


def page(found: Sequence[tuple[float, Calibration]]) -> str:
    """The page: what came out, and a table for lives and one for late arrivals."""
    blocks = [
        "# Is the price of a unit right?",
        f"*Made by `make price-evidence`, ideal-dispatch {__version__}.*",
        *PROTOCOL,
        "## What came out",
        "\n".join(f"- {line}" for line in findings(found)),
        *(markdown(table(found, harm)) for harm in HARMS),
    ]
    return "\n\n".join(blocks) + "\n"


def table(found: Sequence[tuple[float, Calibration]], harm: Harm) -> Table:
    """A row for each city, load and absence."""
    rows = tuple(
        (city, f"{100 * load:.0f} %", f"{one.hold_s / 60:.0f} min",
         f"{one.referee:.2e} ± {100 * one.referee_error / one.referee:.0f} %",
         f"{one.before / one.referee:.2f}", f"{one.after / one.referee:.2f}",
         one.r2_before, one.r2_after)
        for city, load, one in _checks(found) if one.harm == harm
    )  # fmt: skip
    return Table(f"price_{harm}", f"Price over referee, {WORDS[harm]}", COLUMNS, rows)


def findings(found: Sequence[tuple[float, Calibration]]) -> list[str]:
    """How many prices are near the referee, and which are not."""
    checks = list(_checks(found))
    lines = []
    for when in ("before", "after"):
        ratios = [getattr(one, when) / one.referee for *_, one in checks]
        near = sum(abs(ratio - 1.0) <= NEAR for ratio in ratios)
        lines.append(
            f"{when.capitalize()} the correction {near} of {len(checks)} prices are within "
            f"{100 * NEAR:.0f} % of the referee; they are {min(ratios):.2f} to {max(ratios):.2f} "
            "of it."
        )
    far = [
        f"{city}, {100 * load:.0f} % busy, {one.hold_s / 60:.0f} min, {WORDS[one.harm]}: "
        f"{one.after / one.referee:.2f} ± {one.after * one.referee_error / one.referee**2:.2f}"
        for city, load, one in checks
        if abs(one.after / one.referee - 1.0) > NEAR
    ]
    lines.append(f"Not within it after the correction: {'; '.join(far) or 'none'}.")
    explained = {
        f"{one.city}, {100 * load:.0f} % busy": [check.r2_after for check in one.checks]
        for load, one in found
    }
    told = (f"{min(r2):.2f} to {max(r2):.2f} ({where})" for where, r2 in explained.items())
    lines.append(
        "A corrected price is right for the mean of many moments. It says much less about a "
        f"single one: R² is {', '.join(told)}."
    )
    return lines


def _checks(found: Sequence[tuple[float, Calibration]]) -> Iterator[tuple[str, float, PriceCheck]]:
    for load, one in found:
        for check in one.checks:
            yield one.city, load, check


if __name__ == "__main__":
    main()
