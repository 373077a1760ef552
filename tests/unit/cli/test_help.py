"""Help that an analyst can read: every option has a sentence, nothing is swallowed."""

import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from ideal_dispatch.cli import app as main_module
from ideal_dispatch.errors import InputError


@pytest.fixture(scope="module")
def commands() -> dict[str, Any]:
    """Every command that can be run, by its words."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "argv", ["ideal", "bench", "--list"])
        patched.setattr("ideal_dispatch.cli.bench.checkout", _stop)
        with pytest.raises(SystemExit):
            main_module.main()  # which adds the commands
    return dict(_leaves("ideal", typer.main.get_command(main_module.app)))


def _stop() -> None:
    raise InputError("far enough")


def _leaves(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield name, command
        return
    for word in command.list_commands(None):
        yield from _leaves(f"{name} {word}", inner[word])


def test_commands_come_in_the_order_of_their_use(commands: dict[str, Any]) -> None:
    first = list(dict.fromkeys(name.split()[1] for name in commands))
    assert first[:4] == ["demo", "network", "records", "train"]
    assert first[-1] == "bench"


def test_every_option_has_a_sentence(commands: dict[str, Any]) -> None:
    silent = [
        (name, one.name) for name, command in commands.items() for one in command.params
        if one.name != "help" and not re.fullmatch(r"[A-Za-z.].+[.?…]", one.help or "")
    ]  # fmt: skip
    assert silent == []


def test_every_command_has_an_example(commands: dict[str, Any]) -> None:
    without = [
        name for name, one in commands.items()
        if "Example" not in f"{one.epilog or ''}{one.help or ''}"
    ]  # fmt: skip
    assert without == []


def test_nothing_is_taken_for_markup(commands: dict[str, Any]) -> None:
    """Words in square brackets vanish from the help."""
    for name, one in commands.items():
        texts = [
            one.help,
            one.epilog,
            *(param.help for param in one.params if param.name != "help"),
        ]
        assert not re.search(r"\[[a-z]+\]", " ".join(filter(None, texts))), name
