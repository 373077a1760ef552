"""Expected gain: fitted on what came about, sane on odd rows, one line on damage."""

import json
import pickle
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.dispatch.expected_gain import GainFeatures, GainModel
from ideal_dispatch.errors import FileFormatError, InputError

COLUMNS = [field.name for field in fields(GainFeatures)]
MODEL = GainModel((2.0, 0.05, 0.3, 0.2), (60.0, 40.0), rows=500)


def _pair(mean: Any, unshared: Any, first: Any, second: Any) -> GainFeatures:
    """Two quotes in the middle of ranges of the given widths."""
    half, other = np.asarray(first) / 2, np.asarray(second) / 2
    return GainFeatures(mean, unshared, half, half, other, other)


def _calls(n: int = 600, seed: int = 0) -> tuple[GainFeatures, FloatArray]:
    """Calls whose differences spread as :data:`MODEL` says."""
    rng = np.random.default_rng(seed)
    unshared, mean = rng.uniform(30, 900, n), rng.normal(-60, 80, n)
    features = _pair(mean, unshared, rng.gamma(2, 40, n), rng.gamma(2, 40, n))
    return features, mean + MODEL.spread_s(features) * rng.standard_t(3, n)


def test_the_spread_that_made_the_differences_is_found() -> None:
    features, realised = _calls(6000)
    model = GainModel.fit(features, realised)
    assert model.rows == 6000
    np.testing.assert_allclose(model.coefficients[1:], MODEL.coefficients[1:], rtol=0.2)
    np.testing.assert_allclose(model.spread_s(features), MODEL.spread_s(features), rtol=0.15)
    better = np.maximum(realised, 0.0).mean()
    assert model.expected_gain_s(features).mean() == pytest.approx(better, rel=0.15)


def test_variances_add() -> None:
    parts = [(2.0, 0.0, 0.0, 0.0), (0.0, 0.05, 0.0, 0.0), (0.0, 0.0, 0.3, 0.2)]
    features, _ = _calls(20)
    alone = [GainModel(part, (60.0, 40.0)).spread_s(features) for part in parts]
    np.testing.assert_allclose(
        MODEL.spread_s(features) ** 2, sum(spread**2 for spread in alone), rtol=1e-12
    )


def test_one_pair_gives_what_its_row_among_many_gives() -> None:
    features, _ = _calls(5)
    many = MODEL.expected_gain_s(features)
    assert many.shape == (5,)
    for row in range(5):
        one = GainFeatures(*(float(getattr(features, name)[row]) for name in COLUMNS))
        assert float(MODEL.expected_gain_s(one)) == pytest.approx(many[row], rel=1e-12)


def test_quotes_go_back_to_where_the_router_was() -> None:
    rng = np.random.default_rng(4)
    n = 3000
    ranges = rng.gamma(2, 15, (4, n))
    mean = rng.normal(-20, 40, n)
    features = GainFeatures(mean, 300.0, *ranges)
    moved = 0.4 * (ranges[0] - ranges[2]) - 0.6 * (ranges[1] - ranges[3])
    realised = mean + moved + 5.0 * rng.standard_t(3, n)
    model = GainModel.fit(features, realised)
    np.testing.assert_allclose(model.reversion, (0.4, 0.6), atol=0.03)
    np.testing.assert_allclose(model.mean_s(features), mean + moved, atol=6.0)
    assert model.correction_s(10.0, 0.0) == pytest.approx(10 * model.reversion[0])
    assert model.correction_s(0.0, 10.0) == pytest.approx(-10 * model.reversion[1])
    assert model.correction_s(np.nan, np.nan) == 0.0
    still = GainModel.fit(features, mean + 5.0 * rng.standard_t(3, n))
    assert max(still.reversion) < 0.05


def test_the_same_road_twice_saves_nothing() -> None:
    same = _pair(0.0, 0.0, 50.0, 50.0)
    assert float(MODEL.spread_s(same)) == 0.0
    assert float(MODEL.expected_gain_s(same)) == 0.0
    features, realised = _calls()
    doubled = [
        np.concatenate([getattr(features, name), np.full(300, value)])
        for name, value in zip(COLUMNS, (0.0, 0.0, 9.0, 9.0, 9.0, 9.0), strict=True)
    ]
    with_same = GainModel.fit(GainFeatures(*doubled), np.concatenate([realised, np.zeros(300)]))
    assert with_same == GainModel.fit(features, realised)


def test_an_unknown_width_is_a_typical_one() -> None:
    unknown = _pair(-10.0, 300.0, np.nan, 25.0)
    assert MODEL.spread_s(unknown) == MODEL.spread_s(_pair(-10.0, 300.0, 60.0, 25.0))
    features, realised = _calls()
    some = np.where(np.arange(600) % 4 == 0, np.nan, 2 * features.first_above_s)
    fitted = GainModel.fit(_pair(features.mean_s, features.unshared_s, some, np.nan), realised)
    known = some[~np.isnan(some)]
    assert fitted.typical_widths_s == pytest.approx((np.sqrt((known**2).mean()), 0.0))
    assert np.isfinite(fitted.spread_s(unknown))


def test_ten_rows_do_not_say_too_much() -> None:
    features, realised = _calls(10, seed=3)
    few = GainModel.fit(features, realised).spread_s(features)
    assert few.min() > 3.0
    assert few.max() < 300.0


def test_quotes_that_were_never_wrong_leave_little() -> None:
    features, _ = _calls(5000)
    spread = GainModel.fit(features, features.mean_s).spread_s(features)
    assert spread.min() > 0.2
    assert spread.max() < 2.0


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
        ((0.0, 1.0, np.inf, 1.0), "first_above_s is inf; it must be finite, or NaN"),
        (([0.0, 1.0], [1.0] * 3, 1.0, 1.0), "columns of 2, 3, 1, 1, 1, 1 rows; give equal ones"),
        (([[0.0]], 1.0, 1.0, 1.0), "single numbers or one row"),
        (("soon", 1.0, 1.0, 1.0), "mean_s"),
    ],
)
def test_features_that_make_no_sense(columns: Any, says: str) -> None:
    mean, unshared, above, below = columns
    with pytest.raises(InputError, match=says):
        GainFeatures(mean, unshared, above, below, 1.0, 1.0)


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
        GainModel.fit(_pair(0.0, 1.0, 1.0, 1.0), 3.0)


def _changed(**values: Any) -> str:
    content = {"kind": "ideal-dispatch expected gain", "version": 1, "degrees": 3,
               "coefficients": [0, 0, 0, 0], "typical_widths_s": [1, 1],
               "reversion": [0, 0.5], "rows": 5}  # fmt: skip
    return json.dumps(content | values)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "damaged model of expected gain .JSONDecodeError"),
        ("[1]", "not a model of expected gain; fit and save it again"),
        ("{}", "not a model of expected gain"),
        (_changed(version=2), "format 2, this version reads up to 1; upgrade"),
        (_changed(degrees=4), "4 degrees, this program knows 3"),
        (_changed(coefficients=[0, 0, 0]), "coefficients must be 4 finite numbers"),
        (_changed(coefficients={"a": 1}), "gain.json: coefficients: float"),
        (_changed(coefficients=None), "gain.json: gain model: coefficients"),
        (_changed(typical_widths_s=[-1, 1]), "typical_widths_s must be zero or more"),
        (_changed(coefficients=[0, 0, 0, -1]), "coefficients must be zero or more"),
        (_changed(rows="many"), "rows 'many' is not a whole number"),
        (_changed(rows=-1), "rows is -1"),
        (_changed().replace('"rows"', '"raws"'), "damaged model of expected gain .KeyError"),
        (_changed().replace("[0, 0, 0, 0]", "[NaN, 0, 0, 0]"), "4 finite numbers"),
        ("[" * 100_000, "damaged model of expected gain .RecursionError"),
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
    assert GainModel.load(path) == GainModel((0.0,) * 4, (1.0, 1.0), (0.0, 0.5), 5)
    with pytest.raises(InputError, match="no such file"):
        GainModel.load(tmp_path / "other.json")
