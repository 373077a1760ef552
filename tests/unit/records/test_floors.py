import pytest

from ideal_dispatch.records.floors import parse_floor


@pytest.mark.parametrize(
    ("text", "floor"),
    [
        ("G/F", 0), ("g", 0), ("Ground", 0), ("ground floor", 0), ("地下", 0), ("GF", 0),
        ("12/F", 12), (" 12 / f ", 12), ("12F", 12), ("12", 12), ("12A", 12), ("12A/F", 12),
        ("12.0", 12), ("33/f.", 33), ("12樓", 12), ("十二樓", 12), ("二十樓", 20), ("三樓", 3),
        ("23字樓", 23), ("1st floor", 1), ("3rd Flr.", 3), ("Level 5", 5), ("Floor 7", 7),
        ("０３/Ｆ", 3), ("LG", -1), ("LG/F", -1), ("LG2", -2), ("B1", -1), ("B2/F", -2),
        ("地庫", -1), ("-1", -1), ("−2", -2), ("-1/F", -1), ("UG", 1), ("UG2", 2), ("M/F", 1),
        ("podium", 1), ("P3", 3), ("0", 0), ("#08-131", 8), ("#12-4A", 12),
    ],
)  # fmt: skip
def test_floors_as_people_write_them(text: str, floor: int) -> None:
    assert parse_floor(text) == floor


@pytest.mark.parametrize(
    "text",
    ["", "R/F", "roof", "PH", "??", "12-13", "1/F & 2/F", "5.5", "99999", "Flat 12", "=12", "1e3",
     "nan", "x" * 10_000],
)  # fmt: skip
def test_what_is_not_recognised(text: str) -> None:
    assert parse_floor(text) is None


def test_where_the_first_floor_is_the_street() -> None:
    read = [parse_floor(text, first_is_ground=True) for text in ("1st floor", "2", "G", "B1", "0")]
    assert read == [0, 1, 0, -1, 0]
