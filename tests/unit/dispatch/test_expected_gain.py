"""Expected gain: fitted on what came about, sane on odd rows, one line on damage."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.dispatch.expected_gain import GainFeatures, GainModel
from ideal_dispatch.errors import FileFormatError, InputError

MODEL = GainModel((-1.0, 0.5, 0.3, 0.2), (60.0, 40.0), 500)


def _calls(n: int = 600, seed: int = 0) -> tuple[GainFeatures, FloatArray]:
    """Calls whose differences spread like the square root of the unshared time."""
    rng = np.random.default_rng(seed)
    unshared, mean = rng.uniform(30, 900, n), rng.normal(-60, 80, n)
    features = GainFeatures(mean, unshared, rng.gamma(2, 40, n), rng.gamma(2, 40, n))
    return features, mean + 2.0 * np.sqrt(unshared) * rng.standard_t(3, n)


def test_the_spread_that_made_the_differences_is_found() -> None:
    features, realised = _calls(3000)
    model = GainModel.fit(features, realised)
    assert model.rows == 3000
    assert model.coefficients[1] == pytest.approx(0.5, abs=0.1)
    np.testing.assert_allclose(
        model.spread_s(features), 2.0 * np.sqrt(features.unshared_s), rtol=0.25
    )
    better = np.maximum(realised, 0.0).mean()
    assert model.expected_gain_s(features).mean() == pytest.approx(better, rel=0.15)


def test_one_pair_gives_what_its_row_among_many_gives() -> None:
    features, _ = _calls(5)
    many = MODEL.expected_gain_s(features)
    assert many.shape == (5,)
    for row in range(5):
        one = GainFeatures(
            float(features.mean_s[row]), float(features.unshared_s[row]),
            float(features.first_width_s[row]), float(features.second_width_s[row]),
        )  # fmt: skip
        assert float(MODEL.expected_gain_s(one)) == pytest.approx(many[row], rel=1e-12)


def test_the_same_road_twice_saves_nothing() -> None:
    same = GainFeatures(0.0, 0.0, 50.0, 50.0)
    assert float(MODEL.spread_s(same)) == 0.0
    assert float(MODEL.expected_gain_s(same)) == 0.0
    features, realised = _calls()
    doubled = [
        np.concatenate([getattr(features, name), np.full(300, value)])
        for name, value in (
            ("mean_s", 0.0), ("unshared_s", 0.0), ("first_width_s", 9.0), ("second_width_s", 9.0),
        )
    ]  # fmt: skip
    with_same = GainModel.fit(GainFeatures(*doubled), np.concatenate([realised, np.zeros(300)]))
    assert with_same == GainModel.fit(features, realised)


def test_an_unknown_width_is_a_typical_one() -> None:
    unknown = GainFeatures(-10.0, 300.0, np.nan, 25.0)
    assert MODEL.spread_s(unknown) == MODEL.spread_s(GainFeatures(-10.0, 300.0, 60.0, 25.0))
    features, realised = _calls()
    some = np.where(np.arange(600) % 4 == 0, np.nan, features.first_width_s)
    fitted = GainModel.fit(
        GainFeatures(features.mean_s, features.unshared_s, some, np.nan), realised
    )
    known = some[~np.isnan(some)]
    assert fitted.typical_widths_s[0] == pytest.approx(np.exp(np.log(known).mean()))
    assert fitted.coefficients[3] == 0.0
    assert np.isfinite(fitted.spread_s(unknown))


def test_a_column_that_never_varied_gets_no_slope() -> None:
    features, realised = _calls()
    model = GainModel.fit(GainFeatures(features.mean_s, 300.0, 20.0, np.nan), realised)
    assert model.coefficients[1:] == (0.0, 0.0, 0.0)
    far = model.spread_s(GainFeatures(0.0, 5000.0, 900.0, 900.0))
    assert float(far) == pytest.approx(np.exp(model.coefficients[0]))


def test_ten_rows_give_little_more_than_one_spread() -> None:
    features, realised = _calls(10, seed=3)
    few = GainModel.fit(features, realised).spread_s(features)
    assert few.min() > 3.0
    assert few.max() < 300.0


def test_quotes_that_were_never_wrong_leave_half_a_second() -> None:
    features, _ = _calls()
    model = GainModel.fit(features, features.mean_s)
    np.testing.assert_allclose(model.spread_s(features), 0.5, rtol=1e-6)


def test_one_absurd_day_does_not_widen_all_others() -> None:
    features, realised = _calls()
    wild = realised.copy()
    wild[0] = 1e7
    usual = GainModel.fit(features, realised).spread_s(features)
    np.testing.assert_allclose(GainModel.fit(features, wild).spread_s(features), usual, rtol=0.15)


def test_the_same_rows_give_the_same_file(tmp_path: Path) -> None:
    features, realised = _calls()
    for name in ("a", "b"):
        GainModel.fit(features, realised).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    again = GainModel.load(tmp_path / "a")
    assert again == GainModel.fit(features, realised)
    assert pickle.loads(pickle.dumps(again)) == again


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ((np.nan, 1.0, 1.0, 1.0), "row 0: mean_s is nan; it must be finite"),
        ((0.0, -1.0, 1.0, 1.0), "unshared_s is -1.0; it must be finite and zero or more"),
        ((0.0, [1.0, np.inf], 1.0, 1.0), "row 1: unshared_s is inf"),
        ((0.0, 1.0, np.inf, 1.0), "first_width_s is inf; it must be finite, or NaN"),
        (([0.0, 1.0], [1.0] * 3, 1.0, 1.0), "columns of 2, 3, 1, 1 rows; give equal ones"),
        (([[0.0]], 1.0, 1.0, 1.0), "single numbers or one row"),
        (("soon", 1.0, 1.0, 1.0), "mean_s"),
    ],
)
def test_features_that_make_no_sense(columns: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        GainFeatures(*columns)


def test_fits_that_cannot_be_made() -> None:
    features, realised = _calls(12)
    with pytest.raises(InputError, match="12 rows of features and 11 realised differences"):
        GainModel.fit(features, realised[1:])
    with pytest.raises(InputError, match="realised differences, row 2: nan is not finite"):
        GainModel.fit(features, np.where(np.arange(12) == 2, np.nan, realised))
    few, some = _calls(9)
    with pytest.raises(InputError, match="9 calls with different roads to fit on; at least 10"):
        GainModel.fit(few, some)
    with pytest.raises(InputError, match="1 rows of features"):
        GainModel.fit(GainFeatures(0.0, 1.0, 1.0, 1.0), 3.0)


def _changed(**values: Any) -> str:
    content = {"kind": "ideal-dispatch expected gain", "version": 1, "degrees": 3,
               "coefficients": [0, 0, 0, 0], "typical_widths_s": [1, 1], "rows": 5}  # fmt: skip
    return json.dumps(content | values)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "damaged .JSONDecodeError"),
        ("[1]", "no model of expected gain; fit and save it again"),
        ("{}", "no model of expected gain"),
        (_changed(version=2), "version 2, this program reads 1"),
        (_changed(degrees=4), "4 degrees, this program knows 3"),
        (_changed(coefficients=[0, 0, 0]), "coefficients must be 4 finite numbers"),
        (_changed(coefficients={"a": 1}), "damaged .InputError"),
        (_changed(coefficients=None), "damaged .InputError"),
        (_changed(typical_widths_s=[0, 1]), "typical_widths_s must be above zero"),
        (_changed(rows="many"), "rows 'many' is not a whole number"),
        (_changed(rows=-1), "rows is -1"),
        (_changed().replace('"rows"', '"raws"'), "damaged .KeyError"),
        (_changed().replace("[0, 0, 0, 0]", "[NaN, 0, 0, 0]"), "4 finite numbers"),
        ("[" * 100_000, "damaged .RecursionError"),
    ],
)
def test_damaged_files_are_refused_in_one_line(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "gain.json"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=says) as caught:
        GainModel.load(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_whole_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "gain.json"
    path.write_text(_changed())
    assert GainModel.load(path) == GainModel((0.0,) * 4, (1.0, 1.0), 5)
    with pytest.raises(InputError, match="no such file"):
        GainModel.load(tmp_path / "other.json")
