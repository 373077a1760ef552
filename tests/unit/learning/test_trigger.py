"""A trigger: the same forest wherever it is grown, and nothing executed from its file."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.learning.trigger import Trigger, fit_trigger


def _calls(n: int = 300, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Differences near the second feature, which is sometimes unknown."""
    rng = np.random.default_rng(seed)
    features = rng.normal(0.0, 60.0, (n, 3))
    differences = features[:, 1] + rng.normal(0.0, 10.0, n)
    features[:: n // 20, 2] = np.nan
    return features, differences


def test_it_predicts_what_is_saved() -> None:
    trigger = fit_trigger(*_calls(), seed=1, names=("a", "b", "c"))
    features, differences = _calls(seed=7)
    predicted, saved = trigger.predict(features), np.maximum(differences, 0.0)
    assert (predicted >= 0).all()
    assert np.abs(predicted - saved).mean() < 0.4 * np.abs(saved - saved.mean()).mean()
    assert repr(trigger) == "Trigger(300 calls, 3 features)"


def test_loaded_it_says_the_same(tmp_path: Path) -> None:
    features, differences = _calls()
    trigger = fit_trigger(features, differences, seed=1, names=("a", "b", "c"))
    trigger.save(tmp_path / "a.trigger")
    again = Trigger.load(tmp_path / "a.trigger")
    assert again.names == ("a", "b", "c")
    np.testing.assert_array_equal(again.predict(features), trigger.predict(features))
    again.save(tmp_path / "b.trigger")
    assert (tmp_path / "a.trigger").read_bytes() == (tmp_path / "b.trigger").read_bytes()
    other = fit_trigger(features, differences, seed=2)
    assert not np.array_equal(other.predict(features), trigger.predict(features))


def test_unknown_features_where_training_knew_all() -> None:
    features, differences = _calls()
    trigger = fit_trigger(np.nan_to_num(features), differences)
    assert np.isfinite(trigger.predict([[np.nan, np.nan, np.nan]])).all()


@pytest.mark.parametrize(
    ("features", "saved", "options", "says"),
    [
        (np.zeros((5, 2)), np.zeros(5), {}, "5 calls with 2 features; at least 20 calls"),
        (np.zeros((30, 0)), np.zeros(30), {}, "30 calls with 0 features"),
        (np.zeros((30, 2)), np.zeros(29), {}, "seconds saved: expected 30 values, got 29"),
        (np.full((30, 2), np.inf), np.zeros(30), {}, "call 0: a feature is infinite"),
        (np.zeros((30, 2)), np.full(30, np.nan), {}, "call 0: seconds saved must be finite"),
        (np.zeros(30), np.zeros(30), {}, "trigger features: expected any × any values, got 30"),
        (np.zeros((30, 2)), np.zeros(30), {"seed": -1}, "seed -1: it must be from 0"),
        (np.zeros((30, 2)), np.zeros(30), {"names": ("a",)}, "1 names for 2 features"),
        ([["x"]] * 30, np.zeros(30), {}, "trigger features"),
    ],
)
def test_tables_that_teach_nothing(
    features: Any, saved: Any, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        fit_trigger(features, saved, **options)


def test_rows_it_cannot_read() -> None:
    trigger = fit_trigger(*_calls(60))
    for rows in (np.zeros((4, 2)), np.zeros(3), [[np.inf, 0.0, 0.0]]):
        with pytest.raises(InputError, match="rows of 3 finite or unknown features are needed"):
            trigger.predict(rows)


def test_damaged_files(tmp_path: Path) -> None:
    path = tmp_path / "a.trigger"
    fit_trigger(*_calls(60)).save(path)
    whole = path.read_bytes()
    for content, says in (
        (whole[: len(whole) // 2], "truncated or damaged trigger file"),
        (b"", "the file is empty"),
        (b"pickle", "not a trigger file; fit and save one again"),
    ):
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match=says):
            Trigger.load(path)
