"""The whole of `longshift reproduce`: run what is missing, make tables and figures, remember what was made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from longshift.errors import LongshiftError
from longshift.files import write_text
from longshift.locks import locked
from longshift.paper.chosen_runs import Results, read_results
from longshift.paper.output_files import write_output, write_overview
from longshift.paper.published_tables import paper_rows
from longshift.paper.recipe import Impossible, Output, Picture, Recipe
from longshift.paper.recipe_list import all_recipes
from longshift.paper.recipe_runs import (
    Stop,
    run_jobs,
    split_jobs,
    unfinished_jobs,
    without_predictions,
    without_repeats,
)
from longshift.paper.recipe_status import read_ledger, write_ledger
from longshift.paper.workspace import Workspace
from longshift.progress import Bar, no_bar
from longshift.sweep import Slot, SweepStopped, clear_failures, read_failure
from longshift.text import counted
from longshift.training import Runtime


@dataclass
class ReproduceResult:
    """The outcome: files by recipe, recipes that make no sense here, recipes that failed."""

    files: dict[str, list[Path]] = field(default_factory=dict)
    impossible: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    failed_runs: dict[str, str] = field(default_factory=dict)  # run -> its error


def reproduce(
    workspace: Workspace,
    recipes: Sequence[Recipe],
    slots: Sequence[Slot],
    runtime: Runtime,
    stop: Stop = lambda: False,
    bar: Bar = no_bar,
    raw: bool = False,
) -> ReproduceResult:
    """Run what the recipes lack and write their tables and figures; one that cannot be made does not stop the rest.

    `raw`: CSV cells without a quote in front of what a spreadsheet would run.
    """
    run_missing(workspace, recipes, slots, runtime, stop, bar)
    made = ReproduceResult(failed_runs=failed_runs(workspace, recipes))
    with bar("tables and figures", len(recipes)) as tick:
        for recipe in recipes:
            # Runs are read while nobody else writes: of two commands at once, the last to write has all runs.
            with locked(workspace.out / ".lock"):
                _make(workspace, recipe, made, raw)
            tick(1, recipe.name)
    write_overview(
        all_recipes(),
        {name: [Path(file).stem for file in entry["files"]] for name, entry in read_ledger(workspace).items()},
        {**made.failed, **made.impossible},
        workspace.out,
    )
    return made


def failed_runs(workspace: Workspace, recipes: Sequence[Recipe]) -> dict[str, str]:
    """Descriptions of the runs that failed, with their errors."""
    jobs = without_repeats(job for recipe in recipes for job in recipe.jobs(workspace))
    results = read_results(workspace, jobs)
    bad = [job for job in jobs if results.entries[job.fingerprint].state == "failed"]
    return {results.name(job.fingerprint): read_failure(workspace.store, job.fingerprint) for job in bad}


def clear_failed_runs(workspace: Workspace, recipes: Sequence[Recipe]) -> int:
    """Let failed runs run again; how many there were."""
    names = {job.fingerprint for recipe in recipes for job in recipe.jobs(workspace)}
    return clear_failures(workspace.store, names) + clear_failures(workspace.again, names)


def run_missing(
    workspace: Workspace, recipes: Sequence[Recipe], slots: Sequence[Slot], runtime: Runtime, stop: Stop, bar: Bar
) -> None:
    """All runs of the recipes; then, again, the chosen ones whose predictions are needed and were not kept."""
    asked = unfinished_jobs(workspace, without_repeats(job for recipe in recipes for job in recipe.jobs(workspace)))
    kept, others = split_jobs(workspace, asked, all_recipes())
    workspace.write_settings()
    with bar("runs", len(asked)) as tick:
        for jobs, predictions in ((kept, True), (others, False)):
            if jobs:
                now = replace(runtime, keep_model=False, save_predictions=predictions)
                job_queue = run_jobs(workspace.store, jobs, slots, now, stop, tick)
                _check(job_queue.problem, len(unfinished_jobs(workspace, asked)) if stop() else 0)
    again = without_predictions(workspace, recipes)
    if again:
        with bar("runs for their predictions", len(again)) as tick:
            now = replace(runtime, keep_model=False, save_predictions=True)
            job_queue = run_jobs(workspace.again, again, slots, now, stop, tick)
            _check(job_queue.problem, job_queue.total - job_queue.done - job_queue.failed)


def _check(trouble: str, left: int) -> None:
    if trouble:
        raise LongshiftError(f"{trouble}\nEverything finished is kept; resume with the same command.")
    if left:
        raise SweepStopped(f"stopped with {counted(left, 'run')} remaining; resume with the same command")


def _make(workspace: Workspace, recipe: Recipe, made: ReproduceResult, raw: bool) -> None:
    jobs = list(recipe.jobs(workspace))
    try:
        results = read_results(workspace, jobs)
        outputs = [with_origin(output, results) for output in recipe.make(results)]
        files = [path for output in outputs for path in write_output(output, workspace.out, raw)]
        files += _write_paper(workspace, recipe)
        made.files[recipe.name] = files
        write_ledger(workspace, recipe.name, jobs, [path.name for path in files])
    except Impossible as error:
        made.impossible[recipe.name] = str(error)
        write_ledger(workspace, recipe.name, jobs, [], str(error))
    except LongshiftError as error:
        made.failed[recipe.name] = str(error)


def _write_paper(workspace: Workspace, recipe: Recipe) -> list[Path]:
    """NAME-paper.csv: what the paper prints for this dataset."""
    rows = paper_rows(recipe.paper, workspace.benchmark)
    if rows.empty:
        return []
    path = workspace.out / f"{recipe.name}-paper.csv"
    write_text(path, rows.to_csv(index=False, lineterminator="\n"))
    return [path]


def with_origin(output: Output, results: Results) -> Output:
    """The output with a line that says what runs it stands on; what follows without runs needs none."""
    if not results.jobs:
        return output
    frame, scale = results.frame, results.workspace.scale
    trials, draws = frame["trial"].nunique(), frame["draw"].nunique()
    steps = sorted({int(job.run["steps"]) for job in results.jobs})
    shape = f"{counted(trials, 'trial')}, {counted(draws, 'draw')}"
    made_by = [name for name in (*sorted(set(frame["device"])), *sorted(set(frame["commit"]))) if name]
    line = f"Runs of {' or '.join(map(str, steps))} steps, {shape} ({scale.name} scale); {', '.join(made_by)}."
    if isinstance(output, Picture):
        return replace(output, caption=f"{output.caption} {line}")
    return replace(output, notes=(*output.notes, line))
