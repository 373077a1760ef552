"""Live routers by the name that a file gives them: ours, and those that others add."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ideal_dispatch.errors import InputError
from ideal_dispatch.files import check_source
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.plugins import TRAFFIC_SOURCES, find_plugin, load_plugin, parameters
from ideal_dispatch.traffic.source import TrafficSource

if TYPE_CHECKING:
    from ideal_dispatch.traffic.google_routes import GoogleRoutes
    from ideal_dispatch.traffic.valhalla import Valhalla

ROUTERS = ("google", "valhalla")
"""Live routers of ours."""


def connect_router(
    kind: str,
    network: RoadNetwork,
    rng: np.random.Generator,
    *,
    url: str = "",
    key: str = "",
    ranges: bool = True,
    segment: str = "static_ratio",
    time_zone: str | None = None,
    **how: Any,
) -> "GoogleRoutes | Valhalla":
    """A client of one of :data:`ROUTERS`; ``how`` is as in :class:`RoutingService`.

    ``segment`` and ``ranges`` are Google's alone: see :class:`GoogleParams`.
    """
    if kind == "google":
        from ideal_dispatch.traffic.google_routes import URL, GoogleParams, GoogleRoutes

        params = GoogleParams(segment, ranges)  # type: ignore[arg-type]  # refuses other words
        return GoogleRoutes.connect(network, key, rng, params, url=url or URL, **how)
    from ideal_dispatch.traffic.valhalla import Valhalla, ValhallaParams

    return Valhalla(network, ValhallaParams(time_zone=time_zone), url=url, rng=rng, **how)


def load_router(kind: str, options: Mapping[str, Any], where: str, **offered: Any) -> TrafficSource:
    """A live router of others, registered or ``"module:Name"``; ``where`` names its key."""
    if parameters(find_plugin(TRAFFIC_SOURCES, kind, (), where)).get("recorded"):
        raise InputError(f"{where} {kind!r} needs `recorded`, which only a replay has")
    return load_plugin(
        TRAFFIC_SOURCES, kind, options, where,
        TrafficSource,  # type: ignore[type-abstract]
        **offered,
    )  # fmt: skip


def read_key(file: Path) -> str:
    """The key of a router that stands alone in a file."""
    check_source(file)
    return file.read_text(encoding="utf-8", errors="replace").strip()
