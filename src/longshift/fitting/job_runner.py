"""Runs the jobs of a fit, each in its folder: resumes what was interrupted and shortens what would take too long."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from longshift.errors import LongshiftError
from longshift.fitting.plan import Job, Plan, lengths
from longshift.fitting.time_limit import TimeLimit
from longshift.io import lock_folder
from longshift.progress import Bar, Tick, no_bar
from longshift.settings import NO_TARGET
from longshift.text import any_of
from longshift.training import (
    Interrupted,
    OpenDataset,
    ResolvedRun,
    RunFolder,
    Runtime,
    Task,
    Trainer,
    checkpoint,
    inputs_key,
    make_task,
    read_model_file,
    read_result,
    training_threads,
    use_threads,
)

Results = dict[Path, dict[str, Any]]
Say = Callable[[str], None]


class JobRunner:
    """Everything that the runs of a fit share.

    Args:
        dataset: Their data.
        folder: Where the fit is kept.
        runtime: Device, threads, cache.
        limit: The clock.
        bars: Show the progress of training, and of the work before it.
        say: Called with each sentence.
        stop: Asked after each step whether to stop.
        keep: Called with a plan that has changed.
    """

    def __init__(
        self,
        dataset: OpenDataset,
        folder: Path,
        runtime: Runtime,
        limit: TimeLimit,
        bars: tuple[Bar, Bar],
        say: Say,
        stop: Callable[[], bool],
        keep: Callable[[Plan], None],
    ) -> None:
        self.dataset, self.folder, self.runtime, self.limit = dataset, folder, runtime, limit
        self.say, self.stop, self.keep = say, stop, keep
        self._bar, self._early = bars
        self._known: dict[tuple[Any, ...], Task] = {}
        self._restarted: set[Path] = set()  # runs that were shortened once

    def task(self, job: Job) -> Task:
        """The data of a job: read and decoded (or passed through the frozen network) once."""
        key = inputs_key(job.config)
        run = ResolvedRun(job.config, self.dataset.manifest)
        self._known[key] = make_task(run, self.runtime, self._early, self._known.get(key))
        return self._known[key]

    def train(self, jobs: list[Job], plan: Plan, earlier: int = 0, later: int = 0) -> tuple[Results, Plan]:
        """Train the jobs that are not finished. If they are too slow, the plan has fewer steps afterwards.

        Jobs that were shortened are replaced in the list. All runs without the same site have the same number of
        steps, because they are compared: a site with a finished run is never shortened. A run starts again at most
        once, and no run has fewer than `Plan.fewest_steps`: on a machine that keeps slowing down, each new start would
        lose time, and the last runs, among them the final model, would pay for it.

        Args:
            jobs: The runs, site by site.
            plan: The plan that they follow.
            earlier: Finished runs of the fit that are not among these.
            later: Runs that follow these and need time, too.
        """
        for job in {inputs_key(job.config): job for job in jobs}.values():
            self.task(job)  # with a bar of its own, which must not run inside that of training
        self._early = no_bar
        results: Results = {}
        for job in jobs:
            if RunFolder(job.folder).finished() and (job.site != NO_TARGET or self._has_model(RunFolder(job.folder))):
                results[job.folder] = read_result(RunFolder(job.folder), job.config.fingerprint())
        # Count only the remaining steps, so that finished runs do not distort the remaining time.
        total = sum(job.config.steps for job in jobs if job.folder not in results)
        with ExitStack() as stack:
            tick = _StepCount(stack.enter_context(self._bar("fitting", total)), total)
            stack.enter_context(use_threads(training_threads(jobs[0].config, self.runtime)))
            for number in range(len(jobs)):
                while jobs[number].folder not in results:
                    remaining = len(jobs) - len(results) + later
                    # By the finished runs, not by the place in the list: the runs of a later --compare are between.
                    count, of = earlier + len(results) + 1, earlier + len(jobs) + later
                    label = f"{count}/{of} {jobs[number].label}"
                    job = jobs[number]
                    pinned = (
                        job.site in _finished_sites(jobs, results)
                        or job.folder in self._restarted
                        or job.config.steps <= plan.fewest_steps
                    )
                    found = self._train_one(job, remaining, _noted(tick, label, self.limit), pinned)
                    if found is not None:
                        results[jobs[number].folder] = found
                    elif self.limit.tripped:
                        plan = self._shorten(jobs, results, plan)
                    else:
                        raise Interrupted(
                            f"stopped in run {count} of {of}; everything is saved in {self.folder}. "
                            "Resume with the same command"
                        )
            tick.finish()
        return results, plan

    def _train_one(self, job: Job, remaining: int, tick: Tick, pinned: bool) -> dict[str, Any] | None:
        """The result; None if the run was stopped, by the user or, unless its length is `pinned`, by the clock."""
        keep = replace(self.runtime, keep_model=job.site == NO_TARGET, save_predictions=True)
        self.limit.begin(job.config.steps, remaining)
        try:
            with lock_folder(job.folder):
                trainer = Trainer(
                    job.config,
                    self.task(job),
                    job.folder,
                    keep,
                    lambda: self.stop() or (not pinned and self.limit.late()),
                )
                return trainer.run(tick, resume=True)
        except Interrupted:
            return None

    def _has_model(self, final: RunFolder) -> bool:
        """Whether the files of the final model are whole; if not, its result is set aside and its run made again.

        What the fit keeps about new sites is not looked at: it is written again in any case.
        """
        try:
            described = read_model_file(final.description)
            checkpoint.check_weights(final.model, described.weights)
            if described.head:
                checkpoint.check_weights(final.network, described.network_weights)
        except LongshiftError as error:
            aside = final.result.with_name(f"{final.result.stem}-{time.time_ns()}.json")
            final.result.replace(aside)
            self.say(f"The final model is trained again, because it cannot be used: {error} Its result is in {aside}.")
            return False
        return True

    def _shorten(self, jobs: list[Job], results: Results, plan: Plan) -> Plan:
        """Give runs at sites without finished runs the steps that the rest of the time allows.

        The run that was stopped starts again.
        """
        pinned = _finished_sites(jobs, results)
        current = next(job for job in jobs if job.folder not in results)
        affordable = self.limit.affordable()
        steps = min(max(affordable, plan.fewest_steps), current.config.steps - 1)
        sites = dict.fromkeys(job.site for job in jobs if job.site not in pinned and job.site != NO_TARGET)
        shorter = f"Runs that hold out {any_of(sites)}, and the final model, have" if sites else "The final model has"
        reason = (
            f"Training is slower than measured at the start. {shorter} {steps} steps instead of {plan.steps_at_first}."
        )
        if affordable < steps:
            reason += " This takes longer than the given time: with even fewer steps, the model would be of little use."
        shutil.rmtree(current.folder)
        self._restarted.add(current.folder)
        self.say(reason)
        for index, job in enumerate(jobs):
            if job.site not in pinned:
                jobs[index] = replace(job, config=job.config.model_copy(update=lengths(steps)))
        plan = plan.with_steps(steps, pinned, reason)
        self.keep(plan)
        return plan


def _finished_sites(jobs: list[Job], results: Results) -> dict[str, int]:
    """Sites with a finished run, and the steps of their runs."""
    return {job.site: job.config.steps for job in jobs if job.folder in results}


class _StepCount:
    """The steps of a bar: runs that are shortened or that diverge have fewer, but the bar ends at its total."""

    def __init__(self, tick: Tick, total: int) -> None:
        self._tick, self._left = tick, total

    def __call__(self, done: int = 1, note: str = "") -> None:
        """Some more steps."""
        counted = min(done, self._left)
        self._left -= counted
        self._tick(counted, note)

    def finish(self) -> None:
        """All runs are finished."""
        if self._left:
            self(self._left)


def _noted(tick: Tick, label: str, limit: TimeLimit) -> Tick:
    def noted(done: int = 1, note: str = "") -> None:
        limit.tick(done)
        tick(done, f"{label} {note}".rstrip())

    return noted
