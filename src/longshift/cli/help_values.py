"""What the help shows after an option: nothing for a flag, otherwise its values or a plain word, not a Python type."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

# Typer's description of a type -> the word in the help.
WORDS = {"int": "N", "float": "NUMBER", "str": "TEXT", "path": "PATH", "file": "FILE", "directory": "FOLDER"}


def plain_values(command: Any) -> None:
    """Give all arguments and options of a command, and of the commands in it, the words of the help."""
    context = command.context_class(command)
    describe(command.get_params(context), context)  # with --help
    for part in getattr(command, "commands", {}).values():
        plain_values(part)


def describe(parameters: Iterable[Any], context: Any) -> None:
    """Give arguments and options the words of the help."""
    for parameter in parameters:
        if not hasattr(parameter, "display_type"):  # versions of Typer that show no Python types
            continue
        if parameter.param_type_name == "argument":
            parameter.metavar = parameter.metavar or parameter.name.upper()
            vars(parameter)["display_type_rich"] = lambda ctx: None  # the text says what can be given
        elif parameter.is_flag:
            parameter.metavar = ""
        elif parameter.metavar is None:
            parameter.metavar = value_word(parameter.display_type(context))


def value_word(shown: str) -> str:
    """The word for a type as Typer shows it; what is not known stays.

    >>> value_word("<int range>"), value_word("<list[str]>"), value_word("<a|b>")
    ('N', 'TEXT', 'a|b')
    """
    kind = re.sub(r"^<(?:list\[)?(.*?)(?: range)?\]?>$", r"\1", shown)
    return WORDS.get(kind.lower(), kind)
