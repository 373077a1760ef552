"""What options of several commands name: a moment, a token, a city, where to write."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING

from ideal_dispatch.errors import InputError
from ideal_dispatch.files import check_source, check_target

if TYPE_CHECKING:
    from ideal_dispatch.cities import City
    from ideal_dispatch.network import RoadNetwork


def read_moment(name: str, text: str, zone: tzinfo | None = None) -> datetime:
    """A moment with its zone, or in the usual ``zone``; an error says the option's ``name``."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        day = "" if zone is None else "2023-05-08 or "
        raise InputError(f"{name} {text}: write it as {day}2023-05-08T08:10+08:00") from None
    if moment.tzinfo is None and zone is None:
        raise InputError(f"{name} {text}: add the zone, as in 2023-05-08T08:10+08:00")
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)


def read_day(name: str, text: str) -> date:
    """A day of the calendar; an error says the option's ``name``."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InputError(f"{name} {text}: write it as 2023-05-08") from None


def given_token(question: str, token: str | None, file: Path | None) -> str:
    """The token of --token or --token-file; where neither or both are given, the question."""
    if (token is None) == (file is None):
        raise InputError(f"{question} Give --token or --token-file, one of them")
    if file is None:
        return token or ""
    if not file.is_fifo():
        check_source(file)
    return file.read_text(encoding="utf-8", errors="replace").strip()


def read_network(file: Path | None) -> "RoadNetwork":
    """The network of a file, or the embedded city's."""
    from ideal_dispatch.cities import harbour_city
    from ideal_dispatch.network import RoadNetwork

    return harbour_city().network if file is None else RoadNetwork.load(file)


def check_clock(network_file: Path | None, time_zone: str | None, country: str | None) -> None:
    """Refuse a city of one's own whose time zone or country is not given."""
    if network_file is not None and not (time_zone and country):
        raise InputError(
            "--network needs --time-zone and --country, such as Europe/Paris and FR: whose clock "
            "and public holidays?"
        )


@dataclass(frozen=True, slots=True)
class CityOptions:
    """Whose roads and depots, and by which model."""

    model_folder: Path | None = None
    network_file: Path | None = None
    depots_file: Path | None = None
    time_zone: str | None = None
    country: str | None = None
    territories_file: Path | None = None

    def city(self) -> "City":
        """The embedded city with what is told, or the city of a network and its depots."""
        from ideal_dispatch.cities import City, depots_of, harbour_city

        zone, country = self.time_zone or "Asia/Hong_Kong", self.country or "HK"
        if self.network_file is not None:
            if self.depots_file is None:
                raise InputError("--network needs --depots: whose ambulances are there?")
            return City.from_files(
                self.network_file, self.depots_file, time_zone=zone, country=country,
                model=self.model_folder, territories=self.territories_file,
            )  # fmt: skip
        city = replace(harbour_city(), time_zone=zone, country=country)
        if self.depots_file is not None:
            city = replace(city, depots=depots_of(self.depots_file, city.network), region=None)
        if self.territories_file is not None:
            from ideal_dispatch.records.territories import region_of

            table, depots = self.depots_file, city.depots
            city = replace(
                city, region=region_of(self.territories_file, city.network, depots, table)
            )
        return city if self.model_folder is None else replace(city, model_folder=self.model_folder)


def check_file(
    target: Path, force: bool, inputs: Iterable[Path | None] = (), option: str = "-o"
) -> None:
    """Refuse, before the work, a file that cannot or must not be written.

    What is there stays unless ``--force`` is given, and ``inputs`` always do. Commands
    that continue earlier work (replay, train --resume) say so themselves.
    """
    check_target(target, option)
    _check(option, target, [target], force, inputs)


def check_folder(
    folder: Path, files: Iterable[str], force: bool, inputs: Iterable[Path | None] = ()
) -> None:
    """Refuse, before the work, a folder in which ``files`` cannot or must not be written."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"-o {folder}: is a file; name a folder")
    _check("-o", folder, [folder / name for name in files], force, inputs)


def _check(
    option: str, named: Path, targets: list[Path], force: bool, inputs: Iterable[Path | None]
) -> None:
    advice = f"choose another {'name' if targets == [named] else 'folder'}"
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
