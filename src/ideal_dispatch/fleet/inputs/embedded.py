"""The fleet of the embedded city."""

from pathlib import Path

from ideal_dispatch.fleet.city import FleetCity
from ideal_dispatch.fleet.inputs.city_files import city_from


def harbour_fleet() -> FleetCity:
    """Port Almery with eleven units at two depots and four standby posts; fictional."""
    return city_from({}, "city", Path())
