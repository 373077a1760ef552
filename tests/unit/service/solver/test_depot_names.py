"""Depots by what callers call them."""

import pytest

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.solver.depot_names import DepotNames

NAMES = DepotNames(["Kelp Point", "North", "NORTH"], {"A11": "Kelp Point", "N": "NORTH"})


@pytest.mark.parametrize(
    ("word", "name"),
    [("Kelp Point", "Kelp Point"), ("KELP POINT", "Kelp Point"), ("a11", "Kelp Point"),
     ("North", "North"), ("NORTH", "NORTH"), ("n", "NORTH")],
)  # fmt: skip
def test_a_depot_is_found_by_any_case_of_its_name_and_aliases(word: str, name: str) -> None:
    assert NAMES.knows(word)
    assert NAMES.find(word) == name


@pytest.mark.parametrize(
    ("word", "message"),
    [("north", "depot 'north' may be NORTH or North; mind the capitals"),
     ("Kelp Pint", "no depot is called 'Kelp Pint'; did you mean Kelp Point?"),
     ("", "no depot is called ''; there are Kelp Point, North, NORTH")],
)  # fmt: skip
def test_who_is_meant_is_not_guessed(word: str, message: str) -> None:
    assert not NAMES.knows(word)
    with pytest.raises(InputError) as error:
        NAMES.find(word)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("aliases", "message"),
    [({"X": "Kelp"}, r"\[city.aliases\] X: no depot is called 'Kelp'; there are Kelp Point, North"),
     ({"North": "Kelp Point"}, r"\[city.aliases\] North: another depot has this name; choose")],
)  # fmt: skip
def test_aliases_that_mislead_are_refused(aliases: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        DepotNames(["Kelp Point", "North"], aliases)
