"""The help of every command, and the commands that its docstrings make."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from ideal_dispatch.cli import app as main_module
from ideal_dispatch.cli.help import CommandLine
from ideal_dispatch.errors import InputError
from ideal_dispatch.ranges import Count, Share

SNAPSHOT = Path(__file__).with_name("help.md")


@pytest.fixture(scope="module")
def commands() -> dict[str, Any]:
    """Every command and group of commands, by its words."""
    return _every()


def _every() -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "argv", ["ideal", "bench", "--list"])
        patched.setattr("ideal_dispatch.cli.bench.benchmark_table", _stop)
        with pytest.raises(SystemExit):
            main_module.main()  # which adds the commands
    return dict(_commands("ideal", typer.main.get_command(main_module.app)))


def _stop() -> None:
    raise InputError("far enough")


def _commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield name, command
    for word in getattr(command, "commands", ()) and command.list_commands(None):
        yield from _commands(f"{name} {word}", command.commands[word])


def _described(commands: dict[str, Any]) -> str:
    """What every command says of itself and of its parameters."""
    lines = []
    for name, command in commands.items():
        lines += [f"## {name}", command.help]
        for one in command.params:
            default = "" if one.default is None else f" [{one.default}]"
            given = " (required)" if one.required else ""
            names = ", ".join((*one.opts, *one.secondary_opts))
            lines.append(f"{names} {one.metavar or ''}{default}{given}: {one.help}")
        lines += [command.epilog or "", ""]
    return "\n".join(lines)


def test_the_help_of_every_command(commands: dict[str, Any]) -> None:
    """After a change that is meant, run this file as a module: it writes the snapshot."""
    assert _described(commands) == SNAPSHOT.read_text(encoding="utf-8")


def test_every_help_is_printed_in_eighty_columns(commands: dict[str, Any]) -> None:
    runner = CliRunner(env={"COLUMNS": "80"})
    for name, command in commands.items():
        asked = runner.invoke(main_module.app, [*name.split()[1:], "--help"], prog_name="ideal")
        assert asked.exit_code == 0, (name, asked.output)
        assert max(map(len, asked.output.splitlines())) <= 80
        for one in command.params:
            shown = one.metavar if one.param_type_name == "argument" else max(one.opts, key=len)
            assert shown in asked.output, (name, shown)


@pytest.mark.parametrize("words", [(), ("records",)])
def test_without_a_command_the_help_is_shown(words: tuple[str, ...]) -> None:
    ideal = Path(sys.executable).with_name("ideal")
    done = subprocess.run([ideal, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"Usage: {' '.join(('ideal', *words))} " in done.stdout + done.stderr


def test_commands_that_write_take_force(commands: dict[str, Any]) -> None:
    goes_on = {"ideal demo", "ideal replay", "ideal fleet simulate"}  # with their own work
    options = {name: {opt for one in command.params for opt in one.opts}
               for name, command in commands.items()}  # fmt: skip
    writing = {name for name, known in options.items() if "-o" in known}
    assert {name for name in writing if "--force" not in options[name]} == goes_on


def test_examples_name_commands_and_options_that_exist(commands: dict[str, Any]) -> None:
    for name, command in commands.items():
        if hasattr(command, "commands") and name != "ideal":
            continue
        text = re.sub(r" \\\n +", " ", command.epilog).splitlines()
        examples = text[text.index("```text") + 1 : -1]
        assert examples, name
        for line in examples:
            words = shlex.split(line, comments=True)
            words = words[words.index("ideal") :]
            asked = next(c for c in (" ".join(words[:n]) for n in (3, 2)) if c in commands)
            known = {"--help", *(opt for one in commands[asked].params for opt in one.opts)}
            assert {word for word in words if re.match(r"--?[a-z]", word)} <= known, (name, line)


def test_a_missing_argument_is_named_as_in_the_help(commands: dict[str, Any]) -> None:
    asked = CliRunner().invoke(main_module.app, ["replay"], prog_name="ideal")
    assert (asked.exit_code, "EXPERIMENT" in asked.output) == (2, True)


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        ("--days NUMBER  How many.\n  --hours NUMBER  How many.", "has no parameter for .*hours"),
        ("--hours NUMBER  How many.", ": its docstring does not describe days"),
    ],
)
def test_a_docstring_and_its_parameters_agree(entry: str, complaint: str) -> None:
    def command(days: Count | None = None) -> None: ...

    command.__doc__ = f"Do it.\n\nOptions:\n  {entry}\n\nExample:\n  ideal command"
    with pytest.raises(TypeError, match=f"^command ?{complaint}"):
        CommandLine("Commands.").command()(command)


def test_without_docstrings_one_line_says_so() -> None:
    program = "from ideal_dispatch.cli.app import main; main()"
    done = subprocess.run(
        [sys.executable, "-OO", "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch("ideal: .*run Python without it\n", done.stderr)


def test_numbers_have_the_limits_of_their_type() -> None:
    app, asked = CommandLine("Commands."), []

    @app.command()
    def command(place: str, day_file: Path, days: Count | None = None, share: Share = 0.5) -> None:
        """Do it.

        Options:
          PLACE  Where.
          --day FILE  Which day.
          --days NUMBER  How many.
          --share SHARE  How much
              of it.

        Example:
          ideal command
        """
        asked.append((place, day_file, days, share))

    run = CliRunner().invoke
    assert run(app, ["here", "--day", "x", "--days", "2"]).exit_code == 0
    assert asked == [("here", Path("x"), 2, 0.5)]
    for wrong in (["--days", "0"], ["--share", "1.5"], ["--share", "-1"]):
        found = run(app, ["here", "--day", "x", *wrong])
        assert (found.exit_code, wrong[0] in found.output) == (2, True)


if __name__ == "__main__":
    SNAPSHOT.write_text(_described(_every()), encoding="utf-8")
