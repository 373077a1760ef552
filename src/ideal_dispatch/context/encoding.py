"""The context as numbers: the paper's 27 columns, and further ones by configuration."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context.context import WEATHER_VARIABLES, Context
from ideal_dispatch.errors import InputError

VERSION = 1
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
PAPER_COLUMNS = (*WEATHER_VARIABLES, "hour", *WEEKDAYS, *MONTHS, "holiday", "holiday_eve")


@dataclass(frozen=True)
class ContextEncoding:
    """Which columns a context has ([IDEAL] table of environmental features).

    The 27 of the paper come first; ``extra`` names those added by
    configuration. What is unknown is NaN, and stays so until a model decides
    what to do about it.
    """

    extra: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = (*PAPER_COLUMNS, *self.extra)
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InputError(f"context column {twice[0]} is named twice")

    @property
    def columns(self) -> tuple[str, ...]:
        return (*PAPER_COLUMNS, *self.extra)

    @cached_property
    def checksum(self) -> str:
        """Hash of version, names and order: a model refuses contexts of another encoding."""
        text = json.dumps([VERSION, self.columns])
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def encode(self, contexts: Sequence[Context]) -> FloatArray:
        """One row per context."""
        rows = np.zeros((len(contexts), len(self.columns)))
        for row, context in zip(rows, contexts, strict=True):
            row[:5] = [value.value for value in context.weather]
            row[5] = context.at.hour
            row[6 + context.at.weekday()] = 1.0
            row[12 + context.at.month] = 1.0
            row[25:27] = context.holiday, context.holiday_eve
            row[27:] = [context.extra.get(name, np.nan) for name in self.extra]
        return rows
