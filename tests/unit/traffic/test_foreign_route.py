import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ideal_dispatch.errors import InputError
from ideal_dispatch.traffic.foreign_route import decode_polyline
from tests.polylines import encode_polyline

LINES = arrays(
    np.float64,
    st.tuples(st.integers(0, 30), st.just(2)),
    elements=st.floats(-90, 90, allow_subnormal=False),
)


def test_the_documented_example() -> None:
    points = decode_polyline("_p~iF~ps|U_ulLnnqC_mqNvxq`@")
    np.testing.assert_allclose(points, [[-120.2, 38.5], [-120.95, 40.7], [-126.453, 43.252]])


def test_the_start_of_a_real_valhalla_shape() -> None:
    points = decode_polyline("}ltdh@kyzp~EnS_d@", 6)
    np.testing.assert_allclose(points, [[117.208998, 21.588703], [117.209598, 21.588375]])


@given(line=LINES, precision=st.sampled_from([5, 6]))
def test_there_and_back(
    line: np.ndarray[tuple[int, int], np.dtype[np.float64]], precision: int
) -> None:
    again = decode_polyline(encode_polyline(line, precision), precision)
    np.testing.assert_allclose(again, line, atol=0.5001 * 10.0**-precision)


@given(st.text(max_size=60))
def test_any_text_is_a_line_or_one_clear_error(text: str) -> None:
    try:
        points = decode_polyline(text)
    except InputError:
        return
    assert points.shape[1] == 2
    assert np.isfinite(points).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("_p~iF~ps|U ", "byte 10 is not part"),
        ("_p~iFé", "byte 5 is not part"),
        ("_p~iF~ps|", "middle of a number; was it cut off"),
        ("_p~iF", "a latitude without its longitude"),
        ("~~~~~~~~~@?", "a number is too long"),
        ("_gsia_C?", "is its precision 1e5"),
    ],
)
def test_damaged_text(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        decode_polyline(text)


def test_an_empty_line() -> None:
    assert decode_polyline("").shape == (0, 2)
