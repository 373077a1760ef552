"""Results as pandas DataFrames, for those who have pandas installed."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ideal_dispatch.errors import MissingExtraError

__all__ = ["DataFrame", "frame", "pandas"]

if TYPE_CHECKING:
    from pandas import DataFrame  # type: ignore[import-untyped]
else:
    DataFrame = Any  # pandas is imported when a frame is made


def frame(columns: Mapping[str, Any]) -> DataFrame:
    """A DataFrame of named columns, all of one length."""
    return pandas().DataFrame(dict(columns))


def pandas() -> Any:
    """The package, or an error that says how to install it."""
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtraError("a DataFrame", "records") from None
    return pd
