"""`longshift sweep`: many runs, on this machine or a cluster, that can be stopped and resumed at any time."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

import longshift.sweep as sweeps
from longshift.cli.common import (
    CacheOption,
    DeviceOption,
    JobsPerGpuOption,
    JsonFlag,
    QuietFlag,
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
from longshift.io import require_writable, write_text
from longshift.templates import render
from longshift.text import counted

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The sweep's folder; it holds sweep.toml.")]

HELP = """Run many trainings: plan, run, stop, resume, pick the best.

Examples:

    longshift sweep init digits-sweep      # writes sweep.toml for you to edit

    longshift sweep plan digits-sweep      # checks it and counts the jobs

    longshift sweep run digits-sweep       # repeat to resume

    longshift sweep status digits-sweep

    longshift sweep collect digits-sweep   # writes runs.parquet
"""
PACKAGE = "longshift.sweep"  # of the templates
SHOWN = 6  # methods in the table at the end of a sweep

app = typer.Typer(no_args_is_help=True, help=HELP, rich_markup_mode="markdown")


@app.command()
def init(directory: Directory) -> None:
    """Write an example sweep.toml with every key explained.

    Example:

        longshift sweep init digits-sweep
    """
    file = sweeps.SweepFolder(directory).file
    if file.exists():
        raise UsageError(f"{file} exists. Edit it, or choose another folder.")
    write_text(file, resources.files(PACKAGE).joinpath("example.toml").read_text(encoding="utf-8"))
    say(f"wrote {file}; edit it, then: longshift sweep plan {directory}")


@app.command()
def plan(
    directory: Directory,
    cache: CacheOption = None,
    quiet: QuietFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Check the sweep and count its jobs.

    Example:

        longshift sweep plan digits-sweep
    """
    sweep, made = sweeps.make_plan(directory, lambda label, total: progress(label, total, quiet), cache)
    facts = sweeps.status_facts(made)
    if as_json:
        print_json({"jobs": facts.total, "finished": facts.finished, "failed": facts.counts["failed"]})
        return
    _warn([*made.warnings, *sweeps.never_started(made)])
    repeated = len(made.jobs) - facts.total
    say(render(PACKAGE, "plan.txt.j2", facts=facts, sweep=sweep, repeated=repeated).rstrip())


@app.command()
def run(
    directory: Directory,
    launcher: Annotated[str, typer.Option(help="local (processes), ray (a cluster) or a plugin's.")] = "local",
    jobs_per_gpu: JobsPerGpuOption = 1,
    workers: WorkersOption = None,
    threads: ThreadsOption = 1,
    device: DeviceOption = "auto",
    address: Annotated[
        str | None, typer.Option(help="ray: the address of a cluster whose nodes all see DIR, or auto.")
    ] = None,
    stop_after: Annotated[
        float | None, typer.Option(min=0, metavar="MINUTES", help="Stop cleanly after this time.")
    ] = None,
    track: Annotated[str | None, typer.Option(metavar="tensorboard|mlflow", help="Also write to a tracker.")] = None,
    cache: CacheOption = None,
    quiet: QuietFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Run the remaining jobs. Ctrl-C once stops after the current steps with everything saved; again stops at once.

    Examples:

        longshift sweep run digits-sweep

        longshift sweep run pacs-sweep --device cuda --jobs-per-gpu 3
    """
    from longshift.training import graceful_stop, tracker_kind

    run_jobs = sweeps.LAUNCHERS.find(launcher)
    options = sweeps.LaunchOptions(device, jobs_per_gpu, workers, threads, address)
    kind = tracker_kind(track) if track else None
    sweep, made = sweeps.make_plan(directory, lambda label, total: progress(label, total, quiet), cache)
    _warn([*made.warnings, *([] if quiet else sweeps.never_started(made))])

    job_queue = sweeps.make_queue(made)
    slots = sweeps.make_slots(device, jobs_per_gpu, workers, threads) if launcher == "local" else []
    if job_queue.waiting and not quiet:
        tell(opening(job_queue.total, "job", len(job_queue.waiting), [slot.device for slot in slots]))
    if job_queue.in_table and not as_json:
        say(f"{job_queue.in_table} of {counted(job_queue.total, 'job')} finished already in {made.folder.table}")
    cancelled, end = (
        sweeps.CancelWatch(made.folder.cancel),
        time.monotonic() + 60 * (math.inf if stop_after is None else stop_after),
    )
    with progress(f"sweep {directory.name}", job_queue.total, quiet) as tick, graceful_stop(announce_stop) as asked:
        shown = [0]

        def show(state: sweeps.JobQueue) -> None:
            tick(state.done - shown[0], state.note())
            shown[0] = state.done

        job_queue.listener = show
        job_queue.tell()
        stop = lambda: asked() or cancelled() or time.monotonic() >= end  # noqa: E731
        run_jobs(sweeps.Launch(job_queue, options, sweep.runtime, stop, kind))
    if as_json:
        names = {"total": "total", "done": "done", "failed": "failed", "here": "finished_here", "in_table": "in_table"}
        print_json({name: getattr(job_queue, attribute) for name, attribute in names.items()})
    resume = f"Resume with: longshift sweep run {directory}"
    if job_queue.trouble:
        raise LongshiftError(f"{job_queue.trouble}\n{resume}")
    if job_queue.left:
        raise sweeps.SweepStopped(
            f"stopped with {job_queue.left} of {counted(job_queue.total, 'job')} remaining. {resume}"
        )
    if not as_json:
        here = job_queue.finished_here
        _show_methods(sweeps.status_facts(made), most=SHOWN)
        say(f"finished  {job_queue.done} of {counted(job_queue.total, 'job')}, {here} by this command")
        say(f"runs      {made.folder.store.path}")
        if job_queue.done:
            say(f"next      longshift report {directory}")
    if job_queue.failed:
        raise LongshiftError(
            f"{counted(job_queue.failed, 'job')} failed. Reasons: longshift sweep status {directory}; "
            f"to run again: longshift sweep retry {directory}"
        )


@app.command()
def status(directory: Directory, as_json: JsonFlag = False) -> None:
    """Count the jobs that are done, running, failed and waiting, per method.

    Example:

        longshift sweep status digits-sweep
    """
    facts = sweeps.status_facts(sweeps.load_plan(directory))
    if as_json:
        print_json(facts.to_dict())
        return
    _show_methods(facts)
    say(render(PACKAGE, "status.txt.j2", facts=facts).rstrip())


@app.command()
def retry(directory: Directory) -> None:
    """Mark failed jobs to run again.

    Example:

        longshift sweep retry digits-sweep
    """
    made = sweeps.load_plan(directory)
    count = sweeps.clear_failures(made.folder.store, [job.fingerprint for job in made.jobs])
    say(f"{counted(count, 'failed job')} will run again with: longshift sweep run {directory}")


@app.command()
def cancel(directory: Directory) -> None:
    """Ask every process that runs this sweep to stop cleanly, on any machine.

    Example:

        longshift sweep cancel digits-sweep
    """
    sweeps.ask_to_cancel(sweeps.load_plan(directory).folder)
    say("asked all running commands of this sweep to stop after their current steps")


@app.command()
def best(
    directory: Directory,
    out: Annotated[
        Path | None, typer.Option(help="Write files to this folder (DATASET/SETTING/TARGET/METHOD.toml).")
    ] = None,
) -> None:
    """Print the best hyper-parameters of each method, dataset, setting and target, chosen by validation only.

    Examples:

        longshift sweep best digits-sweep

        longshift sweep best digits-sweep --out best
    """
    made = sweeps.load_plan(directory)
    if out is not None:
        require_writable(out / "any.toml")
    found = sweeps.best_configs(made, sweeps.collect_plan(made))
    if not found:
        raise _nothing_finished(directory)
    texts = {config.file: render(PACKAGE, "best.toml.j2", best=config) for config in found}
    if out is None:
        say("\n\n".join(texts.values()))
        return
    for file, text in texts.items():
        write_text(out / file, text)
    say(f"wrote {counted(len(texts), 'file')}, for example: longshift train --config {out / found[0].file}")


@app.command()
def collect(
    directory: Directory,
    out: Annotated[
        Path | None, typer.Option(help="Table to write, .parquet or .csv; default DIR/runs.parquet.")
    ] = None,
) -> None:
    """Write all finished jobs as one table, from which the sweep can resume on another machine.

    Example:

        longshift sweep collect digits-sweep
    """
    made = sweeps.load_plan(directory)
    file = out or made.folder.path / "runs.parquet"
    require_writable(file)
    frame = sweeps.collect_plan(made, others=True)
    if frame.empty:
        raise _nothing_finished(directory)
    old = made.folder.table
    if out is None and old.exists() and (lost := sweeps.unknown_columns(old)):
        raise LongshiftError(
            f"{old} has {counted(len(lost), 'column')} that would be lost: {', '.join(lost)}; "
            f"write another file: longshift sweep collect {directory} --out FILE"
        )
    sweeps.write_runs(frame, file)
    say(f"wrote {file}: {counted(len(frame), 'row')} of {counted(frame['fingerprint'].nunique(), 'run')}")


def _show_methods(facts: sweeps.StatusFacts, most: int | None = None) -> None:
    """Print the jobs of each method by state; beyond `most` methods, only all of them together."""
    rows: list[list[object]] = [[name, *counts.values()] for name, counts in facts.methods.items()]
    if most is not None and len(rows) > most:
        rows = []
    if len(rows) != 1:
        rows.append(["all", *facts.counts.values()])
    print_table("", ("method", *sweeps.STATES), rows)


def _warn(warnings: Iterable[str]) -> None:
    for warning in warnings:
        caution(f"warning: {warning}")


def _nothing_finished(directory: Path) -> LongshiftError:
    return LongshiftError(f"Expected finished jobs in {directory}, got none. See: longshift sweep status {directory}")
