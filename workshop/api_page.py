"""The names on docs/api.md, from the contents in the docstring of the package.

``python -m workshop.api_page`` writes them to the page, each under its task.
"""

import argparse
import re
from pathlib import Path

import ideal_dispatch
from workshop.page_parts import replace_part

PAGE = Path("docs/api.md")
BEFORE = "Contents, by task:\n\n"
# the page shows all errors together, as a module
ERRORS = {"IdealError", "UnreachableError", "WeatherError"}


def main() -> None:
    """Write the page's part."""
    argparse.ArgumentParser(description=f"Write the names on {PAGE}.").parse_args()
    replace_part(PAGE, "names", reference(ideal_dispatch.__doc__ or ""))
    print(f"wrote {PAGE}")


def reference(contents: str) -> str:
    """A heading for each task of ``contents``, a directive for each public name, in its order."""
    lines: list[str] = []
    public = set(ideal_dispatch.__all__) - ERRORS
    for line in contents.partition(BEFORE)[2].partition("\n\n")[0].splitlines():
        if not line.startswith(" "):
            lines.append(f"## {line.partition(' (')[0]}")
            continue
        for name in re.findall(r"\w+", line):
            if name in public:
                public.remove(name)
                lines.append(f"::: {_address(name)}")
    return "\n\n".join(lines)


def _address(name: str) -> str:
    """Where the reference finds a name: a function by its module, for modules may have its name."""
    thing = getattr(ideal_dispatch, name)
    return f"ideal_dispatch.{name}" if isinstance(thing, type) else f"{thing.__module__}.{name}"


if __name__ == "__main__":
    main()
