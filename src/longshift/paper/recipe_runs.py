"""Run what is missing, through the machinery of sweeps: claims, resuming, worker processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from longshift.paper.chosen_runs import predictions_file, read_results
from longshift.paper.recipe import Recipe
from longshift.paper.workspace import Workspace
from longshift.progress import Tick, silent
from longshift.sweep import (
    FINISHED,
    Job,
    JobQueue,
    Plan,
    Slot,
    StoreFolder,
    SweepFolder,
    execute,
    make_queue,
    run_local,
)
from longshift.training import Runtime, TaskCache

Stop = Callable[[], bool]


def without_repeats(jobs: Iterable[Job]) -> list[Job]:
    """Each run once, in the order of first mention."""
    return list({job.fingerprint: job for job in reversed(list(jobs))}.values())[::-1]


def run_jobs(
    store: StoreFolder, jobs: Sequence[Job], slots: Sequence[Slot], runtime: Runtime, stop: Stop, tick: Tick = silent
) -> JobQueue:
    """Run the jobs that have no result; with one slot in this process, else in one process per slot."""
    job_queue = make_queue(Plan(SweepFolder(store.path, store.path), tuple(jobs)))
    shown = [job_queue.done + job_queue.failed]

    def show(state: JobQueue) -> None:
        tick(state.done + state.failed - shown[0], state.note())
        shown[0] = state.done + state.failed

    job_queue.listener = show
    if len(slots) > 1:
        run_local(job_queue, list(slots), runtime, stop)
        return job_queue
    tasks = TaskCache(runtime)
    while not stop() and not job_queue.trouble and (job := job_queue.next_job()) is not None:
        job_queue.tell()
        job_queue.finish(job, execute(job, store, runtime, tasks, stop))
    job_queue.tell()
    return job_queue


def split_jobs(workspace: Workspace, asked: Sequence[Job], every: Sequence[Recipe]) -> tuple[list[Job], list[Job]]:
    """The jobs whose predictions are kept, and the others.

    Where every run counts (one draw), predictions are kept of all runs that some recipe looks into, whichever recipe
    is asked for now. Where the best of several draws counts, only the chosen runs are run again for theirs:
    embeddings of ten times as many runs would fill a disk.
    """
    if workspace.scale.draws > 1:
        return [], list(asked)
    wanted = {job.fingerprint for recipe in every if recipe.predictions for job in recipe.jobs(workspace)}
    return [j for j in asked if j.fingerprint in wanted], [j for j in asked if j.fingerprint not in wanted]


def without_predictions(workspace: Workspace, recipes: Iterable[Recipe]) -> list[Job]:
    """The chosen runs without kept predictions, of recipes that need predictions."""
    found: list[Job] = []
    for recipe in recipes:
        if not recipe.predictions:
            continue
        jobs = {job.fingerprint: job for job in recipe.jobs(workspace)}
        results = read_results(workspace, jobs.values())
        if not any(entry.state == "done" for entry in results.entries.values()):
            continue
        names = [str(name) for name in results.chosen["fingerprint"].dropna()]
        found += [jobs[name] for name in names if predictions_file(workspace, name) is None]
    return without_repeats(found)


def unfinished_jobs(workspace: Workspace, jobs: Sequence[Job]) -> list[Job]:
    """Jobs that have neither a result nor an error."""
    entries = read_results(workspace, jobs).entries
    return [job for job in jobs if entries[job.fingerprint].state not in (*FINISHED, "failed")]
