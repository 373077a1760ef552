"""Settings of training: a TOML file over the defaults, and single values over both."""

import os
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ideal_dispatch.errors import InputError
from ideal_dispatch.learning.parameters import TrainParams
from ideal_dispatch.learning.radius_training import RadiusParams
from ideal_dispatch.toml_tables import read_toml


def settings(
    base: TrainParams,
    file: str | os.PathLike[str] | None = None,
    changes: Mapping[str, Any] | None = None,
    architecture: Mapping[str, Any] | None = None,
    radius: Mapping[str, Any] | None = None,
) -> tuple[TrainParams, RadiusParams]:
    """Parameters of training and of the radius; what is None changes nothing.

    The file has the names of :class:`TrainParams`, a table ``[architecture]``
    and a table ``[radius]`` with those of :class:`RadiusParams`. Without a
    level of its own the radius aims at the coverage, and a coverage of 0
    leaves it unscaled.
    """
    in_file: dict[str, Any] = {}
    if file is not None:
        tables = read_toml(file)
        try:
            base, in_file = _read(base, tables)
        except InputError as error:
            raise InputError(f"{os.fspath(file)}: {error}") from None
    whole = base.as_dict() | _given(changes)
    whole["architecture"] = whole["architecture"] | _given(architecture)
    params = TrainParams.from_dict(whole)
    return params, _radius({"seed": params.seed} | in_file | _given(radius))


def _read(base: TrainParams, read: dict[str, Any]) -> tuple[TrainParams, dict[str, Any]]:
    """What a file makes of ``base``, and its radius table, both checked."""
    shape, radius = read.pop("architecture", {}), read.pop("radius", {})
    for name, table in (("architecture", shape), ("radius", radius)):
        if not isinstance(table, dict):
            raise InputError(f"{name} {table!r}: a table [{name}] is needed")
    whole = base.as_dict()
    whole = whole | read | {"architecture": whole["architecture"] | shape}
    _radius(radius)
    return TrainParams.from_dict(whole), radius


def _radius(values: dict[str, Any]) -> RadiusParams:
    known = sorted(f.name for f in fields(RadiusParams))
    for name in values:
        if name not in known:
            raise InputError(f"radius.{name}: no such parameter; there are {known}")
    if "coverage" in values:
        share = values["coverage"]
        if not share:
            values = values | {"coverage": None}
        elif isinstance(share, float) and 0 < share < 1:
            values = {"level": share} | values
    try:
        return RadiusParams(**values)
    except TypeError as error:
        raise InputError(f"radius parameters: {error}") from None


def _given(values: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (values or {}).items() if value is not None}
