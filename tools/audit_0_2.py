"""Verify or export an audit of version 0.2 of ideal-dispatch.

    python tools/audit_0_2.py verify sqlite:///audit.db [--head 734:HASH]
    python tools/audit_0_2.py export sqlite:///audit.db audit.csv

The address is that of the database: sqlite:///FILE or postgresql://user@host/database. `verify`
walks along the chain, names the first row in doubt and ends with exit code 1 where there is one;
with a head that was noted earlier it also finds a chain that was rewritten as a whole. `export`
writes all rows to a .csv file for people or a .jsonl file for programs. Neither changes the
database. The script stands alone: it needs psycopg for PostgreSQL and nothing else.
"""

import argparse
import csv
import hashlib
import json
import os
import re
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

QUERY = (
    "SELECT number, id, kind, call_id, key, at, body, duplicate_of, previous_hash, hash "
    "FROM audit ORDER BY number"
)
MARKS = "SELECT name, number, hash FROM audit_marks"
ANSWER = {
    "decision": ("answer", "decision"),
    "primary_depot": ("answer", "primary", "depot"),
    "primary_unit": ("answer", "primary", "unit"),
    "second_depot": ("answer", "second", "depot"),
    "gain_s": ("answer", "gain_s"),
    "threshold_s": ("answer", "threshold", "seconds"),
    "revision": ("answer", "revision"),
    "latency_ms": ("answer", "latency_ms"),
    "response": ("response", "action"),
    "reason": ("response", "reason_code"),
    "text": ("response", "text"),
    "actor": ("actor",),
}
"""Columns of a CSV, and where their values stand in a row's body."""

FORMULA = re.compile(r"\s*[=+\-@\t\r\n|＝＋－＠]")
NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?(e[+-]?[0-9]+)?", re.IGNORECASE)


class AuditError(Exception):
    """The audit cannot be read; one line says why."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in the chain: the row of that number has that hash."""

    number: int
    hash: str


@dataclass(frozen=True, slots=True)
class Row:
    """A row as the database holds it: nothing in it is checked."""

    number: int
    id: str
    kind: str
    call_id: str
    key: str | None
    at: str
    body: str
    duplicate_of: str | None
    previous_hash: str
    hash: str

    @property
    def expected_hash(self) -> str:
        """The hash that these contents give; empty where a value is no text."""
        contents = [
            self.number, self.id, self.kind, self.call_id, self.key, self.at,
            self.body, self.duplicate_of, self.previous_hash,
        ]  # fmt: skip
        try:
            text = json.dumps(contents, sort_keys=True, separators=(",", ":"), allow_nan=False)
        except (TypeError, ValueError):
            return ""
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    @property
    def content(self) -> Any:
        """The body's JSON, or its text where that is broken."""
        try:
            return json.loads(self.body)
        except (TypeError, ValueError, RecursionError):
            return str(self.body)


@dataclass(frozen=True, slots=True)
class Chain:
    """All rows at one moment: ``anchor`` is the last pruned row, ``head`` the last written."""

    anchor: Mark
    head: Mark
    rows: Iterator[Row]


@contextmanager
def open_chain(address: str) -> Iterator[Chain]:
    """The chain in the database at an address, read in one snapshot."""
    failure: type[Exception]
    kind, _, rest = address.partition("://")
    if kind == "sqlite" and rest.startswith("/") and Path(rest[1:]).is_file():
        uri = f"{Path(rest[1:]).absolute().as_uri()}?mode=ro"
        connection: Any = sqlite3.connect(uri, uri=True, isolation_level=None)
        connection.text_factory = _text
        connection.execute("BEGIN")
        rows, failure = connection.cursor(), sqlite3.Error
    elif kind.removesuffix("+psycopg") in ("postgresql", "postgres"):
        connection, failure = _postgresql(f"postgresql://{rest}")
        rows = connection.cursor("audit")  # on the server: an audit may not fit into memory
    else:
        raise AuditError(f"{address}: no such file; write sqlite:///FILE or postgresql://…")
    with closing(connection):
        try:
            marks = {name: Mark(*rest) for name, *rest in connection.execute(MARKS)}
            if not {"anchor", "head"} <= set(marks):
                raise AuditError("the chain's head or anchor is missing; restore a backup")
            rows.execute(QUERY)
            yield Chain(marks["anchor"], marks["head"], (Row(*values) for values in rows))
        except failure as error:
            first = str(error).partition("\n")[0]
            raise AuditError(f"not a readable audit of version 0.2: {first}") from None


def _postgresql(address: str) -> tuple[Any, type[Exception]]:
    """A connection that reads one snapshot, and the error of its driver."""
    try:
        import psycopg
    except ImportError:
        raise AuditError("PostgreSQL needs psycopg: pip install 'psycopg[binary]'") from None

    class Text(psycopg.adapt.Loader):
        def load(self, data: Any) -> str:
            return _text(bytes(data))

    try:
        connection = psycopg.connect(address)
    except psycopg.Error as error:
        raise AuditError(str(error).partition("\n")[0]) from None
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    connection.read_only = True
    connection.adapters.register_loader("text", Text)
    return connection, psycopg.Error


def _text(data: bytes) -> str:
    """Text whose broken bytes stay recognisable, so that the hash differs."""
    return data.decode("utf-8", "surrogateescape")


def verify(chain: Chain, noted: Mark | None = None) -> tuple[str | None, int, int]:
    """What is wrong with the first row in doubt, or None; rows that are whole, and duplicates."""
    last, rows, duplicates = chain.anchor, 0, 0
    noted_seen, pruned = noted == last, not chain.anchor.number
    for row in chain.rows:
        if row.number <= last.number:
            return f"row {row.number} stands before the anchor: it was pruned", rows, duplicates
        if row.number > last.number + 1:
            return f"rows {last.number + 1} to {row.number - 1} are missing", rows, duplicates
        if row.expected_hash != row.hash:
            return f"row {row.number} was edited or moved: its hash differs", rows, duplicates
        if row.previous_hash != last.hash:
            return f"row {row.number} does not follow row {last.number}", rows, duplicates
        last, rows, duplicates = (
            Mark(row.number, row.hash), rows + 1, duplicates + (row.duplicate_of is not None)
        )  # fmt: skip
        noted_seen |= last == noted
        body = row.content
        if row.kind == "service" and isinstance(body, dict) and body.get("event") == "prune":
            pruned |= Mark(body.get("number", 0), body.get("hash", "")) == chain.anchor
    head, anchor = chain.head, chain.anchor
    fault = None
    if last != head:
        fault = f"the chain ends with row {last.number}, its head is row {head.number}"
    elif not pruned:
        fault = f"rows 1 to {anchor.number} are missing, and no row says that they were pruned"
    elif noted and noted.number >= anchor.number and not noted_seen:
        fault = f"row {noted.number} is not the one that was noted: the chain was rewritten"
    return fault, rows, duplicates


def export(chain: Chain, path: Path) -> int:
    """Write all rows to a new .csv or .jsonl file that only its owner may read; how many."""
    if path.suffix not in (".csv", ".jsonl"):
        raise AuditError(f"{path}: name a .csv or .jsonl file")
    count = 0
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        names = [*Row.__slots__, *ANSWER]
        table = csv.DictWriter(file, names, quoting=csv.QUOTE_ALL)
        if path.suffix == ".csv":
            file.write("\ufeff")  # without the mark spreadsheets guess the encoding
            table.writeheader()
        for row in chain.rows:
            count += 1
            if path.suffix == ".jsonl":
                file.write(json.dumps(asdict(row) | {"body": row.content}) + "\n")
                continue
            body, values = row.content, asdict(row)
            for name, keys in ANSWER.items():
                value = body
                for key in keys:
                    value = value.get(key) if isinstance(value, dict) else None
                values[name] = value
            table.writerow({name: _cell(value) for name, value in values.items()})
    return count


def _cell(value: object) -> str:
    """A value as text, with an apostrophe before what a spreadsheet would run."""
    text = "" if value is None else str(value)
    return f"'{text}" if FORMULA.match(text) and not NUMBER.fullmatch(text) else text


def _mark(text: str) -> Mark:
    number, _, digest = text.partition(":")
    if not number.isdecimal() or len(digest) != 64:
        raise argparse.ArgumentTypeError("write it as 734:HASH, as `verify` prints it")
    return Mark(int(number), digest.lower())


def main() -> int:
    """Run a command; the exit code: 0 whole, 1 broken, 2 not readable."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    verifying = commands.add_parser("verify", help="name the first row that was changed")
    exporting = commands.add_parser("export", help="write all rows to a file")
    for command in (verifying, exporting):
        command.add_argument("address", metavar="ADDRESS")
    verifying.add_argument("--head", metavar="NUMBER:HASH", type=_mark)
    exporting.add_argument("file", metavar="FILE", type=Path)
    given = parser.parse_args()
    try:
        with open_chain(given.address) as chain:
            if given.command == "export":
                print(f"{export(chain, given.file):,} rows written to {given.file}")
                return 0
            fault, rows, duplicates = verify(chain, given.head)
    except (AuditError, OSError) as error:
        print(f"audit: {error}", file=sys.stderr)
        return 2
    if fault is not None:
        print(f"broken: {fault}", file=sys.stderr)
        return 1
    print(f"whole: {rows:,} rows, {duplicates:,} duplicates, {chain.anchor.number:,} pruned")
    print(f"head: {chain.head.number}:{chain.head.hash}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
