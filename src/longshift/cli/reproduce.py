"""`longshift reproduce`: the paper's tables and figures as recipes that run on any dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

import longshift.paper as paper
from longshift.cli.common import (
    JobsPerGpuOption,
    JsonFlag,
    QuietFlag,
    ThreadsOption,
    WorkersOption,
    announce_stop,
    opening,
    print_json,
    progress,
    say,
    tell,
)
from longshift.cli.run_options import run_fields, runtime_fields, with_options
from longshift.errors import LongshiftError, UsageError
from longshift.io import require_writable
from longshift.templates import render
from longshift.text import counted

# Options that the recipes choose for each run.
EXPANDED = ("setting", "target", "method", "split_seed", "hparam_seed", "train_seed")
SHOWN_FAILURES = 5


@with_options(
    run=run_fields(
        without=EXPANDED,
        steps="Training steps; by default 5000, 100 with --quick.",
        eval_every="Steps between validations; by default 300, fewer in short runs.",
    ),
    execution=runtime_fields(("device", "deterministic", "cache")),
)
def reproduce(
    run: dict[str, Any],
    execution: dict[str, Any],
    names: Annotated[list[str] | None, typer.Argument(metavar="RECIPE", help="Names of recipes; see --list.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Make all recipes.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="List the recipes and their state.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Use few steps, trials and draws: a preview of each table and figure.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Output folder; default reproduce/DATA (with --quick, reproduce/DATA/quick).")
    ] = None,
    again: Annotated[bool, typer.Option("--retry", help="Run failed runs again.")] = False,
    methods: Annotated[
        list[str] | None, typer.Option("--method", help="Use only this method; repeatable. Default: all.")
    ] = None,
    targets: Annotated[
        list[str] | None, typer.Option("--target", help="Use only this target; repeatable. Default: all.")
    ] = None,
    trials: Annotated[int | None, typer.Option(min=1, help="Trials (3 by protocol).")] = None,
    draws: Annotated[int | None, typer.Option(min=1, max=1000, help="Hyper-parameter draws (10 by protocol).")] = None,
    workers: WorkersOption = None,
    threads: ThreadsOption = 1,
    jobs_per_gpu: JobsPerGpuOption = 1,
    quiet: QuietFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Make the paper's tables and figures, from the embedded digits or from your data.

    Examples:

        longshift reproduce --list                        # the recipes and their state

        longshift reproduce ablation --quick              # by name, or by the paper's label: "Tab. 4"

        longshift reproduce --all --data digits --quick   # everything, in minutes

        longshift reproduce duality --data PACS.zip --pretrained
    """
    if not (listed or every or names):
        raise UsageError("expected the name of a recipe or --all; list them with: longshift reproduce --list")
    if every and names:
        raise UsageError(f"--all cannot be combined with {', '.join(names)}")
    # Imported here: `longshift --help` must not wait for torch.
    import torch

    from longshift.sweep import make_slots
    from longshift.training import OpenDataset, Runtime, graceful_stop

    data = run.pop("data", "digits")
    scale = paper.override_scale(
        paper.quick_scale(data) if quick else paper.FULL_SCALE, run.get("steps"), trials, draws
    )
    recipes = list(paper.all_recipes()) if every or not names else paper.find_recipes(names)
    dataset = OpenDataset(data, cache=execution.get("cache"), bar=lambda label, total: progress(label, total, quiet))
    workspace = paper.open_workspace(dataset, scale, out, run.pop("benchmark", None), methods or (), targets or (), run)
    slots = make_slots(execution.get("device", "auto"), jobs_per_gpu, workers, threads)
    if slots[0].device == "cpu":
        torch.set_num_threads(slots[0].threads)
    if listed:
        found = paper.list_status(workspace, recipes)
        if as_json:
            print_json({"data": data, "out": str(workspace.out), "scale": scale.name, **asdict(found)})
        else:
            say(render("longshift.paper", "status.txt.j2", workspace=workspace, found=found))
        return
    jobs = paper.jobs_of(workspace, recipes)
    require_writable(workspace.out / "README.md")
    if again:
        say(f"{counted(paper.clear_failed_runs(workspace, recipes), 'failed run')} will run again")
    if not quiet and (waiting := len(paper.unfinished_jobs(workspace, jobs))):
        tell(opening(len(jobs), "run", waiting, [slot.device for slot in slots]))
    with graceful_stop(announce_stop) as asked:
        made = paper.reproduce(
            workspace, recipes, slots, Runtime(**{**execution, "device": slots[0].device}), asked,
            lambda label, total: progress(label, total, quiet),
        )  # fmt: skip
    if as_json:
        files = {name: [str(path) for path in paths] for name, paths in made.files.items()}
        print_json({**vars(made), "files": files})
    _print_made(workspace, recipes, made, quiet or as_json)


def _print_made(
    workspace: paper.Workspace, recipes: Sequence[paper.Recipe], made: paper.ReproduceResult, quiet: bool
) -> None:
    for name, reason in made.impossible.items():
        tell(f"{name} is not possible here: {reason}")
    if not quiet:
        for recipe in recipes:
            if recipe.name in made.files:
                say(f"{recipe.label:<10} {recipe.name}: {', '.join(path.name for path in made.files[recipe.name])}")
        files = counted(sum(map(len, made.files.values())), "file")
        say(f"wrote {files} to {workspace.out}; start with its README.md")
    complaints = []
    if made.failed or (made.impossible and not made.files):
        reasons = {**made.failed, **(made.impossible if not made.files else {})}
        complaints.append(f"{len(reasons)} of {counted(len(recipes), 'recipe')} could not be made:{_bullets(reasons)}")
    if made.failed_runs:
        failed = counted(len(made.failed_runs), "run")
        complaints.append(f"{failed} failed; run again with --retry:{_bullets(made.failed_runs)}")
    if complaints:
        raise LongshiftError("\n".join(complaints))


def _bullets(reasons: dict[str, str]) -> str:
    lines = [f"\n  - {name}: {reason}" for name, reason in reasons.items()]
    more = f"\n  and {len(lines) - SHOWN_FAILURES} more" if len(lines) > SHOWN_FAILURES else ""
    return "".join(lines[:SHOWN_FAILURES]) + more
