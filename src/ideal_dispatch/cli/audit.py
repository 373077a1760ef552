"""``ideal audit``: is the record whole, what is in it, and what may go."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ideal_dispatch.cli.help import CommandLine
from ideal_dispatch.cli.options import check_file, read_moment
from ideal_dispatch.cli.terminal import err, out, say, stages
from ideal_dispatch.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from ideal_dispatch.service.audit.store import AuditStore

app = CommandLine("Check, export and shorten the record of all advice that the service gave.")

_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class RecordOptions:
    """Which record of advice.

    Options:
      ADDRESS  Where the record is: sqlite:///audit.db or postgresql://user@host/database.
      --config FILE  The settings (.toml) of `ideal serve`, in place of an address.
    """

    url: str | None = None
    config: Path | None = None

    def address(self) -> str:
        """Where the database is."""
        if not find_spec("sqlalchemy"):
            raise MissingExtraError("the audit", "service")
        if (self.url is None) == (self.config is None):
            raise InputError("which database? Give its URL, or the service's settings as --config")
        if self.url is not None:
            return self.url
        from ideal_dispatch.service.settings import ServiceSettings

        return ServiceSettings.load(str(self.config)).database_url

    @contextmanager
    def store(self) -> "Iterator[AuditStore]":
        """The store of a record that exists: reading must not make an empty one."""
        address = self.address()
        from ideal_dispatch.service.audit.database import parse_url
        from ideal_dispatch.service.audit.store import AuditStore

        parsed = parse_url(address)
        if parsed.get_backend_name() == "sqlite" and not Path(parsed.database or "").is_file():
            raise InputError(f"{parsed.database}: no such file")
        with closing(AuditStore(address, timeout_s=_PATIENCE_S, create=False)) as store:
            yield store


@app.command()
def verify(record: RecordOptions, head: str | None = None) -> None:
    """Check that no row of the record was changed or removed; name the first that was.

    It ends with exit code 1 where one was. Write the printed head down somewhere
    else: with it, a record rewritten from beginning to end is found out, too.

    Options:
      --head NUMBER:HASH  What this command printed as head earlier: is that row still there?

    Example:
      ideal audit verify sqlite:///audit.db
    """
    with record.store() as store, stages("Verifying"):
        from ideal_dispatch.service.audit import verification

        noted = None if head is None else verification.parse_mark(head)
        found = verification.verify(store, noted)
    if found.fault is not None:
        err.print("[bold red]broken:[/]", end=" ")
        err.print(found.fault, markup=False, soft_wrap=True)
        raise typer.Exit(1)
    pruned = f", {found.anchor.number:,} older ones pruned" if found.anchor.number else ""
    again = f", {found.duplicates:,} of them duplicates" if found.duplicates else ""
    out.print(f"whole: {found.rows:,} rows{again}{pruned}", markup=False)
    say(f"head: {found.head.number}:{found.head.hash}")


@app.command()
def export(
    output: Path,
    record: RecordOptions,
    since: str | None = None,
    until: str | None = None,
    force: bool = False,
) -> None:
    """Write rows to a file: CSV for a spreadsheet, JSON lines for programs.

    Options:
      -o, --output FILE  The .csv or .jsonl file to write.
      --since TIME  From this day or time on, such as 2025-01-01; in UTC where it names no zone.
      --until TIME  Up to, not including, this day or time.

    Example:
      ideal audit export sqlite:///audit.db -o 2025.csv --since 2025-01-01
    """
    check_file(output, force)
    first = None if since is None else read_moment("--since", since, UTC)
    last = None if until is None else read_moment("--until", until, UTC)
    with record.store() as store, stages("Exporting"):
        from ideal_dispatch.service.audit import export as exporting

        count = exporting.export(store, output, since=first, until=last)
    say(f"{count:,} rows written to {output}")


@app.command()
def prune(record: RecordOptions, keep_days: int | None = None) -> None:
    """Remove rows older than a number of days; the rest can still be verified.

    The oldest rows go, up to the first that is younger, and a row says so.

    Options:
      --keep-days DAYS  Rows younger than this stay; by default retention_days of --config.

    Example:
      ideal audit prune sqlite:///audit.db --keep-days 365
    """
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
    with record.store() as store:
        gone = store.prune(datetime.now(UTC) - timedelta(days=keep_days))
    out.print(f"{gone:,} rows removed", markup=False)


@app.command()
def migrate(record: RecordOptions) -> None:
    """Bring the database's tables to the version of this program; safe to repeat.

    Example:
      ideal audit migrate postgresql://ideal@db.example/ideal
    """
    address = record.address()
    from ideal_dispatch.service.audit.database import migrate

    out.print(f"tables are of version {migrate(address)}", markup=False)
