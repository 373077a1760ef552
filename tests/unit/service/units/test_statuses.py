"""Status codes: what they say, and one line where nobody knows."""

from typing import get_args

import pytest

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.settings import StatusOrNone, UnitsTable
from ideal_dispatch.service.units.statuses import StatusCodes, Table
from ideal_dispatch.service.units.unit import STATUSES


def test_settings_know_the_same_words() -> None:
    """They cannot import them: units are built on settings."""
    assert get_args(StatusOrNone) == ("", *STATUSES)
    assert set(get_args(Table)) == set(get_args(UnitsTable.__annotations__["statuses"]))


@pytest.mark.parametrize("table", get_args(Table))
def test_our_words_are_known_in_every_table(table: Table) -> None:
    codes = StatusCodes(table)
    assert [codes.status(word) for word in STATUSES] == list(STATUSES)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("enroute", "en_route"),
        ("En Route", "en_route"),
        ("EN-ROUTE", "en_route"),
        ("on scene", "on_scene"),
        ("OnScene", "on_scene"),
        (" clear ", "available"),
        ("In quarters", "at_station"),
        ("assigned", "dispatched"),
        ("En route to hospital", "transporting"),
        ("AT HOSPITAL", "at_hospital"),
        ("out-of-service", "out_of_service"),
        ("", None),
    ],
)
def test_plain_words(text: str, status: str | None) -> None:
    assert StatusCodes().status(text) == status


FMS = (
    None, "available", "at_station", "en_route", "on_scene", None, "out_of_service",
    "transporting", "at_hospital", None,
)  # fmt: skip


def test_fms() -> None:
    codes = StatusCodes("fms")
    assert tuple(codes.status(str(digit)) for digit in range(10)) == FMS


@pytest.mark.parametrize("written", ["{}", "{:x}", "{:X}", "0x{:x}", "0X{:04X}"])
def test_tetra_in_decimal_and_hexadecimal(written: str) -> None:
    codes = StatusCodes("tetra")
    assert tuple(codes.status(written.format(32770 + digit)) for digit in range(10)) == FMS


def test_codes_of_the_settings_come_first() -> None:
    codes = StatusCodes("fms", {"3": "dispatched", "12": "en_route", "4": "", "free": "at_station"})
    told = [codes.status(text) for text in ("3", " 12", "4", "free", "Free", "1")]
    assert told == ["dispatched", "en_route", None, "at_station", "available", "available"]


def test_codes_of_the_settings_differ_by_every_letter() -> None:
    codes = StatusCodes(codes={"a-1": "on_scene", "A1": "en_route"})
    assert (codes.status("a-1"), codes.status("A1")) == ("on_scene", "en_route")


@pytest.mark.parametrize(
    ("table", "codes", "text", "words"),
    [
        ("words", {}, "3", r"status '3' is not known; add it to \[units\] codes, or send one of "
         "at_station, in station, .*out_of_service"),
        ("words", {}, "unavailable", "status 'unavailable' is not known"),
        ("fms", {"12": "en_route"}, "10", "send one of 12, 0, 1, 2, .* 9, at_station"),
        ("tetra", {}, "8005x", "send one of 32770, .*, 8002, .* 0x800B, at_station"),
        ("tetra", {}, "5", "status '5' is not known"),
    ],
)  # fmt: skip
def test_an_unknown_code_is_one_line(
    table: Table, codes: dict[str, str], text: str, words: str
) -> None:
    with pytest.raises(InputError, match=words) as caught:
        StatusCodes(table, codes).status(text)
    assert "\n" not in str(caught.value)


def test_a_code_with_an_unknown_meaning() -> None:
    with pytest.raises(InputError, match="codes: '12' is 'driving'; choose one of at_station, "):
        StatusCodes(codes={"12": "driving"})


def test_an_unknown_table() -> None:
    with pytest.raises(InputError, match="'morse' is not known; known: words, fms, tetra"):
        StatusCodes("morse")  # type: ignore[arg-type]
