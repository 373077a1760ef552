"""Where a command takes place: the network and depots it is told, or the embedded city's."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ideal_dispatch.cli.options import option
from ideal_dispatch.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ideal_dispatch.network import Depot, RoadNetwork

NetworkOption = Annotated[
    Path | None,
    option("FILE", "Your city's .network file; the embedded city by default.", "--network"),
]
DepotsOption = Annotated[
    Path | None,
    option(
        "FILE", "A .csv of depots, columns name, lon and lat; needed with --network.", "--depots"
    ),
]


def read_network(file: Path | None) -> "RoadNetwork":
    """The network of a file, or the embedded city's."""
    from ideal_dispatch.cities import harbour_city
    from ideal_dispatch.network import RoadNetwork

    return harbour_city().network if file is None else RoadNetwork.load(file)


def told_depots(
    network: "RoadNetwork", network_file: Path | None, file: Path | None
) -> "Sequence[Depot]":
    """The depots of a file, or the embedded city's where no network is given."""
    if file is not None:
        from ideal_dispatch.cities import depots_of

        return depots_of(file, network)
    if network_file is not None:
        raise InputError("--network needs --depots: whose ambulances shall be asked for?")
    from ideal_dispatch.cities import harbour_city

    return harbour_city().depots
