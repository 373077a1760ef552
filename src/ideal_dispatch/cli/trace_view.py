"""The steps of a decision as people read them."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from ideal_dispatch.cli.terminal import out
from ideal_dispatch.dispatch.trace import Step, Trace

_UNITS = {"s": "s", "m": "m", "kmh": "km/h", "c": "°C", "mm": "mm", "hpa": "hPa", "percent": "%"}


def print_trace(trace: Trace) -> None:
    """Print a line for each step, those inside another one indented: time, and what it gave."""
    out.print()
    out.print("Step by step", style="bold")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim",
                  width=min(out.width, 80))  # fmt: skip
    table.add_column("step", overflow="fold", max_width=28)
    table.add_column("ms", justify="right")
    table.add_column("what it gave", overflow="fold", ratio=1)
    for depth, step in _flat(trace.steps, 0):
        known = [_words(name, value) for name, value in step.facts.items() if value is not None]
        table.add_row(
            Text("  " * depth + step.name), f"{1000 * step.seconds:.1f}", Text(", ".join(known))
        )
    out.print(table)


def _flat(steps: Sequence[Step], depth: int) -> Iterator[tuple[int, Step]]:
    for step in steps:
        yield depth, step
        yield from _flat(step.steps, depth + 1)


def _words(name: str, value: Any) -> str:
    """A fact with the unit that its name ends in."""
    stem, _, unit = name.rpartition("_")
    if isinstance(value, bool):
        value = "yes" if value else "no"
    elif isinstance(value, float):
        value = f"{value:.4g}"
    if stem and unit in _UNITS:
        return f"{stem.replace('_', ' ')} {value} {_UNITS[unit]}"
    return f"{name.replace('_', ' ')} {value}"
