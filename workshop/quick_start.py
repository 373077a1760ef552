"""What the commands of docs/quick_start.md print; `make quick-start` writes it there."""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from workshop.page_parts import replace_part

PAGE = Path("docs/quick_start.md")
DECIDE = ("decide", "--node", "700", "--at", "2025-01-24T08:16+08:00", "--trace")


def main() -> None:
    """Run both commands in an empty folder and write their words to the page."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        story = printed(folder, "demo")
        trace = printed(folder, *DECIDE)
    replace_part(PAGE, "demo", _fence(story))
    replace_part(PAGE, "trace", _fence(trace[trace.index("Step by step") :]))
    print(f"wrote {PAGE}")


def printed(folder: str, *words: str) -> str:
    """What a command of ours prints into a pipe, 80 columns wide."""
    ideal = Path(sys.executable).with_name("ideal")
    wide = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run(
        [ideal, *words], cwd=folder, env=wide, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


def _fence(text: str) -> str:
    lines = [line.rstrip() for line in text.strip().splitlines()]
    return "\n".join(["```text", *lines, "```"])


if __name__ == "__main__":
    main()
