"""`longshift evaluate`: measure a finished run again."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from longshift.cli.common import (
    AdaptOption,
    AveragedFlag,
    CacheOption,
    ClassMixOption,
    CpuThreadsOption,
    DeviceOption,
    JsonFlag,
    ModelArgument,
    QuietFlag,
    caution,
    percent,
    print_json,
    print_table,
    progress,
    say,
    say_lines,
    shares,
)
from longshift.errors import LongshiftError, UsageError
from longshift.text import counted

if TYPE_CHECKING:
    from longshift.inference import SiteResult
    from longshift.training import Runtime

SITES, SHOWN = 3, 6  # the lowest sites; sites and classes together


def evaluate(
    model: ModelArgument,
    data: Annotated[
        str | None,
        typer.Argument(help="Labeled data to measure on: folder class/image or site/class/image, table, vectors."),
    ] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option("--on", metavar="validation|test|target", help="Set to measure on; repeatable. Default: all."),
    ] = None,
    adapt: AdaptOption = "auto",
    class_mix: ClassMixOption = None,
    averaged: AveragedFlag = False,
    device: DeviceOption = "auto",
    threads: CpuThreadsOption = 0,
    cache: CacheOption = None,
    quiet: QuietFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Measure a model on labeled data, or again on the data of its run.

    With DATA: accuracy, classes and calibration at each of its sites, and what was expected there without labels.
    Without: compare with the recorded accuracies of the run.

    Examples:

        longshift evaluate fits/mysites labeled_site/

        longshift evaluate runs/ndcl-ink-1a2b3c4d --on target
    """
    from longshift.training import Runtime

    runtime = Runtime(device=device, threads=threads, cache=cache)
    if data is not None:
        if sets:
            raise UsageError("--on cannot be combined with DATA.")
        _evaluate_data(model, data, adapt, class_mix, averaged, runtime, quiet, as_json)
        return
    from longshift.inference import evaluate as measure
    from longshift.templates import render
    from longshift.training import SETS

    unknown = [name for name in sets or () if name not in SETS]
    if unknown:
        raise UsageError(f"--on: expected one of {', '.join(SETS)}, got {unknown[0]!r}")
    found = measure(
        model,
        sets or SETS,
        "averaged" if averaged else "selected",
        runtime,
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
        columns = ["set", "n", "accuracy", "many", "medium", "few", "macro F1", "worst domain", "ECE"]
        if not found["agrees"]:
            columns.append("before")
        caption = f"Percent. ECE: calibration error of the probabilities (temperature {found['temperature']:.2f})." + (
            "" if found["agrees"] else " before: the accuracy in result.json."
        )
        print_table(f"{found['folder']} ({found['weights']} weights)", columns, rows, caption)
        say_lines(render("longshift.inference", "evaluate.txt.j2", found=found, sets=sets))
    if not found["agrees"]:
        raise LongshiftError(
            f"{found['folder']}: accuracies differ from result.json: model.safetensors or the images changed."
        )


def _evaluate_data(
    model: Path, data: str, adapt: Literal["auto", "on", "off"], mix: list[str] | None, averaged: bool,
    runtime: Runtime, quiet: bool, as_json: bool,
) -> None:  # fmt: skip
    """Print one row per site and the classes of all of them."""
    from longshift.inference import evaluate_site, load_model
    from longshift.templates import render

    weights: Literal["selected", "averaged"] = "averaged" if averaged else "selected"
    loaded = load_model(model, weights, runtime.device)
    results = evaluate_site(
        loaded, data, cache=runtime.cache, bar=lambda label, n: progress(label, n, quiet), adapt=adapt,
        mix=shares(mix), threads=runtime.threads,
    )  # fmt: skip
    held_out = loaded.knowledge.held_out if loaded.knowledge else ()
    seen = render("longshift.inference", "evaluate_warnings.txt.j2", results=results, held_out=held_out)
    if as_json:
        for line in seen.splitlines():
            caution(line)
        print_json([result.to_json() for result in results])
        return
    say_lines(seen)
    adapted = any(r.adapted and r.adapted.strength for r in results)
    rows = [
        [r.site, r.found.n, percent(r.found.accuracy), percent(r.found.balanced_accuracy),
         percent(r.ece), _expected(r), *([percent(r.plain_accuracy)] if adapted else [])]
        for r in sorted(results, key=lambda r: r.found.accuracy)
    ]  # fmt: skip
    columns = [
        "site",
        "n",
        "accuracy",
        "over classes",
        "ECE",
        "expected without labels",
        *(["before adapting"] if adapted else []),
    ]
    print_table("", columns, rows[:SITES])
    classes = list(results[0].found.per_class)
    table: list[tuple[str, int, float, str]] = []
    for k, name in enumerate(classes):
        counts = [sum(r.found.confusion[k][j] for r in results) for j in range(len(classes))]
        if sum(counts):
            wrong = max((j for j in range(len(classes)) if j != k), key=lambda j: counts[j])
            mostly = f"{classes[wrong]} ({counts[wrong]})" if counts[wrong] else ""
            table.append((name, sum(counts), counts[k] / sum(counts), mostly))
    table.sort(key=lambda row: row[2])
    room = SHOWN - len(rows[:SITES])
    lowest = [[name, n, percent(share), mostly] for name, n, share, mostly in table[:room]]
    print_table("", ("class", "n", "accuracy", "most often misclassified as"), lowest)
    left = max(len(rows) - SITES, 0) + max(len(table) - room, 0)
    if left:
        say(f"... and {counted(left, 'more row')}; all of them with --json")


def _expected(result: SiteResult) -> str:
    """The estimate with its interval, and whether the interval holds the accuracy."""
    if result.expected is None:
        return "-"
    mean, low, high = (f"{100 * value:.0f}" for value in astuple(result.expected.accuracy))
    return f"{mean} ({low}-{high}), {'inside' if result.inside else 'outside'}"
