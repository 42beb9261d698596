"""The whole of `longshift reproduce`: run what is missing, make tables and figures, remember what was made."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from longshift.errors import LongshiftError, UsageError, unknown_name
from longshift.io import locked, write_text
from longshift.paper import accuracy_tables, failures, settings_figures, studies, theory_tables
from longshift.paper.published_tables import paper_rows
from longshift.paper.recipe import (
    Impossible,
    Output,
    Picture,
    Recipe,
    Results,
    caption,
    predictions_file,
    read_results,
)
from longshift.paper.workspace import Workspace
from longshift.progress import Bar, Tick, no_bar
from longshift.report import LATEX_PACKAGES, csv_tables, escape, latex_table, markdown_table
from longshift.sweep import (
    FINISHED,
    Job,
    JobQueue,
    Plan,
    Slot,
    StoreFolder,
    SweepFolder,
    SweepStopped,
    clear_failures,
    execute,
    make_queue,
    read_failure,
    run_local,
)
from longshift.templates import render
from longshift.text import counted, csv_cell
from longshift.training import Runtime, TaskCache

Stop = Callable[[], bool]


def all_recipes() -> tuple[Recipe, ...]:
    """Every recipe, in the order of the paper: first its tables, then its figures."""
    modules = (accuracy_tables, studies, theory_tables, settings_figures, failures)
    found = [recipe for module in modules for recipe in module.RECIPES]
    return tuple(sorted(found, key=lambda recipe: (recipe.kind == "figure", int(re.findall(r"\d+", recipe.label)[0]))))


def find_recipes(names: Sequence[str]) -> list[Recipe]:
    """Recipes by their names, or by the paper's labels ("Tab. 4", "fig4")."""
    known = {recipe.name: recipe for recipe in all_recipes()}
    labels = {_plain(recipe.label): recipe for recipe in all_recipes()}
    found: dict[str, Recipe] = {}
    for name in names:
        recipe = known.get(name.casefold()) or labels.get(_plain(name))
        if recipe is None:
            raise UsageError(unknown_name("recipe", name, known) + "; see: longshift reproduce --list")
        found[recipe.name] = recipe
    return list(found.values())


def _plain(label: str) -> str:
    return re.sub(r"[^a-z0-9-]", "", label.casefold())


@dataclass(frozen=True)
class RecipeStatus:
    """One entry of `longshift reproduce --list`."""

    name: str
    label: str
    title: str
    runs: int
    done: int
    failed: int
    state: Literal["done", "ready", "partly", "missing"]
    files: tuple[str, ...]


@dataclass(frozen=True)
class StatusList:
    """All of `longshift reproduce --list`; recipes share runs, so the runs are fewer than the sum."""

    runs: int
    missing: int
    recipes: tuple[RecipeStatus, ...]


def list_status(workspace: Workspace, recipes: Sequence[Recipe]) -> StatusList:
    """Look at the store and the folder of results."""
    jobs, found = jobs_of(workspace, recipes), []
    states = {name: entry.state for name, entry in read_results(workspace, jobs).entries.items()}
    for recipe in recipes:
        own = [states[job.fingerprint] for job in jobs_of(workspace, [recipe])]
        done, failed = sum(state in FINISHED for state in own), own.count("failed")
        files = tuple(path.name for path in _pages(workspace, recipe))
        missing: Literal["partly", "missing"] = "partly" if done else "missing"
        state = missing if done + failed < len(own) else "done" if files else "ready"
        found.append(RecipeStatus(recipe.name, recipe.label, recipe.title, len(own), done, failed, state, files))
    return StatusList(len(jobs), len(unfinished_jobs(workspace, jobs)), tuple(found))


def jobs_of(workspace: Workspace, recipes: Iterable[Recipe]) -> list[Job]:
    """The runs of some recipes, each once, in the order of first mention."""
    jobs = [job for recipe in recipes for job in recipe.jobs(workspace)]
    return list({job.fingerprint: job for job in reversed(jobs)}.values())[::-1]


def unfinished_jobs(workspace: Workspace, jobs: Sequence[Job]) -> list[Job]:
    """Jobs that have neither a result nor an error."""
    states = read_results(workspace, jobs).entries
    return [job for job in jobs if states[job.fingerprint].state not in (*FINISHED, "failed")]


def _pages(workspace: Workspace, recipe: Recipe) -> list[Path]:
    """The Markdown files of a recipe: NAME.md and NAME-....md."""
    return sorted(path for path in workspace.out.glob("*.md") if f"{path.stem}-".startswith(f"{recipe.name}-"))


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
) -> ReproduceResult:
    """Run what the recipes lack and write their tables and figures; one that cannot be made does not stop the rest."""
    jobs = jobs_of(workspace, recipes)
    _run_missing(workspace, recipes, jobs, slots, runtime, stop, bar)
    results = read_results(workspace, jobs)
    bad = [job.fingerprint for job in jobs if results.entries[job.fingerprint].state == "failed"]
    made = ReproduceResult(failed_runs={results.name(f): read_failure(workspace.store, f) for f in bad})
    with bar("tables and figures", len(recipes)) as tick:
        for recipe in recipes:
            # Runs are read while nobody else writes: of two commands at once, the last to write has all runs.
            with locked(workspace.out / ".lock"):
                _make(workspace, recipe, made)
            tick(1, recipe.name)
    _write_overview(workspace, {**made.failed, **made.impossible})
    return made


def clear_failed_runs(workspace: Workspace, recipes: Sequence[Recipe]) -> int:
    """Let failed runs run again; how many there were."""
    names = {job.fingerprint for job in jobs_of(workspace, recipes)}
    return clear_failures(workspace.store, names) + clear_failures(workspace.again, names)


def _run_missing(
    workspace: Workspace, recipes: Sequence[Recipe], jobs: Sequence[Job], slots: Sequence[Slot], runtime: Runtime,
    stop: Stop, bar: Bar,
) -> None:  # fmt: skip
    """All runs of the recipes; then, again, the chosen ones whose predictions are needed and were not kept.

    Where every run counts (one draw), predictions are kept of all runs that some recipe looks into, whichever recipe
    is asked for now. Where the best of several draws counts, only the chosen runs are run again for theirs:
    embeddings of ten times as many runs would fill a disk.
    """
    asked, wanted = unfinished_jobs(workspace, jobs), set()
    if workspace.scale.draws == 1:
        wanted = {j.fingerprint for recipe in all_recipes() if recipe.predictions for j in recipe.jobs(workspace)}
    workspace.write_settings()
    with bar("runs", len(asked)) as tick:
        for keep in (True, False):
            part = [job for job in asked if (job.fingerprint in wanted) == keep]
            if part:
                now = replace(runtime, keep_model=False, save_predictions=keep)
                problem = run_jobs(workspace.store, part, slots, now, stop, tick).trouble
                _check(problem, len(unfinished_jobs(workspace, asked)) if stop() else 0)
    again = _without_predictions(workspace, recipes)
    if again:
        with bar("runs for their predictions", len(again)) as tick:
            now = replace(runtime, keep_model=False, save_predictions=True)
            queue = run_jobs(workspace.again, again, slots, now, stop, tick)
            _check(queue.trouble, queue.total - queue.done - queue.failed)


def run_jobs(
    store: StoreFolder, jobs: Sequence[Job], slots: Sequence[Slot], runtime: Runtime, stop: Stop, tick: Tick
) -> JobQueue:
    """Run the jobs that have no result; with one slot in this process, else in one process per slot."""
    queue = make_queue(Plan(SweepFolder(store.path, store.path), tuple(jobs)))
    shown = [queue.done + queue.failed]

    def show(state: JobQueue) -> None:
        tick(state.done + state.failed - shown[0], state.note())
        shown[0] = state.done + state.failed

    queue.listener = show
    if len(slots) > 1:
        run_local(queue, list(slots), runtime, stop)
        return queue
    tasks = TaskCache(runtime)
    while not stop() and not queue.trouble and (job := queue.next_job()) is not None:
        queue.tell()
        queue.finish(job, execute(job, store, runtime, tasks, stop))
    queue.tell()
    return queue


def _check(problem: str, left: int) -> None:
    if problem:
        raise LongshiftError(f"{problem}\nEverything finished is kept; resume with the same command.")
    if left:
        raise SweepStopped(f"stopped with {counted(left, 'run')} remaining; resume with the same command")


def _without_predictions(workspace: Workspace, recipes: Iterable[Recipe]) -> list[Job]:
    """The chosen runs without kept predictions, of recipes that need predictions."""
    found: dict[str, Job] = {}
    for recipe in recipes:
        results = read_results(workspace, recipe.jobs(workspace) if recipe.predictions else ())
        if any(entry.state == "done" for entry in results.entries.values()):
            chosen = set(results.chosen["fingerprint"].dropna())
            found |= {j.fingerprint: j for j in results.jobs if j.fingerprint in chosen}
    return [job for name, job in found.items() if predictions_file(workspace, name) is None]


def _make(workspace: Workspace, recipe: Recipe, made: ReproduceResult) -> None:
    try:
        results = read_results(workspace, recipe.jobs(workspace))
        outputs = [with_origin(output, results) for output in recipe.make(results)]
        files = [path for output in outputs for path in write_output(output, workspace.out)]
        rows = paper_rows(recipe.paper, workspace.benchmark)
        if len(rows):  # what the paper prints for this dataset
            files.append(workspace.out / f"{recipe.name}-paper.csv")
            write_text(files[-1], rows.to_csv(index=False, lineterminator="\n"))
        made.files[recipe.name] = files
    except Impossible as error:
        made.impossible[recipe.name] = str(error)
    except LongshiftError as error:
        made.failed[recipe.name] = str(error)


def with_origin(output: Output, results: Results) -> Output:
    """The output with a line on its runs; what follows without runs needs none."""
    if not results.jobs:
        return output
    frame = results.frame
    line = caption(
        "origin", steps=sorted({int(job.run["steps"]) for job in results.jobs}), trials=frame["trial"].nunique(),
        draws=frame["draw"].nunique(), scale=results.workspace.scale.name,
        made_by=[name for name in (*sorted(set(frame["device"])), *sorted(set(frame["commit"]))) if name],
    )  # fmt: skip
    if isinstance(output, Picture):
        return replace(output, caption=f"{output.caption} {line}")
    return replace(output, notes=(*output.notes, line))


def write_output(output: Output, folder: Path) -> list[Path]:
    """NAME.md, NAME.csv, NAME.tex of a table; NAME.png, NAME.svg, NAME.csv, NAME.md (caption) of a figure."""
    base = folder / output.name
    if isinstance(output, Picture):
        cells = output.data.map(csv_cell)
        title = escape(output.title)
        texts = {
            "csv": cells.to_csv(index=False, lineterminator="\n", float_format="%.8g"),
            "md": f"### {title}\n\n![{title}]({base.name}.svg)\n\n{escape(output.caption)}\n",
        }
        drawings = [base.with_suffix(f".{kind}") for kind in ("png", "svg")]
        for path in drawings:
            output.drawing.save(path, dpi=160)
    else:
        drawings = []
        texts = {
            "md": markdown_table(output), "csv": csv_tables([output]), "tex": LATEX_PACKAGES + latex_table(output),
        }  # fmt: skip
    for kind, text in texts.items():
        write_text(base.with_suffix(f".{kind}"), text)
    return [*drawings, *(base.with_suffix(f".{kind}") for kind in texts)]


def _write_overview(workspace: Workspace, reasons: dict[str, str]) -> None:
    """README.md: every result under the paper's label, or why it is not there."""
    texts = {r.name: [page.read_text(encoding="utf-8").strip() for page in _pages(workspace, r)] for r in all_recipes()}
    text = render(
        "longshift.paper", "overview.md.j2", recipes=all_recipes(), reasons=reasons, texts=texts, escape=escape
    )  # fmt: skip
    write_text(workspace.out / "README.md", text)
