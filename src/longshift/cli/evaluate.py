"""`longshift evaluate`: measure a finished run again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longshift.cli.common import (
    AveragedFlag,
    CacheOption,
    DeviceOption,
    JsonFlag,
    QuietFlag,
    percent,
    print_json,
    print_table,
    progress,
    say,
)
from longshift.errors import LongshiftError, UsageError


def evaluate(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run, or of a fit.")],
    sets: Annotated[
        list[str] | None, typer.Option("--on", help="Measure on validation, test or target; repeatable. Default: all.")
    ] = None,
    averaged: AveragedFlag = False,
    device: DeviceOption = "auto",
    cache: CacheOption = None,
    quiet: QuietFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Load a run's weights, measure them again on its own data, and compare with the recorded accuracies.

    Example: `longshift evaluate runs/ndcl-ink-1a2b3c4d --on target`
    """
    from longshift.inference import ALL_SITES, evaluate as measure
    from longshift.training import SETS, Runtime

    unknown = [name for name in sets or () if name not in SETS]
    if unknown:
        raise UsageError(f"--on: expected one of {', '.join(SETS)}, got {unknown[0]!r}")
    found = measure(
        run,
        sets or SETS,
        "averaged" if averaged else "selected",
        Runtime(device=device, cache=cache),
        lambda label, total: progress(label, total, quiet),
    )
    if as_json:
        print_json(found)
    else:
        keys = ("accuracy", "many", "medium", "few", "macro_f1", "worst_domain")
        rows = [
            [
                name,
                found[name]["n"],
                *[percent(found[name][key]) for key in keys],
                percent(found["calibrated"][name]["ece"]),
                *([] if found["agrees"] else [percent(found["recorded"].get(name))]),
            ]
            for name in SETS
            if name in found
        ]
        columns = ["set", "n", "accuracy", "many", "medium", "few", "macro\nF1", "worst\ndomain", "ECE"]
        if not found["agrees"]:
            columns.append("before")
        caption = (
            "Percent. ECE: expected calibration error of the probabilities of `longshift predict` "
            f"(temperature {found['temperature']:.2f})."
            + ("" if found["agrees"] else " before: the accuracy in result.json.")
        )
        print_table(f"{found['folder']} ({found['weights']} weights)", columns, rows, caption)
        if "target" not in found and not sets:
            say(f"No target: {ALL_SITES}.")
        if found["recorded"] and found["agrees"]:
            say("The accuracies agree with result.json.")
    if not found["agrees"]:
        raise LongshiftError(
            f"{found['folder']}: expected the accuracies in result.json, got others. "
            "Was model.safetensors replaced, or did the images change?"
        )
