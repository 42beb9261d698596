"""The help names arguments in one way and shows flags, values and plain words instead of Python types."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from longshift.cli.main import VERBS, app

PROGRAM: Any = typer.main.get_command(app)
for verb_name in VERBS:
    PROGRAM.load(verb_name)


def commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield words, command
    for name, part in getattr(command, "commands", {}).items():
        yield from commands(part, (*words, name))


COMMANDS = dict(commands(PROGRAM))
typer_shows_types = pytest.mark.skipif(
    not hasattr(PROGRAM.params[0], "display_type"), reason="Typer before 0.29 shows no Python types"
)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_help_shows_a_python_type(words: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "200", "TERM": "dumb", "NO_COLOR": "1"})
    assert shown.exit_code == 0
    assert "--help" in shown.output
    assert not re.findall(r"<[a-z]\S*?>|BOOLEAN|list\[|int range|float range", shown.output)


@typer_shows_types
@pytest.mark.parametrize(("verb", "option", "word"), [
    ("fit", "compare", ""),
    ("fit", "pretrained", ""),
    ("fit", "trainable", "all|head"),
    ("fit", "steps", "N"),
    ("fit", "minutes", "NUMBER"),
    ("predict", "top_k", "N"),
    ("predict", "page", "PATH"),
    ("report", "format_", "terminal|markdown|latex|csv"),
    ("report", "setting", "TEXT"),
    ("evaluate", "sets", "validation|test|target"),
])  # fmt: skip
def test_values_of_options(verb: str, option: str, word: str) -> None:
    (found,) = [parameter for parameter in COMMANDS[(verb,)].params if parameter.name == option]
    assert found.metavar == word


@typer_shows_types
def test_one_name_for_one_argument() -> None:
    names = {
        words: [p.metavar for p in command.params if p.param_type_name == "argument"]
        for words, command in COMMANDS.items()
    }
    for verb in ("predict", "suggest", "adapt", "export", "evaluate"):
        assert names[(verb,)][0] == "MODEL"
    for words in (("fit",), ("embed",), ("data", "inspect"), ("data", "verify"), ("split", "make"), ("split", "show")):
        assert names[words] == ["DATA"]
    assert {tuple(found) for words, found in names.items() if words[:1] == ("sweep",) and len(words) > 1} == {("DIR",)}
    texts = {p.help for command in COMMANDS.values() for p in command.params if p.metavar == "MODEL"}
    assert texts == {"Folder of a fit, of an adapted model or of a run."}
