"""Results as pandas DataFrames, for those who have pandas installed."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ideal_dispatch.errors import MissingExtraError

__all__ = ["DataFrame", "frame"]

if TYPE_CHECKING:
    from pandas import DataFrame  # type: ignore[import-untyped]
else:
    DataFrame = Any  # pandas is imported when a frame is made


def frame(columns: Mapping[str, Any]) -> DataFrame:
    """A DataFrame of named columns, all of one length."""
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtraError("a DataFrame", "records") from None
    return pd.DataFrame(dict(columns))
