"""The command `longshift`: thin verbs over the library."""

from __future__ import annotations

import importlib
import importlib.util
import io
import os
import sys
from typing import Annotated

import typer

import longshift
from longshift.cli.common import debugging, errors
from longshift.errors import LongshiftError

app = typer.Typer(
    name="longshift",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Train and compare classifiers for a domain nobody has seen, when the training domains differ in look "
    "*and* in class frequencies.\n\nWith images of your own in folders site/class/: `longshift fit FOLDER`, then "
    "`longshift predict`.\n\nTo see what it does, without data: `longshift demo`.\n\nTo compare methods: `longshift "
    "data inspect digits`, then `longshift split show digits --setting TotalHeavyTail --target ink`, then `longshift "
    "train --help`.",
)

# verb -> module under longshift.cli; each has `register(app)`, which adds its commands. The help keeps the order.
VERBS = (
    "fit", "predict", "export", "demo", "data", "embed", "split", "methods", "train", "evaluate", "sweep", "report",
    "reproduce",
)  # fmt: skip


INTERRUPTED = 130


def _version(value: bool) -> None:
    if value:
        typer.echo(f"longshift {longshift.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it.")] = False,
) -> None:
    if debug:
        os.environ["LONGSHIFT_DEBUG"] = "1"


for _verb in VERBS:
    if importlib.util.find_spec(f"longshift.cli.{_verb}") is not None:
        importlib.import_module(f"longshift.cli.{_verb}").register(app)


def main() -> None:
    """Run the command line: exit code 0 good, 1 bad data or failed work, 2 bad usage, 130 interrupted."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names in any script must not end a command on an old terminal
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except LongshiftError as error:
        if debugging():
            raise
        stopped = error.exit_code == INTERRUPTED  # as asked for: no error
        text, style = (str(error), "yellow") if stopped else (f"error: {error}", "red")
        errors.print(text, style=style, markup=False, highlight=False, soft_wrap=True)
        sys.exit(error.exit_code)
