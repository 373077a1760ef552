"""Help that an analyst can read: words for values, a sentence each, examples, 80 columns."""

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

_WORD = r"[A-Z]+([-=:,][A-Z]+)*(,?\.\.\.)?"
_CHOICES = r"\w+(\|\w+)+"


@pytest.fixture(scope="module")
def commands() -> dict[str, Any]:
    """Every command and group of commands, by its words."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "argv", ["ideal", "bench", "--list"])
        patched.setattr("ideal_dispatch.cli.bench.benchmark_table", _stop)
        with pytest.raises(SystemExit):
            main_module.main()  # which adds the commands
    return dict(_commands("ideal", typer.main.get_command(main_module.app)))


@pytest.fixture(scope="module")
def texts(commands: dict[str, Any]) -> dict[str, str]:
    """What `--help` prints in a terminal of 80 columns, by command."""
    runner = CliRunner(env={"COLUMNS": "80"})
    texts = {}
    for name in commands:
        asked = runner.invoke(main_module.app, [*name.split()[1:], "--help"], prog_name="ideal")
        assert asked.exit_code == 0, (name, asked.output)
        texts[name] = asked.output
    return texts


def _stop() -> None:
    raise InputError("far enough")


def _commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield name, command
    for word in getattr(command, "commands", ()) and command.list_commands(None):
        yield from _commands(f"{name} {word}", command.commands[word])


def _params(commands: dict[str, Any]) -> list[tuple[str, Any]]:
    return [
        (name, one) for name, command in commands.items() for one in command.params
        if one.name != "help"
    ]  # fmt: skip


@pytest.mark.parametrize("words", [(), ("records",)])
def test_without_a_command_the_help_is_shown(words: tuple[str, ...]) -> None:
    ideal = Path(sys.executable).with_name("ideal")
    done = subprocess.run([ideal, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout.startswith(f"Usage: {' '.join(('ideal', *words))} COMMAND")
    assert "Examples:" in done.stdout
    assert done.stderr == ""


def test_commands_come_in_the_order_of_their_use(commands: dict[str, Any]) -> None:
    first = list(dict.fromkeys(name.split()[1] for name in commands if " " in name))
    assert first[:4] == ["demo", "network", "records", "train"]
    assert first[-1] == "bench"


def test_what_is_there_is_overwritten_with_force_alone(commands: dict[str, Any]) -> None:
    goes_on = {"ideal demo", "ideal replay", "ideal fleet simulate"}  # with their own work
    writing = {name for name, one in _params(commands) if "-o" in one.opts}
    assert {"ideal network build", "ideal report", "ideal audit export"} <= writing
    forced = {name for name, one in _params(commands) if "--force" in one.opts}
    assert writing - forced == goes_on


def test_every_option_has_a_sentence(commands: dict[str, Any]) -> None:
    silent = [
        (name, one.name) for name, one in _params(commands)
        if not re.fullmatch(r"[A-Za-z.].+[.?…]", one.help or "")
    ]  # fmt: skip
    assert silent == []


def test_every_value_has_a_word_rather_than_a_type(commands: dict[str, Any]) -> None:
    raw = [
        (name, one.name, one.metavar) for name, one in _params(commands)
        if not (one.param_type_name == "option" and one.is_flag)
        and not re.fullmatch(f"{_WORD}|{_CHOICES}", one.metavar or "")
    ]  # fmt: skip
    assert raw == []


def test_no_type_of_the_language_is_printed(texts: dict[str, str]) -> None:
    for name, text in texts.items():
        found = re.search(r"<\w.*?>|\b(bool|int|float|str|list\[|Path)\b|[{}]|x>=", text)
        assert found is None, (name, found)


def test_all_options_of_a_command_are_printed(
    commands: dict[str, Any], texts: dict[str, str]
) -> None:
    for name, one in _params(commands):
        shown = one.metavar if one.param_type_name == "argument" else max(one.opts, key=len)
        assert shown in texts[name], (name, shown)
        assert " ".join(one.help.split()) in " ".join(texts[name].split())


def test_what_must_be_given_stands_in_the_usage_and_first(texts: dict[str, str]) -> None:
    text = texts["ideal records prepare"]
    usage, _, _ = text.partition("\n\n")
    assert usage.split()[3:] == [
        "prepare", "RECORDS", "--network", "FILE", "--depots", "FILE", "--config", "FILE",
        "-o", "FOLDER", "[options]",
    ]  # fmt: skip
    given, may = text.index("You give:"), text.index("You may give:")
    assert given < text.index("  -o, --output FOLDER") < may < text.index("  --force")


def test_defaults_are_told(texts: dict[str, str]) -> None:
    assert "[default: 8000]" in texts["ideal serve"]
    assert "[default: out/demo]" in texts["ideal demo"]
    assert "None" not in "".join(texts.values())


def test_every_command_has_a_text_and_an_example_that_exists(
    commands: dict[str, Any], texts: dict[str, str]
) -> None:
    """Examples of a command name one that exists and options that it has."""
    for name, command in commands.items():
        assert command.help, name
        _, _, examples = texts[name].partition("\nExample")
        lines = re.sub(r" \\\n +", " ", examples).splitlines()[1:]
        assert lines, f"{name} has no example"
        for line in lines:
            assert line.startswith("  "), (name, line)
            words = shlex.split(line, comments=True)
            words = words[words.index("ideal") :]
            asked = next(c for c in (" ".join(words[:n]) for n in (3, 2)) if c in commands)
            known = {"--help", *(opt for one in commands[asked].params for opt in one.opts)}
            told = {word for word in words if re.match(r"--?[a-z]", word)}
            assert told <= known, (name, told - known)


def test_help_fits_in_eighty_columns(texts: dict[str, str]) -> None:
    wide = [line for text in texts.values() for line in text.splitlines() if len(line) > 80]
    assert wide == []


def test_a_forgotten_file_is_named_as_in_the_help(commands: dict[str, Any]) -> None:
    asked = CliRunner().invoke(main_module.app, ["replay"], prog_name="ideal")
    assert asked.exit_code == 2
    assert "Usage: ideal replay EXPERIMENT -o FOLDER [options]" in asked.output
    assert "Missing argument 'EXPERIMENT'" in asked.output


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
    assert "How much of it. [default: 0.5]" in run(app, ["--help"]).output
