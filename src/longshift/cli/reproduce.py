"""`longshift reproduce`: the paper's tables and figures as recipes that run on any dataset."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longshift.cli.common import (
    JobsPerGpuOption,
    JsonFlag,
    QuietFlag,
    RawFlag,
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
from longshift.text import agree, counted

if TYPE_CHECKING:
    from longshift.paper import Recipe, ReproduceResult, Workspace
    from longshift.sweep import Slot

# Options that the recipes choose for each run.
EXPANDED = ("setting", "target", "method", "split_seed", "hparam_seed", "train_seed")


SHOWN_FAILURES = 5


@with_options(
    run=run_fields(
        without=EXPANDED,
        steps="Training steps; by default 5000, 100 with --quick.",
        eval_every="Steps between validations; by default 300, fewer in short runs.",
    ),
    execution=runtime_fields(("device", "cache")),
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
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the missing runs and stop.")] = False,
    again: Annotated[bool, typer.Option("--retry", help="Run failed runs again.")] = False,
    methods: Annotated[
        list[str] | None, typer.Option("--method", help="Use only this method; repeatable. Default: all.")
    ] = None,
    targets: Annotated[
        list[str] | None, typer.Option("--target", help="Use only this target; repeatable. Default: all.")
    ] = None,
    trials: Annotated[int | None, typer.Option(min=1, help="Trials (3 by protocol).")] = None,
    draws: Annotated[int | None, typer.Option(min=1, max=1000, help="Hyper-parameter draws (10 by protocol).")] = None,
    measure: Annotated[
        bool, typer.Option("--measure/--no-measure", help="With --list: time a few steps of each kind of run.")
    ] = False,
    workers: WorkersOption = None,
    threads: ThreadsOption = 1,
    jobs_per_gpu: JobsPerGpuOption = 1,
    raw: RawFlag = False,
    quiet: QuietFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Make the paper's tables and figures, from the embedded digits or from your data.

    Examples:

        longshift reproduce --list                        # the recipes and their state; hours with --measure

        longshift reproduce ablation --quick              # by name, or by the paper's label: "Tab. 4"

        longshift reproduce --all --data digits --quick   # everything, in minutes

        longshift reproduce duality --data PACS.zip --pretrained
    """
    if not (listed or every or names):
        raise UsageError("expected the name of a recipe, --all or --list; list them with: longshift reproduce --list")
    if every and names:
        raise UsageError(f"expected either names or --all, got --all and {', '.join(names)}")
    # Imported here: `longshift --help` must not wait for torch.
    from longshift.paper import FULL_SCALE, all_recipes, find_recipes, open_workspace, override_scale, quick_scale
    from longshift.sweep import make_slots
    from longshift.training import OpenDataset

    if out is not None and not (listed or dry_run):
        require_writable(out / "README.md")
    data = run.pop("data", "digits")
    scale = override_scale(quick_scale(data) if quick else FULL_SCALE, run.get("steps"), trials, draws)
    recipes = list(all_recipes()) if every or not names else find_recipes(names)
    dataset = OpenDataset(data, cache=execution.get("cache"), bar=lambda label, total: progress(label, total, quiet))
    workspace = open_workspace(dataset, scale, out, run.pop("benchmark", None), methods or (), targets or (), run)
    slots = make_slots(execution.get("device", "auto"), jobs_per_gpu, workers, threads)
    if listed:
        _list(workspace, recipes, slots, measure, quiet, as_json)
    elif dry_run:
        _dry_run(workspace, recipes, as_json)
    else:
        if again:
            from longshift.paper import clear_failed_runs

            say(f"{counted(clear_failed_runs(workspace, recipes), 'failed run')} will run again")
        _run(workspace, recipes, slots, execution.get("cache"), raw, quiet, as_json)


def _list(
    workspace: Workspace, recipes: Sequence[Recipe], slots: Sequence[Slot], measure: bool, quiet: bool,
    as_json: bool,
) -> None:  # fmt: skip
    from longshift.paper import (
        cost_group,
        hours_of,
        known_costs,
        measure_costs,
        read_results,
        status_of,
        unfinished_jobs,
        without_repeats,
    )
    from longshift.templates import render

    jobs = without_repeats(job for recipe in recipes for job in recipe.jobs(workspace))
    costs = known_costs(workspace, jobs, read_results(workspace, jobs).entries)
    unknown = {cost_group(job) for job in jobs} - set(costs)
    if measure and unknown:
        with progress("measuring", len(unknown), quiet) as tick:
            costs = measure_costs(workspace, jobs, costs, slots[0].device, tick)
    found = [status_of(workspace, recipe, costs, len(slots)) for recipe in recipes]
    left = unfinished_jobs(workspace, jobs)
    hours = hours_of(left, costs, len(slots))
    totals = {"slots": len(slots), "runs": len(jobs), "missing": len(left), "hours": hours}
    if as_json:
        place = {"data": workspace.data, "out": str(workspace.out), "scale": workspace.scale.name}
        print_json({**place, **totals, "recipes": [item.to_dict() for item in found]})
    else:
        say(render("longshift.paper", "status.txt.j2", workspace=workspace, recipes=found, **totals))


def _dry_run(workspace: Workspace, recipes: Sequence[Recipe], as_json: bool) -> None:
    from longshift.paper import unfinished_jobs, without_repeats

    jobs = without_repeats(job for recipe in recipes for job in recipe.jobs(workspace))
    left = unfinished_jobs(workspace, jobs)
    if as_json:
        print_json([{"job": job.id, "what": str(job), "run": job.run} for job in left])
        return
    for job in left:
        say(f"{job.id}  {job}")
    say(f"missing: {len(left)} of {counted(len(jobs), 'run')}; nothing was run")


def _run(
    workspace: Workspace, recipes: Sequence[Recipe], slots: Sequence[Slot], cache: Path | None, raw: bool, quiet: bool,
    as_json: bool,
) -> None:  # fmt: skip
    import torch

    from longshift.paper import reproduce as make, unfinished_jobs, without_repeats
    from longshift.training import Runtime, graceful_stop

    require_writable(workspace.out / "README.md")
    if not quiet:
        jobs = without_repeats(job for recipe in recipes for job in recipe.jobs(workspace))
        if left := len(unfinished_jobs(workspace, jobs)):
            devices = [slot.device for slot in slots]
            tell(opening(len(jobs), "run", left, devices))
    if slots[0].device == "cpu":
        torch.set_num_threads(slots[0].threads)
    with graceful_stop(announce_stop) as asked:
        made = make(
            workspace, recipes, slots, Runtime(device=slots[0].device, cache=cache), asked,
            lambda label, total: progress(label, total, quiet), raw,
        )  # fmt: skip
    if as_json:
        files = {name: [str(path) for path in paths] for name, paths in made.files.items()}
        print_json(
            {"files": files, "impossible": made.impossible, "failed": made.failed, "failed_runs": made.failed_runs}
        )
    _print_made(workspace, recipes, made, quiet or as_json)


def _print_made(workspace: Workspace, recipes: Sequence[Recipe], made: ReproduceResult, quiet: bool) -> None:
    for recipe in recipes:
        if recipe.name in made.files and not quiet:
            say(f"{recipe.label:<10} {recipe.name}: {', '.join(path.name for path in made.files[recipe.name])}")
    for name, reason in made.impossible.items():
        tell(f"{name} is not possible here: {reason}")
    if not quiet:
        files = counted(sum(map(len, made.files.values())), "file")
        say(f"wrote {files} to {workspace.out}; start with its README.md")
    complaints = []
    if made.failed or (made.impossible and not made.files):
        reasons = {**made.failed, **(made.impossible if not made.files else {})}
        asked = counted(len(recipes), "recipe")
        complaints.append(f"{len(reasons)} of {asked} could not be made:\n{_bullets(reasons)}")
    if made.failed_runs:
        known, count = dict(list(made.failed_runs.items())[:SHOWN_FAILURES]), len(made.failed_runs)
        more = f"\n  and {count - len(known)} more" if count > len(known) else ""
        complaints.append(
            f"{counted(count, 'run')} failed and {agree(count, 'is', 'are')} missing in the results; run "
            f"{agree(count, 'it', 'them')} again with --retry:\n{_bullets(known)}{more}"
        )
    if complaints:
        raise LongshiftError("\n".join(complaints))


def _bullets(reasons: dict[str, str]) -> str:
    return "\n".join(f"  - {name}: {reason}" for name, reason in reasons.items())
