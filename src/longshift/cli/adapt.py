"""`longshift adapt`: refit a model with labeled samples of a new site."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from longshift.cli.common import (
    CacheOption,
    CpuThreadsOption,
    DeviceOption,
    JsonFlag,
    ModelArgument,
    QuietFlag,
    caution,
    print_json,
    progress,
    say,
)


def adapt(
    model: ModelArgument,
    labeled: Annotated[
        str, typer.Argument(metavar="LABELS", help="A .csv file with path and label, a folder class/image or a table.")
    ],
    out: Annotated[Path | None, typer.Option(help="Folder of the adapted model; default MODEL-adapted.")] = None,
    device: DeviceOption = "auto",
    threads: CpuThreadsOption = 0,
    cache: CacheOption = None,
    quiet: QuietFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Refit the last layer of a model with labeled samples of a new site; the old model is kept.

    The labels count as much as the known samples of the training sites. Both models are cross-validated
    on the labels, and a gain is reported only if there are enough labels to show it.

    Example:

        longshift adapt fits/mysites labels.csv
    """
    from longshift.fitting import adapt as run

    with progress("reading", 0, quiet) as tick:
        done = run(model, labeled, out, device, tick, threads, cache)
    for path, reason in done.skipped:
        caution(f"skipped {path}: {reason}")
    found = done.comparison
    if as_json:
        print_json(
            {
                "folder": str(done.folder), "labels": done.labels, "before": found.before / found.n,
                "after": found.after / found.n, "n": found.n, "p_value": found.p_value, "clear_gain": found.clear,
                "findings": done.findings(),
            }
        )  # fmt: skip
        return
    for sentence in done.findings():
        say(sentence)
    say(f"\nmodel   {done.folder}\nnext    longshift predict {shlex.quote(str(done.folder))} NEW_SITE/")
