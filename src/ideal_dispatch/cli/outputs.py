"""Where a command writes: what is there stays unless ``--force`` is given, and inputs always do.

Commands that continue earlier work (replay, train --resume, traffic record) say
so themselves.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from ideal_dispatch.errors import InputError
from ideal_dispatch.files import check_target


def check_file(
    target: Path, force: bool, inputs: Iterable[Path | None] = (), option: str = "-o"
) -> None:
    """Refuse, before the work, a file that cannot or must not be written."""
    check_target(target, option)
    _check(option, target, [target], force, inputs, "choose another name")


def check_folder(
    folder: Path, files: Iterable[str], force: bool, inputs: Iterable[Path | None] = ()
) -> None:
    """Refuse, before the work, a folder in which ``files`` cannot or must not be written."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"-o {folder}: is a file; name a folder")
    targets = [folder / name for name in files]
    _check("-o", folder, targets, force, inputs, "choose another folder")


def _check(
    option: str,
    named: Path,
    targets: list[Path],
    force: bool,
    inputs: Iterable[Path | None],
    advice: str,
) -> None:
    resolved = {target.resolve() for target in targets}
    for path in inputs:
        if path is not None and path.resolve() in resolved:
            raise InputError(f"{option} {named}: {path} would be overwritten; {advice}")
    there = next((target for target in targets if target.exists()), None)
    if there is not None and not force:
        held = "is there" if there == named else f"holds {there.name}"
        raise InputError(f"{option} {named}: {held} already; add --force to overwrite it")
    above = next(place for place in (named.absolute(), *named.absolute().parents) if place.exists())
    if (above != named.absolute() and not above.is_dir()) or not os.access(above, os.W_OK):
        raise InputError(f"{option} {named}: {above} cannot be written to; {advice}")
