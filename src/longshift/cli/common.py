"""Options and output that the verbs share: lines, tables, JSON, progress."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from longshift.errors import UsageError
from longshift.progress import Stage, Tick, silent
from longshift.text import about, counted, duration, printable

DataArgument = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="Folder domain/class/image, .zip, .csv, .parquet, .npz, hf://owner/name, `digits` or `pacs-features`.",
    ),
]
ModelArgument = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Folder of a fit, of an adapted model or of a run.")
]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
QuietFlag = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the result, without a progress bar.")]
DeviceOption = Annotated[str, typer.Option("--device", help="auto, cpu, cuda, cuda:1 ...")]
CacheOption = Annotated[
    Path | None, typer.Option("--cache", help="Folder of decoded images and features; default $LONGSHIFT_CACHE.")
]
CpuThreadsOption = Annotated[
    int, typer.Option("--threads", min=0, help="Threads on the CPU; 0: one per processor, one for vectors.")
]
AdaptOption = Annotated[
    Literal["auto", "on", "off"],
    typer.Option("--adapt", help="Adapt to the site without labels; auto: if that helped at held-out sites."),
]
ReferenceOption = Annotated[
    list[Path] | None, typer.Option("--reference", help="Other images of the same site to adapt with; repeatable.")
]
ClassMixOption = Annotated[
    list[str] | None,
    typer.Option("--class-mix", metavar="CLASS=SHARE", help="Known share of a class at the site; repeatable."),
]
AveragedFlag = Annotated[bool, typer.Option("--averaged", help="Use the averaged weights (see train --average).")]
WorkersOption = Annotated[
    int | None,
    typer.Option("--workers", min=1, help="Number of runs at a time; default: as many as the machine supports."),
]
ThreadsOption = Annotated[int, typer.Option("--threads", min=1, help="Threads per run on the CPU.")]
JobsPerGpuOption = Annotated[int, typer.Option("--jobs-per-gpu", min=1, help="Runs that share a GPU.")]

console = Console()
errors = Console(stderr=True)


def say(text: str, style: str = "") -> None:
    """Print a line of the result on standard output; brackets in names are not markup."""
    console.print(Text(printable(text), style), soft_wrap=True)


def say_lines(text: str) -> None:
    """Print the lines of a text on standard output, warnings in color."""
    for line in text.splitlines():
        say(line, "yellow" if line.startswith("warning: ") else "")


def tell(text: str, style: str = "") -> None:
    """Print a line about the work on standard error."""
    errors.print(Text(printable(text), style), soft_wrap=True)


def caution(line: str) -> None:
    """Print a warning on standard error, in color."""
    tell(line, "yellow")


def say_notes(quiet: bool) -> Callable[[str], None]:
    """A function that prints notes and warnings on standard error; if quiet, only that a run is stopping."""

    def show(text: str) -> None:
        if text.startswith("stopping") or not quiet:
            tell(text, "yellow" if text.startswith("warning: ") else "")

    return show


def announce_stop() -> None:
    """Answer the first Ctrl-C of a command with several runs."""
    tell("stopping: each run saves its state after its current step; press Ctrl-C again to stop at once")


def percent(value: float | None) -> str:
    """A share in percent, "-" where there is none."""
    return "-" if value is None else f"{100 * value:.1f}"


def print_json(value: Any) -> None:
    """Print JSON on standard output, without colors, so that it can be piped; in ASCII, which no terminal obeys."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], caption: str = "") -> None:
    """Print a table without lines; numbers are right-aligned."""
    if title:  # not the table's own title, which rich folds to the width of a narrow table
        say(title, "italic")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for index, column in enumerate(columns):
        numeric = bool(rows) and all(
            re.fullmatch(r"-|-?\d+(\.\d+)?(e[+-]\d+)?", _cell(row[index]).plain) for row in rows
        )
        table.add_column(Text(printable(column)), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*[_cell(value) for value in row])
    console.print(table)
    if caption:
        say(caption, "dim")


def _cell(value: object) -> Text:
    """Text that is shown as it is: "[red]" and ":x:" in names mean nothing."""
    return Text(printable(f"{value:.4g}" if isinstance(value, float) else str(value)))


class LogLines:
    """Progress without a terminal: a line per tenth of the work, but none within a second and one after a minute."""

    def __init__(self, label: str, total: int, begun: float) -> None:
        self.label, self.total, self.begun = label, total, begun
        self.done, self.tenth, self.printed = 0, 0, begun
        self.first, self.first_at = 0, begun

    def after(self, pieces: int, now: float, note: str = "") -> str:
        """The line to print at time `now` after some more pieces, or ""; a `Stage` is always printed."""
        if pieces and not self.done:
            self.first, self.first_at = pieces, now
        self.done += pieces
        tenth, since = 10 * self.done // max(self.total, 1), now - self.printed
        over = pieces > 0 and self.done >= self.total
        due = since >= 60 or (since >= 1 and tenth > self.tenth)
        if not (over or due or isinstance(note, Stage)):
            return ""
        self.tenth, self.printed = tenth, now
        count, time = f"{self.label}: {self.done}{f'/{self.total}' if self.total else ''}", ""
        if over:
            count += f" in {duration(now - self.begun)}"
        elif self.first < self.done < self.total:  # the first may be those of an earlier command, or compile
            each = (now - self.first_at) / (self.done - self.first)
            time = f"{about(each * (self.total - self.done))} remaining"
        return ", ".join(part for part in (count, time, note) if part)


@contextmanager
def progress(label: str, total: int, quiet: bool = False) -> Iterator[Tick]:
    """Show a progress bar with the remaining time; without a terminal, plain lines; nothing if quiet."""
    if quiet:
        yield silent
    elif errors.is_terminal:
        columns = (
            TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            TextColumn("elapsed,"), TimeRemainingColumn(), TextColumn("remaining  {task.fields[note]}", markup=False),
        )  # fmt: skip
        with Progress(*columns, console=errors) as bar:
            task = bar.add_task(printable(label), total=total or None, note="")

            def show(done: int = 1, note: str = "") -> None:
                if isinstance(note, Stage):  # a line of its own: next to the bar, a sentence would hide the numbers
                    tell(f"{label}: {note}")
                    note = ""
                bar.update(task, advance=done, note=printable(note))

            yield show
    else:
        lines = LogLines(label, total, time.monotonic())

        def tick(done: int = 1, note: str = "") -> None:
            if line := lines.after(done, time.monotonic(), note):
                tell(line)

        yield tick


def opening(total: int, word: str, left: int, devices: Sequence[str] = ()) -> str:
    """The first line of many jobs: "48 jobs, 40 remaining, 2 at a time on cpu"; `devices` has one per job at a time."""
    rest = "" if left == total else f", {left} remaining"
    places = devices[:left]
    pace = f", {len(places)} at a time on {', '.join(dict.fromkeys(places))}" if places else ""
    return f"{counted(total, word)}{rest}{pace}"


def shares(options: list[str] | None) -> dict[str, float] | None:
    """The values of --class-mix; None without any."""
    found = {}
    for option in options or ():
        name, _, share = option.rpartition("=")
        try:
            found[name] = float(share)
        except ValueError:
            raise UsageError(f"--class-mix: expected CLASS=SHARE, for example cat=0.7, got {option!r}") from None
    return found or None
