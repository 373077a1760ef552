"""``ideal units``: the service told of units as they move."""

from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ideal_dispatch.cli.help import CommandLine
from ideal_dispatch.cli.options import given_token
from ideal_dispatch.cli.terminal import print_table, say, stages, warn
from ideal_dispatch.errors import InputError
from ideal_dispatch.ranges import Range

if TYPE_CHECKING:
    from ideal_dispatch.service.units.feed import Feed, FoundUnit

app = CommandLine("Tell the service where units are and what they do.")

_CHECK_S = 10.0


@app.command()
def follow(
    source: str,
    url: str = "http://127.0.0.1:8000",
    token_file_: Path | None = None,
    token: str | None = None,
    unit: str | None = None,
    field: list[str] | None = None,
    every: Annotated[float, Range(0.1, 3600)] = 1.0,
    check: bool = False,
) -> None:
    r"""Read a feed of vehicle positions (AVL) and send it to the service.

    The feed has lines: NMEA sentences (RMC, GGA, GLL) or GeoJSON features with a Point. The last
    position of a unit counts, and every change of its status. While the service is away it is
    tried again. A line that cannot be read is counted and never stops the feed.

    Options:
      SOURCE  A file, - for standard input, or an address (http:// or https://) that streams lines.
      --url ADDRESS  Where the service is.
      --token-file FILE  A file that holds the token of a cad, a dispatcher or an admin.
      --token TOKEN  The token itself; others on this computer may see it.
      --unit NAME  The unit of lines that name none.
      --field FIELD=NAME  What a property of your GeoJSON is called: id=vehicle. Repeat it for
          others. Fields: id, status, station, kind, heading, speed_kmh, at, call_id.
      --every SECONDS  The shortest time between two lists of news.
      --check  Send nothing: read for ten seconds at most and print what was found.

    Examples:
      ideal units follow positions.geojsonl --check
      ideal units follow positions.geojsonl --token-file cad.token
      ideal units follow https://avl.example/stream --token-file cad.token \
        --url https://ideal.example --field id=vehicle
    """
    from ideal_dispatch.service.units.avl import LineReader
    from ideal_dispatch.service.units.feed import Feed
    from ideal_dispatch.service.units.feed_source import Source
    from ideal_dispatch.service.units.fleet_client import FleetClient

    feed = Feed(Source(source), LineReader(unit or "", _fields(field or [])), warn, every_s=every)
    if check:
        with stages("Reading"):
            found = feed.check(_CHECK_S)
        _print_found(found, feed)
        return
    client = FleetClient(url, given_token("whose news are these?", token, token_file_))
    with closing(client), stages("Following") as progress:
        feed.follow(client, lambda: progress(_words(feed)))
    say(_words(feed))


def _fields(given: list[str]) -> dict[str, str]:
    pairs = {}
    for text in given:
        name, equals, other = text.partition("=")
        if not (name and equals and other):
            raise InputError(f"--field {text}: write it as id=vehicle")
        pairs[name] = other
    return pairs


def _words(feed: "Feed") -> str:
    """What came of it so far, in one line."""
    counts = feed.counts
    parts = {
        "lines": counts.lines, "units": feed.gathered.units, "news taken": counts.taken,
        "ignored": counts.ignored, "refused": counts.refused, "changes lost": counts.lost,
        "lines not read": counts.unread,
    }  # fmt: skip
    always = ("lines", "units", "news taken")
    return ", ".join(f"{n:,} {what}" for what, n in parts.items() if n or what in always)


def _print_found(found: "dict[str, FoundUnit]", feed: "Feed") -> None:
    rows = []
    for unit, one in sorted(found.items()):
        last = one.last
        rows.append((
            unit, f"{one.news:,}", *(f"{last[name]:.5f}" if name in last else "–"
                                     for name in ("lon", "lat")),
            f"{last['speed_kmh']:.0f}" if "speed_kmh" in last else "–",
            f"{datetime.fromisoformat(last['at']):%d %b %H:%M:%S}",
            ", ".join(f"{status} ×{many}" for status, many in one.statuses.items()) or "–",
            last.get("station", "–"),
        ))  # fmt: skip
    if not rows:
        raise InputError(f"no news of a unit in {feed.counts.lines:,} lines")
    header = ("unit", "news", "lon", "lat", "km/h", "last (UTC)", "statuses", "station")
    print_table(header, rows, bold=())
    read = feed.counts.lines - feed.counts.unread
    say(f"{read:,} of {feed.counts.lines:,} lines could be read; nothing was sent")
