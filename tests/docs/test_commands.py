"""Every `longshift` command on the pages names a verb and options that exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from longshift.cli.main import VERBS, app

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for where in ("*.md", "docs/**/*.md", "results/**/*.md") for path in ROOT.glob(where))
PROGRAM: Any = typer.main.get_command(app)
for verb_name in VERBS:
    PROGRAM.load(verb_name)


def commands(text: str) -> list[str]:
    """The commands in blocks of code (fenced or indented), then those inside sentences."""
    text = text.replace("\\\n", " ")
    fenced = re.findall(r"^```(?:bash|sh|console)?\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    indented = re.findall(r"^ {4,}.*$", text, re.MULTILINE)
    lines = [re.sub(r"(^|\s)#.*", "", line) for block in [*fenced, *indented] for line in block.splitlines()]
    parts = [part.strip(" $") for line in lines for part in re.split(r"&&|[|;]", line)]
    return [part for part in parts if part.startswith("longshift ")] + re.findall(r"`(longshift [^`]*)`", text)


def mistakes(command: str) -> list[str]:
    """Words of a command that the program does not know."""
    try:
        words = shlex.split(command)[1:]
    except ValueError:
        words = command.split()[1:]
    verb = PROGRAM
    while words[:1] == ["--plugin"]:
        words = words[2:]
    while words and not words[0].startswith("-") and hasattr(verb, "commands"):
        name = words.pop(0)
        if name not in verb.commands:
            return [] if re.fullmatch(r"[A-Z_.…]+", name) else [name]  # `longshift COMMAND` stands for any
        verb = verb.commands[name]
    known = {option for parameter in verb.params for option in [*parameter.opts, *parameter.secondary_opts]}
    used = {word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    return sorted(used - known - {"--help"})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_on_a_page_exist(page: Path) -> None:
    found = {command: wrong for command in commands(page.read_text(encoding="utf-8")) if (wrong := mistakes(command))}
    assert not found
