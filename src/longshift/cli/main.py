"""The command `longshift`: thin verbs over the library.

A verb's module is imported when the verb is used: `longshift --help` imports none of them.
"""

from __future__ import annotations

import importlib
import io
import os
import sys
import traceback
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

import longshift
from longshift.cli.common import tell
from longshift.errors import LongshiftError
from longshift.registry import plugin_files, use_plugin
from longshift.text import printable
from longshift.training import ignore_signals

# Verb -> its line in the list of verbs. The module longshift.cli.VERB has a function VERB, whose docstring is the help
# (and perhaps a class `Command` that changes it), or a Typer `app` with several verbs.
VERBS = {
    "fit": "Train on your own data and estimate the accuracy at a new site.",
    "predict": "Predict classes with calibrated probabilities.",
    "suggest": "Choose the samples of a new site that are worth labeling.",
    "adapt": "Refit a model with labeled samples of a new site.",
    "export": "Write a model as ONNX or torch.export.",
    "demo": "Compare four methods on embedded features of real images and write one page of results.",
    "data": "Count and check the images of a dataset.",
    "embed": "Turn images into vectors with a frozen network.",
    "split": "Make, show and draw imbalanced splits.",
    "methods": "List the methods, or show one with all its hyper-parameters.",
    "train": "Train one method and keep the run in a folder.",
    "evaluate": "Measure a model on labeled data, or a finished run again.",
    "sweep": "Run many trainings: plan, run, stop, resume, pick the best.",
    "report": "Write tables and a page from finished runs.",
    "reproduce": "Make the paper's tables and figures.",
}


class Verbs(TyperGroup):
    """The verbs, each imported when it is used."""

    def load(self, verb: str) -> None:
        """Replace the entry of the list by the verb itself."""
        module = importlib.import_module(f"longshift.cli.{verb}")
        app = typer.Typer(rich_markup_mode="markdown")
        if hasattr(module, "app"):
            app.add_typer(module.app, name=verb)
        else:
            app.command(verb, cls=getattr(module, "Command", None))(getattr(module, verb))
        self.commands[verb] = get_group(app).commands[verb]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Load the verb that is called."""
        if args and args[0] in VERBS:
            self.load(args[0])
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="longshift",
    cls=Verbs,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Train and compare classifiers for an unseen domain, when the training domains differ in appearance "
    "*and* in class frequencies.\n\nWith your own images in folders site/class/: `longshift fit FOLDER`, then "
    "`longshift predict`.\n\nTo try it without data: `longshift demo`.\n\nTo compare methods: `longshift "
    "data inspect digits`, then `longshift split show digits --setting TotalHeavyTail --target ink`, then `longshift "
    "train --help`.",
)

for _verb, _summary in VERBS.items():
    app.command(_verb, help=_summary)(lambda: None)

INTERRUPTED = 130


def _version(value: bool) -> None:
    if value:
        typer.echo(f"longshift {longshift.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    plugin: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE.py", help="Run a file that adds methods, data readers or other plugins; repeatable."
        ),
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    if debug:
        os.environ["LONGSHIFT_DEBUG"] = "1"
    for file in plugin or ():
        use_plugin(file)


def main() -> None:
    """Run the command line: exit code 0 is success, 1 bad data or failed work, 2 bad usage, 130 interrupted."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name in any script must not stop a command
    warnings.formatwarning = lambda message, *_: printable(f"warning: {message}\n")
    try:
        code = app(standalone_mode=False) or 0
        sys.stdout.flush()
    except BrokenPipeError:  # the reader wanted no more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except typer.Abort:
        code = INTERRUPTED
    except Exception as error:
        code = _report(error)
    sys.exit(code)


def _report(error: Exception) -> int:
    """Print an error in one line, or with its traceback where it was asked for; return the exit code."""
    code = getattr(error, "exit_code", 1)
    if os.environ.get("LONGSHIFT_DEBUG") == "1":
        tell(traceback.format_exc())
    elif code == INTERRUPTED:  # as requested, not an error
        tell(str(error), style="yellow")
        ignore_signals()
    elif message := _message(error):
        tell(f"error: {message}", style="red")
    return code


def _message(error: Exception) -> str:
    """What happened and what to do about it."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, LongshiftError):
        return str(error)
    if hasattr(error, "format_message"):  # of click, which Typer has under a name of its own; "" after a help text
        context, said = getattr(error, "ctx", None), str(error.format_message())
        return f"{said} See `{context.command_path} --help`." if context and said else said
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError) or "out of memory" in text or "allocate memory" in text:
        return f"too little memory ({text}). Use fewer --workers, a smaller --image-size or --set batch_size=..."
    files = plugin_files()
    lines = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) in files]
    if lines:
        return f"{lines[-1].filename}, line {lines[-1].lineno}: {text}. `longshift --debug ...` shows the traceback."
    return f"{text}. This is a bug in longshift: please report it with the traceback of `longshift --debug ...`."
