"""The desk's map libraries: fetch them again from npm, or check the ones that are here.

    python tools/desk_libraries.py          # fetch what libraries.json pins
    python tools/desk_libraries.py --check  # compare the files with it, without a network

To move to another version, write it and its integrity (`npm view NAME dist.integrity`)
into libraries.json, fetch with --renew, and look at the desk.
"""

import argparse
import base64
import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

LIBRARIES = Path(__file__).parents[1] / "src/ideal_dispatch/service/desk/static/libraries"
PINS = LIBRARIES / "libraries.json"


def problems() -> list[str]:
    """One line for each file that is missing, changed, or not pinned."""
    expected = {
        f"{name}/{Path(file).name}": checksum
        for name, pin in _pins().items()
        for file, checksum in pin["files"].items()
    }
    found = {
        str(file.relative_to(LIBRARIES)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in LIBRARIES.glob("*/*")
    }
    lines = [f"{file}: missing" for file in sorted(expected.keys() - found.keys())]
    lines += [f"{file}: not pinned" for file in sorted(found.keys() - expected.keys())]
    changed = sorted(
        file for file in found.keys() & expected.keys() if found[file] != expected[file]
    )
    return lines + [f"{file}: not the file that was pinned" for file in changed]


def fetch(renew: bool) -> None:
    """Write the pinned files anew; ``renew`` also takes over their checksums."""
    pins = _pins()
    for name, pin in pins.items():
        for file, content in packed(name, pin["version"], pin["integrity"], pin["files"]).items():
            checksum = hashlib.sha256(content).hexdigest()
            if renew:
                pin["files"][file] = checksum
            elif checksum != pin["files"][file]:
                sys.exit(f"{name}: {file} is not the file that was pinned")
            target = LIBRARIES / name / Path(file).name
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(content)
    PINS.write_text(json.dumps(pins, indent=2) + "\n", encoding="utf-8")


def packed(name: str, version: str, integrity: str, files: Iterable[str]) -> dict[str, bytes]:
    """The named files of an npm package, once its archive has the pinned integrity."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", f"{name}@{version}"]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        [archive] = Path(folder).glob("*.tgz")
        digest = hashlib.sha512(archive.read_bytes()).digest()
        if f"sha512-{base64.b64encode(digest).decode()}" != integrity:
            sys.exit(f"{name}@{version}: the package is not the one that was pinned; keep the old")
        contents = {}
        with tarfile.open(archive) as packed:
            for file in files:
                member = packed.extractfile(f"package/{file}")
                if member is None:
                    sys.exit(f"{name}@{version}: {file} is no file of the package")
                contents[file] = member.read()
        return contents


def _pins() -> dict[str, Any]:
    pins: dict[str, Any] = json.loads(PINS.read_text(encoding="utf-8"))
    return pins


def main() -> None:
    """Fetch, or check and exit with 1 where something differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="only compare the files that are here")
    parser.add_argument("--renew", action="store_true", help="take over checksums of a new version")
    asked = parser.parse_args()
    if not asked.check:
        fetch(asked.renew)
    if found := problems():
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
