"""The command `longshift`: thin verbs over the library.

A verb's module is imported when the verb is used: `longshift --help` imports none of them.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

import longshift
from longshift.cli.common import tell
from longshift.cli.help_values import describe, plain_values
from longshift.cli.output_streams import lost_result, use_forgiving_streams
from longshift.cli.safe_messages import escape_usage_errors, escape_warnings_and_logs, print_traceback
from longshift.cli.unexpected_errors import in_words
from longshift.errors import LongshiftError
from longshift.plugins import use_plugin
from longshift.training import ignore_signals, outlive_repeated_signals

# Verb -> its line in the list of verbs. The module longshift.cli.VERB has a function VERB, whose docstring is the help
# (and perhaps a class `Command` that changes it), or a Typer `app` with several verbs.
VERBS = {
    "fit": "Train on your own data and estimate the accuracy at a new site.",
    "predict": "Predict classes with calibrated probabilities.",
    "suggest": "Choose the samples of a new site that are worth labeling.",
    "adapt": "Refit a model with labeled samples of a new site.",
    "export": "Write a model as ONNX or torch.export.",
    "demo": "Compare four methods on embedded features of real images and write one page of results.",
    "data": "Count, check and prepare the images of a dataset.",
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
        plain_values(self.commands[verb])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Load the verb that is called."""
        if args and args[0] in VERBS:
            self.load(args[0])
        return super().resolve_command(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options, described in plain words."""
        found = super().get_params(ctx)
        describe(found, ctx)
        return found

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Parse the options; names in error messages cannot control the terminal."""
        with escape_usage_errors():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run the verb; names in error messages cannot control the terminal."""
        with escape_usage_errors():
            return super().invoke(ctx)


def american(token: str) -> str:
    """Options have American names; British spellings of them work too."""
    return token.replace("labelled", "labeled")


app = typer.Typer(
    name="longshift",
    cls=Verbs,
    no_args_is_help=True,
    add_completion=True,
    context_settings={"token_normalize_func": american},
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Train and compare classifiers for an unseen domain, when the training domains differ in look "
    "*and* in class frequencies.\n\nWith your own images in folders site/class/: `longshift fit FOLDER`, then "
    "`longshift predict`.\n\nTo try it without data: `longshift demo`.\n\nTo compare methods: `longshift "
    "data inspect digits`, then `longshift split show digits --setting TotalHeavyTail --target ink`, then `longshift "
    "train --help`.",
)

for _verb, _summary in VERBS.items():
    app.command(_verb, help=_summary)(lambda: None)

INTERRUPTED = 130
LEAST_MEMORY = 160 << 20  # bytes; with less, NumPy crashes while it is imported, at some limits without an error


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


def _require_current_folder() -> None:
    """Raise if the current folder was removed: paths mean nothing there, and numeric libraries abort the process."""
    try:
        os.getcwd()
    except FileNotFoundError:
        raise LongshiftError(
            "the current folder does not exist any more. Change to another one, then run again"
        ) from None


def _require_memory() -> None:
    """Raise if the limit on memory is so low that no command can work."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if 0 <= limit < LEAST_MEMORY:  # no limit is -1
        raise LongshiftError(
            f"the limit on memory (`ulimit -v`) is {limit >> 20} MiB: too little memory for any command. Raise it"
        )


def main() -> None:
    """Run the command line: exit code 0 is success, 1 bad data or failed work, 2 bad usage, 130 interrupted."""
    output = use_forgiving_streams()
    outlive_repeated_signals()
    escape_warnings_and_logs()
    try:
        _require_current_folder()
        _require_memory()
        app()
    except SystemExit as end:
        if not end.code and (why := lost_result(output)):
            tell(f"error: {why}", style="red")
            sys.exit(1)
        raise
    except LongshiftError as error:
        if os.environ.get("LONGSHIFT_DEBUG") == "1":
            print_traceback()
            sys.exit(error.exit_code)
        stopped = error.exit_code == INTERRUPTED  # as requested, not an error
        text, style = (str(error), "yellow") if stopped else (f"error: {error}", "red")
        tell(text, style=style)
        if stopped:
            ignore_signals()
        sys.exit(error.exit_code)
    except Exception as error:
        if os.environ.get("LONGSHIFT_DEBUG") == "1":
            print_traceback()
        else:
            tell(f"error: {in_words(error)}", style="red")
        sys.exit(1)
