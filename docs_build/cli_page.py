"""The page reference/cli.md: every verb of the command line with its arguments and options, read from Typer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer

from longshift.cli.main import VERBS, app

HEADER = """# Command line

This page is generated from the program: it shows what `longshift VERB --help` prints.

- Options of `longshift` itself come before the verb: `longshift --plugin my_method.py train ...`.
- Verbs that print a table also print JSON with `--json`.
- Exit codes: 0 success, 1 bad data or a failed job, 2 wrong usage, 130 interrupted.
- Ctrl-C saves what was done. Run the same command again to resume (for `train`, add `--resume FOLDER`).
"""


def cli_page() -> str:
    """Return the Markdown of the page."""
    program: Any = typer.main.get_command(app)
    for verb in VERBS:
        program.load(verb)
    summary = ["| verb | purpose |", "|---|---|"]
    summary += [f"| [`{verb}`](#longshift-{verb}) | {text} |" for verb, text in VERBS.items()]
    parts = [HEADER, "\n".join(summary), *_sections(program, ["longshift"])]
    return "\n\n".join(parts) + "\n"


def _sections(command: Any, words: list[str]) -> Iterator[str]:
    """The section of a command, then those of the commands in it."""
    context = command.context_class(command, info_name=" ".join(words))
    if len(words) > 1:
        yield f"{'#' * len(words)} {' '.join(words)}"
        yield _description(command.help or "")
    else:
        yield "## Options of every verb"
    yield f"```text\n{command.get_usage(context).removeprefix('Usage: ')}\n```"
    yield from _tables(command, context)
    for name, part in getattr(command, "commands", {}).items():
        yield from _sections(part, [*words, name])


def _description(text: str) -> str:
    """The docstring of a verb, with its examples as one block."""
    before, mark, examples = text.partition("Examples:")
    if not mark:
        before, mark, examples = text.partition("Example:")
    lines = [line for line in examples.splitlines() if line.strip()]
    commands = [line.strip() for line in lines if line.startswith(" ")]
    after = [line.strip() for line in lines if not line.startswith(" ")]
    block = "```sh\n" + "\n".join(commands) + "\n```" if commands else ""
    return "\n\n".join(filter(None, (before.strip(), block, " ".join(after))))


def _tables(command: Any, context: Any) -> Iterator[str]:
    """One table of arguments, and one of options per heading of the help text."""
    panels: dict[str, list[tuple[str, str]]] = {}
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is None or "--help" in record[0] or "completion" in record[0]:
            continue
        heading = "Arguments" if parameter.param_type_name == "argument" else parameter.rich_help_panel or "Options"
        panels.setdefault(heading, []).append((_name(record[0]), _cell(record[1])))
    for heading, rows in panels.items():
        lines = [f"| {heading.lower()} | meaning |", "|---|---|", *(f"| `{name}` | {text} |" for name, text in rows)]
        yield "\n".join(lines)


def _name(text: str) -> str:
    return text.strip().replace("|", "\\|")


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|").replace("<", "&lt;")
