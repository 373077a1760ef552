"""``ideal audit``: is the record whole, what is in it, and what may go."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ideal_dispatch.cli.help import CommandLine
from ideal_dispatch.cli.options import check_file, read_moment
from ideal_dispatch.cli.terminal import err, out, say, stages
from ideal_dispatch.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from ideal_dispatch.service.record.database import Database

app = CommandLine("Check, export and shorten the record of all advice that the service gave.")

_PATIENCE_S = 600.0


@dataclass(frozen=True, slots=True)
class RecordOptions:
    """Which record of advice.

    Options:
      ADDRESS  Where the record is: sqlite:///record.db or postgresql://user@host/database.
      --config FILE  The settings (.toml) of `ideal serve`, in place of an address.
    """

    url: str | None = None
    config: Path | None = None

    @contextmanager
    def database(self) -> "Iterator[Database]":
        """The database of a record that exists: reading must not make an empty one."""
        if not find_spec("sqlalchemy"):
            raise MissingExtraError("the audit", "service")
        if (self.url is None) == (self.config is None):
            raise InputError("which database? Give its URL, or the service's settings as --config")
        from ideal_dispatch.service.clock import ClockTable
        from ideal_dispatch.service.record.database import Database
        from ideal_dispatch.service.settings import ServiceSettings

        url, clock = self.url, ClockTable()
        if self.config is not None:
            settings = ServiceSettings.load(str(self.config))
            url, clock = settings.database_url, settings.clock
        found = Database(url or "", clock, timeout_s=_PATIENCE_S, create=False)
        try:
            if found.is_sqlite and not Path(found.url.database or "").is_file():
                raise InputError(f"{found.url.database}: no such file")
            yield found
        finally:
            found.close()


@app.command()
def verify(record: RecordOptions, head: str | None = None) -> None:
    """Check that no row of the log was changed or removed, and that the state is what it says.

    It names the first row that is not, and ends with exit code 1. Write the printed head down
    somewhere else: with it, a log that was rewritten from beginning to end is found out, too.

    Options:
      --head NUMBER:HASH  What this command printed as head earlier: is that row still there?

    Example:
      ideal audit verify sqlite:///record.db
    """
    with record.database() as database, stages("Verifying"):
        from ideal_dispatch.service.record import audit

        noted = None if head is None else audit.parse_mark(head)
        found = audit.verify(database, noted)
    if found.fault is not None:
        err.print("[bold red]broken:[/]", end=" ")
        err.print(found.fault, markup=False, soft_wrap=True)
        raise typer.Exit(1)
    pruned = f", {found.anchor.number:,} older ones pruned" if found.anchor.number else ""
    out.print(f"whole: {found.rows:,} rows{pruned}; units, advice and closures agree", markup=False)
    say(f"head: {found.head.number}:{found.head.hash}")


@app.command()
def export(
    output: Path,
    record: RecordOptions,
    since: str | None = None,
    until: str | None = None,
    force: bool = False,
) -> None:
    """Write rows of the log to a file: CSV for a spreadsheet, JSON lines for programs.

    Options:
      -o, --output FILE  The .csv or .jsonl file to write.
      --since TIME  From this day or time on, such as 2025-01-01; in UTC where it names no zone.
      --until TIME  Up to, not including, this day or time.

    Example:
      ideal audit export sqlite:///record.db -o 2025.csv --since 2025-01-01
    """
    check_file(output, force)
    first = None if since is None else read_moment("--since", since, UTC)
    last = None if until is None else read_moment("--until", until, UTC)
    with record.database() as database, stages("Exporting"):
        from ideal_dispatch.service.clock import micros
        from ideal_dispatch.service.record.audit import export as exported

        count = exported(
            database, output,
            since=None if first is None else micros(first),
            until=None if last is None else micros(last),
        )  # fmt: skip
    say(f"{count:,} rows written to {output}")


@app.command()
def prune(record: RecordOptions, keep_days: int | None = None) -> None:
    """Remove rows older than a number of days; the rest can still be verified.

    The oldest rows go, up to the first that is younger, and a row says so.

    Options:
      --keep-days DAYS  Rows younger than this stay; by default retention_days of --config.

    Example:
      ideal audit prune sqlite:///record.db --keep-days 365
    """
    from ideal_dispatch.service.record.audit import prune as pruned
    from ideal_dispatch.service.settings import LEAST_RETENTION_DAYS, ServiceSettings

    if keep_days is None and record.config is not None:
        keep_days = ServiceSettings.load(record.config).audit.retention_days or None
    if keep_days is None:
        raise InputError("how long are rows kept? Give --keep-days, or retention_days in --config")
    if keep_days < LEAST_RETENTION_DAYS:
        raise InputError(
            f"--keep-days {keep_days}: logs of a high-risk system are kept at least six months; "
            f"give {LEAST_RETENTION_DAYS} or more"
        )
    with record.database() as database:
        gone = pruned(database, keep_days)
    out.print(f"{gone:,} rows removed", markup=False)
