"""What every verb shares: output as tables or JSON, progress, errors without tracebacks."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from longshift.cli.lines import Lines
from longshift.progress import Stage, Tick, silent

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of tables.")]
QuietFlag = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, only the result.")]

console = Console()
errors = Console(stderr=True)


def caution(line: str) -> None:
    """A line on standard error that nobody should miss, as it is: brackets in names are no markup."""
    errors.print(line, style="yellow", markup=False, highlight=False, soft_wrap=True)


def say_notes(quiet: bool) -> Callable[[str], None]:
    """A function that prints notes and warnings on standard error; if quiet, only that a run is stopping."""

    def say(text: str) -> None:
        if text.startswith("warning: ") and not quiet:
            caution(text)
        elif text.startswith("stopping") or not quiet:
            errors.print(text, highlight=False, markup=False, soft_wrap=True)

    return say


def print_json(value: Any) -> None:
    """JSON on standard output, without colours, so that it can be piped."""
    escaped = not (sys.stdout.encoding or "").lower().startswith("utf")
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=escaped) + "\n")


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], caption: str = "") -> None:
    """A table on the terminal; numbers are right-aligned."""
    if title:  # not the table's own title, which would be folded to the width of a narrow table
        console.print(title, style="italic", markup=False, highlight=False, soft_wrap=True)
    table = Table(caption=caption or None, caption_justify="left")
    for index, column in enumerate(columns):
        numeric = bool(rows) and all(isinstance(row[index], (int, float)) for row in rows)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*[_cell(value) for value in row])
    console.print(table)


def _cell(value: object) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text.replace("[", "\\[")


@contextmanager
def progress(label: str, total: int, quiet: bool = False) -> Iterator[Tick]:
    """A progress bar with what is left; plain lines where there is no terminal; nothing if quiet."""
    if quiet:
        yield silent
    elif errors.is_terminal:
        columns = (
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            TextColumn("gone,"), TimeRemainingColumn(), TextColumn("left  {task.fields[note]}"),
        )  # fmt: skip
        with Progress(*columns, console=errors) as bar:
            task = bar.add_task(label, total=total, note="")

            def show(done: int = 1, note: str = "") -> None:
                if isinstance(note, Stage):  # above the bar: beside it, a sentence would push the numbers out
                    errors.print(f"{label}: {note}", highlight=False, markup=False, soft_wrap=True)
                    note = ""
                bar.update(task, advance=done, note=note)

            yield show
    else:
        lines = Lines(label, total, time.monotonic())

        def tick(done: int = 1, note: str = "") -> None:
            if text := lines.after(done, time.monotonic(), note):
                errors.print(text, highlight=False, markup=False, soft_wrap=True)

        yield tick


def debugging() -> bool:
    """Whether the user asked for tracebacks."""
    return os.environ.get("LONGSHIFT_DEBUG") == "1"
