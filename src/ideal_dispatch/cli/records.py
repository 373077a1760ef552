"""``ideal records``: from an agency's files of calls and units to trips and responses."""

from pathlib import Path
from typing import Any

from ideal_dispatch.cli.help import CommandLine
from ideal_dispatch.cli.options import check_file, check_folder
from ideal_dispatch.cli.terminal import out, print_facts, print_next, print_report, say, stages
from ideal_dispatch.errors import InputError

app = CommandLine("Turn an agency's records of calls and units into what models learn from.")


_WORDS = 10


@app.command()
def prepare(
    records: Path, network_file: Path, depots: Path, config: Path, output: Path, force: bool = False
) -> None:
    r"""Turn records into trips, and give a reason for every row that is left out.

    Writes trips.trips (what a model learns from), quarantine.csv (rows left out,
    with reasons), report.html and report.json. Names, addresses and ages are
    never read. The exit code is 2 if no trip remains.

    Options:
      RECORDS  Your records: .csv, .xlsx, or NEMSIS v3.5 .xml.
      --network FILE  Your city's .network file, made by `ideal network build`.
      --depots FILE  Your depots, .csv or .xlsx: name, lon, lat, and call_sign if you have it.
      --config FILE  A .toml file that says how to read your records.

    Examples:
      ideal records prepare records.csv --network city.network \
        --depots depots.csv --config agency.toml -o out/
      ideal records prepare reports.xml --network city.network \
        --depots depots.csv --config nemsis.toml -o out/ --force
    """
    from ideal_dispatch.files import check_source
    from ideal_dispatch.network import RoadNetwork
    from ideal_dispatch.records.agency import AgencySettings
    from ideal_dispatch.records.prepare import prepare_records
    from ideal_dispatch.records.report import FILES, write_trips

    check_source(records, network_file, depots, config)
    check_folder(output, FILES, force, [records, network_file, depots, config])
    with stages("Preparing") as progress:
        settings = AgencySettings.load(config)
        network = RoadNetwork.load(network_file)
        prepared = prepare_records(records, network, depots, settings, progress)
        progress("writing the report")
        output.mkdir(parents=True, exist_ok=True)
        report, facts = write_trips(prepared, network, settings, output)
    print_report(report, "exclusions", "quarantine", "preparation")
    _show_words(facts["unknown_words"])
    say(f"wrote {', '.join(FILES)} to {output}")
    if not facts["trips"]:
        raise InputError(f"{records}: no usable trip remains; see {output / 'report.html'}")
    print_next("ideal", "train", output / "trips.trips", "--network", network_file, "-o", "model/")


@app.command()
def responses(
    log: Path,
    output: Path,
    format: str = "",  # noqa: A002
    config: Path | None = None,
    stations: Path | None = None,
    network_file: Path | None = None,
    trips: Path | None = None,
    insist: bool = False,
    force: bool = False,
) -> None:
    r"""Read a unit log: who was sent to which call, when they left, arrived, were recalled.

    Writes a .responses file, and beside it a report (.html, .json) and the rows
    that could not be used, with reasons (.left_out.csv). A column that tells the
    order of arrival is refused: nobody knows it at the call.

    Options:
      LOG  Your log: .csv, .csv.gz, .xlsx, or NEMSIS v3.5 .xml.
      -o, --output FILE  The .responses file to write.
      --format NAME  A log that is known: london, lancaster, nemsis or datasf.
      --config FILE  A .toml file that says how to read your log, or what is different in yours.
      --stations FILE  Your stations, .csv or .xlsx: name, lon, lat.
      --network FILE  Your city's .network file: the report then says what lies on its roads.
      --trips FILE  Also write the arrivals as .trips for `ideal train`; needs --network.
      --insist  Read a column even if its name says that it tells the order of arrival.

    Examples:
      ideal records responses unit_log.csv --config unit_log.toml \
        --stations stations.csv --network city.network \
        -o city.responses --trips city.trips
      ideal records responses lfb_incidents.csv.gz --format london \
        --stations lfb_stations.csv -o london.responses
    """
    from ideal_dispatch.files import check_source
    from ideal_dispatch.network import RoadNetwork
    from ideal_dispatch.records.past_weather import weather_provider
    from ideal_dispatch.records.report import report_files, write_responses
    from ideal_dispatch.records.response_log import LogSettings
    from ideal_dispatch.records.response_reading import read_responses

    inputs = [log, config, stations, network_file]
    check_source(*inputs)
    if output.suffix != ".responses":
        raise InputError(f"-o {output}: name a file that ends in .responses")
    if trips is not None and network_file is None:
        raise InputError("--trips needs --network: on which roads?")
    for target in (output, *report_files(output)):
        check_file(target, force, inputs)
    if trips is not None:
        check_file(trips, force, [*inputs, output], "--trips")
    with stages("Reading the log") as progress:
        settings = LogSettings.given(format, config)
        network = None if network_file is None else RoadNetwork.load(network_file)
        read = read_responses(log, settings, stations, insist=insist)
        progress("writing the report")
        report = write_responses(read, output, network)
        if trips is not None and network is not None:
            progress("making trips")
            made, _ = read.responses.trips(
                network, weather=weather_provider(settings), rules=settings.weather
            )
            made.save(trips)
    print_report(report, "left-out")
    written = [*report_files(output), *([] if trips is None else [trips])]
    say(f"wrote {output}, {', '.join(path.name for path in written)}")
    if not len(read.responses):
        raise InputError(f"{log}: no usable row; see {report_files(output)[0]}")
    if trips is not None:
        print_next("ideal", "train", trips, "--network", network_file, "-o", "model/")


def _show_words(words: list[dict[str, Any]]) -> None:
    """Words that were not understood, and the settings that explain them."""
    if not words:
        return
    shown = words[:_WORDS]
    rows = {
        f"{one['field']} {one['word']!r}": f"{one['rows']:,}"
        + (f", nearest {one['nearest']}" if one["nearest"] else "")
        for one in shown
    }
    more = f", {_WORDS} of {len(words):,}; all are in report.json" if len(words) > _WORDS else ""
    print_facts(f"Words that were not understood, and their rows{more}", rows, "left")
    out.print(
        "to explain them, put such lines into the settings, each with the right value:", style="dim"
    )
    settings = sorted((word["setting"] for word in shown), key=lambda setting: setting[0])
    for line in dict.fromkeys(text for setting in settings for text in setting):
        say(f"  {line}")
    out.print()
