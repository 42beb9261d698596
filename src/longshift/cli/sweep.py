"""`longshift sweep`: many runs, on this machine or a cluster, that can be stopped and resumed at any time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longshift.cli.common import (
    DeviceOption,
    JobsPerGpuOption,
    JsonFlag,
    QuietFlag,
    RawFlag,
    ThreadsOption,
    WorkersOption,
    announce_stop,
    caution,
    opening,
    print_json,
    print_table,
    progress,
    say,
    tell,
)
from longshift.errors import LongshiftError, UsageError
from longshift.io import require_writable
from longshift.text import about, agree, counted

if TYPE_CHECKING:
    from longshift.sweep import JobQueue

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The sweep's folder; it holds sweep.toml.")]

HELP = """Run many trainings: plan, run, stop, resume, pick the best.

Examples:

    longshift sweep init digits-sweep      # writes sweep.toml for you to edit

    longshift sweep plan digits-sweep      # counts the jobs, estimates the hours

    longshift sweep run digits-sweep       # repeat to resume

    longshift sweep status digits-sweep

    longshift sweep collect digits-sweep   # writes runs.parquet
"""
SHOWN_FAILURES = 10
MANY = 5  # methods whose steps may take minutes to time on a CPU


app = typer.Typer(no_args_is_help=True, help=HELP, rich_markup_mode="markdown")


@app.command()
def init(directory: Directory) -> None:
    """Write an example sweep.toml with every key explained.

    Example:

        longshift sweep init digits-sweep
    """
    from longshift.io import write_text
    from longshift.sweep import SweepFolder

    file = SweepFolder(directory).file
    if file.exists():
        raise UsageError(f"Expected a folder without sweep.toml, got {file}. Edit it, or choose another folder")
    write_text(file, resources.files("longshift.sweep").joinpath("example.toml").read_text(encoding="utf-8"))
    say(f"wrote {file}; edit it, then: longshift sweep plan {directory}")


@app.command()
def plan(
    directory: Directory,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure/--no-measure",
            help="Time a few steps of each method; on a CPU, without compiling.",
        ),
    ] = True,
    device: DeviceOption = "auto",
    jobs_per_gpu: JobsPerGpuOption = 1,
    workers: WorkersOption = None,
    threads: ThreadsOption = 1,
    quiet: QuietFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Check the sweep, count its jobs and estimate the hours they take on this machine.

    Example:

        longshift sweep plan digits-sweep --device cpu
    """
    from longshift.sweep import FINISHED, estimate, job_entries, make_plan, make_slots, never_started

    sweep, made = make_plan(directory, lambda label, total: progress(label, total, quiet))
    jobs = made.runs
    entries = job_entries(made)
    counts = Counter(entry.state for entry in entries.values())
    finished = counts["done"] + counts["diverged"]
    value: dict[str, Any] = {"jobs": len(jobs), "finished": finished, "failed": counts["failed"]}
    if measure:
        import torch

        slots = make_slots(device, jobs_per_gpu, workers, threads)
        torch.set_num_threads(slots[0].threads)
        left = {job.method for job in jobs if entries[job.fingerprint].state not in FINISHED}
        if len(left) > MANY and slots[0].device == "cpu" and not quiet:
            tell(f"timing a few steps of {counted(len(left), 'method')}; --no-measure only counts the jobs")
        found = estimate(
            jobs, entries, sweep.runtime, slots[0].device, lambda label, total: progress(label, total, quiet)
        )
        value |= {
            "slots": len(slots), "device": slots[0].device, "hours": round(found.hours(len(slots)), 6),
            "seconds_per_step": {name: round(seconds, 5) for name, seconds in found.methods.items()},
        }  # fmt: skip
    if as_json:
        print_json(value)
        return
    parts = [(sweep.methods, "method"), (sweep.variants, "variant"), (sweep.settings, "setting")]
    shape = [counted(len(listed), word) for listed, word in parts if listed or word != "variant"]
    shape += [counted(len(sweep.trials), "trial"), counted(sweep.draws, "draw")]
    places = ", ".join(f"{d.name} ({counted(len(d.targets), 'target')})" for d in sweep.datasets)
    say(f"{counted(len(jobs), 'job')}: {', '.join(shape)}; {places}")
    if len(made.jobs) > len(jobs):
        same = counted(len(made.jobs) - len(jobs), "job")
        say(f"not counted: {same} with the same run as another row")
    say(f"finished: {finished}, failed: {counts['failed']}, remaining: {len(jobs) - finished}")
    _warn([*made.warnings, *never_started(made)])
    if measure and len(jobs) > finished:
        rows = [
            [name, round(1000 * seconds, 1) if seconds < 1 else round(1000 * seconds)]
            for name, seconds in value["seconds_per_step"].items()
        ]
        print_table("", ("method", "ms per step"), rows)
        time = about(3600 * value["hours"])
        uncompiled = value["device"] == "cpu" and sweep.runtime.compile == "on"
        how = " (measured without compiling: steps will be faster, but compiling takes time)" if uncompiled else ""
        say(f"{time} with {counted(value['slots'], 'job')} at a time on {value['device']}{how}")
    done = len(jobs) == finished
    say(
        f"nothing left to run; make tables with: longshift report {directory}"
        if done
        else f"start with: longshift sweep run {directory}"
    )


@app.command()
def run(
    directory: Directory,
    launcher: Annotated[str, typer.Option(help="local (processes), ray (a cluster) or a plugin's.")] = "local",
    jobs_per_gpu: JobsPerGpuOption = 1,
    workers: WorkersOption = None,
    threads: ThreadsOption = 1,
    device: DeviceOption = "auto",
    address: Annotated[str | None, typer.Option(help="ray: the cluster's address, or auto.")] = None,
    shared_dir: Annotated[
        bool,
        typer.Option("--shared-dir/--no-shared-dir", help="ray: all nodes see DIR under the same path."),
    ] = True,
    stop_after: Annotated[
        float | None, typer.Option(min=0, metavar="MINUTES", help="Stop cleanly after this time.")
    ] = None,
    track: Annotated[str | None, typer.Option(metavar="tensorboard|mlflow", help="Also write to a tracker.")] = None,
    quiet: QuietFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Run the remaining jobs. Ctrl-C once stops after the current steps with everything saved; again stops at once.

    Examples:

        longshift sweep run digits-sweep

        longshift sweep run pacs-sweep --device cuda --jobs-per-gpu 3
    """
    from longshift.sweep import (
        LAUNCHERS,
        CancelWatch,
        Launch,
        LaunchOptions,
        SweepStopped,
        any_check,
        make_plan,
        make_queue,
        make_slots,
        never_started,
        time_is_up,
    )
    from longshift.training import graceful_stop, tracker_kind

    run_jobs = LAUNCHERS.find(launcher)
    options = LaunchOptions(device, jobs_per_gpu, workers, threads, address, shared_dir)
    kind = tracker_kind(track) if track else None
    sweep, made = make_plan(directory, lambda label, total: progress(label, total, quiet))
    _warn(made.warnings)
    if not quiet:
        _warn(never_started(made))

    job_queue = make_queue(made)
    slots = make_slots(device, jobs_per_gpu, workers, threads) if launcher == "local" else []
    if job_queue.waiting and not quiet:
        devices = [slot.device for slot in slots]
        tell(opening(job_queue.total, "job", len(job_queue.waiting), devices))
    if job_queue.in_table and not as_json:
        were = agree(job_queue.in_table, "was", "were")
        say(f"{job_queue.in_table} of {counted(job_queue.total, 'job')} {were} already in {made.folder.table}")
    with progress(f"sweep {directory.name}", job_queue.total, quiet) as tick, graceful_stop(announce_stop) as asked:
        shown = [0]

        def show(state: JobQueue) -> None:
            tick(state.done - shown[0], state.note())
            shown[0] = state.done

        job_queue.listener = show
        job_queue.tell()
        stop = any_check((asked, CancelWatch(made.folder), time_is_up(math.inf if stop_after is None else stop_after)))
        run_jobs(Launch(job_queue, options, sweep.runtime, stop, kind))
    value = {
        "total": job_queue.total, "done": job_queue.done, "failed": job_queue.failed, "here": job_queue.finished_here,
        "in_table": job_queue.in_table,
    }  # fmt: skip
    if as_json:
        print_json(value)
    if job_queue.problem:
        stopped = "The sweep stopped. " if job_queue.trouble else ""
        raise LongshiftError(f"{job_queue.problem}\n{stopped}Resume with: longshift sweep run {directory}")
    left = job_queue.total - job_queue.done - job_queue.failed
    if left:
        raise SweepStopped(
            f"stopped with {left} of {counted(job_queue.total, 'job')} remaining; "
            f"resume with: longshift sweep run {directory}"
        )
    if not as_json:
        say(
            f"finished: {job_queue.done} of {counted(job_queue.total, 'job')}, "
            f"{job_queue.finished_here} by this command"
        )
    if job_queue.failed:
        raise LongshiftError(
            f"{counted(job_queue.failed, 'job')} failed; see why: longshift sweep status {directory}; "
            f"run again after: longshift sweep retry {directory}"
        )


@app.command()
def status(directory: Directory, as_json: JsonFlag = False) -> None:
    """Count the jobs that are done, running, failed and waiting, per method.

    Example:

        longshift sweep status digits-sweep
    """
    from longshift.sweep import STATES, job_entries, load_plan, read_failure

    made = load_plan(directory)
    store = made.folder.store
    jobs = made.runs
    entries = job_entries(made)
    total = Counter(entry.state for entry in entries.values())
    methods: dict[str, Counter[str]] = {}
    for job in made.jobs:  # a run that two rows share is counted in both, but once in the total
        methods.setdefault(job.method, Counter())[entries[job.fingerprint].state] += 1
    failures = [job for job in jobs if entries[job.fingerprint].state == "failed"]
    if as_json:
        listed = [{"job": j.id, "what": str(j), "error": read_failure(store, j.fingerprint)} for j in failures]
        parts = {name: {state: counts[state] for state in STATES} for name, counts in methods.items()}
        print_json({"total": len(jobs), **{s: total[s] for s in STATES}, "methods": parts, "failures": listed})
        return
    rows: list[list[object]] = [[name, *(counts[s] for s in STATES)] for name, counts in methods.items()]
    if len(rows) > 1:
        rows.append(["all", *(total[s] for s in STATES)])
    print_table(
        f"{directory}: {total['done'] + total['diverged']} of {counted(len(jobs), 'job')}", ("method", *STATES), rows
    )
    if in_table := sum(entry.elsewhere for entry in entries.values()):
        say(f"{in_table} of them {agree(in_table, 'is', 'are')} only in {made.folder.table}, not in the store")
    for job in failures[:SHOWN_FAILURES]:
        say(f"failed: {job} ({job.id}): {read_failure(store, job.fingerprint)}")
    if len(failures) > SHOWN_FAILURES:
        say(f"and {len(failures) - SHOWN_FAILURES} more; --json lists them all")
    if total["corrupt"]:
        results, are = counted(total["corrupt"], "result"), agree(total["corrupt"], "is", "are")
        its, jobs_again = agree(total["corrupt"], "it", "them"), agree(total["corrupt"], "its job", "their jobs")
        say(f"{results} {are} damaged; the next `run` moves {its} aside and runs {jobs_again} again")


@app.command()
def retry(directory: Directory) -> None:
    """Mark failed jobs to run again.

    Example:

        longshift sweep retry digits-sweep
    """
    from longshift.sweep import clear_failures, load_plan

    made = load_plan(directory)
    count = clear_failures(made.folder.store, [job.fingerprint for job in made.jobs])
    say(
        f"{counted(count, 'failed job')} will run again"
        + (f"; start with: longshift sweep run {directory}" if count else "")
    )


@app.command()
def cancel(directory: Directory) -> None:
    """Ask every process that runs this sweep to stop cleanly, on any machine.

    Example:

        longshift sweep cancel digits-sweep
    """
    from longshift.sweep import ask_to_cancel, load_plan

    made = load_plan(directory)
    ask_to_cancel(made.folder)
    say("asked all running commands of this sweep to stop after their current steps")


@app.command()
def best(
    directory: Directory,
    out: Annotated[Path | None, typer.Option(help="Folder to write to; default DIR/best.")] = None,
) -> None:
    """Write the winning hyper-parameters of each method, dataset, setting and target, chosen by validation only.

    Example:

        longshift sweep best digits-sweep --out best
    """
    from longshift.sweep import collect_plan, load_plan, write_best

    made, folder = load_plan(directory), out or directory / "best"
    require_writable(folder / "any.toml")
    paths = write_best(made, collect_plan(made), folder)
    if not paths:
        raise LongshiftError(
            f"Expected finished jobs in {directory}, got none. See: longshift sweep status {directory}"
        )
    say(f"wrote {counted(len(paths), 'file')}, for example: longshift train --config {paths[0]}")


@app.command()
def collect(
    directory: Directory,
    out: Annotated[
        Path | None, typer.Option(help="Table to write, .parquet or .csv; default DIR/runs.parquet.")
    ] = None,
    plan_only: Annotated[
        bool, typer.Option("--plan-only", help="Leave out rows of DIR/runs.parquet that are no longer in the plan.")
    ] = False,
    raw: RawFlag = False,
) -> None:
    """Write all finished jobs as one table, from which the sweep can resume on another machine.

    Example:

        longshift sweep collect digits-sweep
    """
    from longshift.results import unknown_columns, write_runs
    from longshift.sweep import collect_plan, collect_union, load_plan

    made = load_plan(directory)
    file = out or made.folder.path / "runs.parquet"
    require_writable(file)
    frame = collect_plan(made) if plan_only else collect_union(made)
    if frame.empty:
        raise LongshiftError(
            f"Expected finished jobs in {directory}, got none. See: longshift sweep status {directory}"
        )
    old = made.folder.table
    if out is None and old.exists() and (lost := unknown_columns(old)):
        raise LongshiftError(
            f"{old} has {counted(len(lost), 'column')} that would be lost: {', '.join(lost)}; "
            f"write another file: longshift sweep collect {directory} --out FILE"
        )
    write_runs(frame, file, raw)
    say(f"wrote {file}: {counted(len(frame), 'row')} of {counted(frame['fingerprint'].nunique(), 'run')}")


def _warn(warnings: Iterable[str]) -> None:
    for warning in warnings:
        caution(f"warning: {warning}")
