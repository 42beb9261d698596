"""How long a sweep takes: a few steps of each method on this machine, or what finished jobs took."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from longshift.errors import LongshiftError
from longshift.progress import Bar, no_bar
from longshift.settings import Split
from longshift.sweep.jobs import Job
from longshift.sweep.state import FINISHED, JobState
from longshift.training import SETS, RunConfig, Runtime, StepTimer, Stopwatch, Task, TaskCache, Trainer, resolve_device

MEASURED = 100  # samples of each set that are evaluated to measure the time on a processor
SLOW, VERY_SLOW = 0.5, 3.0  # seconds: if the first step on a CPU takes longer, only one more is timed, or none
Kind = tuple[str, str, str]  # method, backbone, dataset


@dataclass(frozen=True)
class Cost:
    """The time that a job of one kind takes."""

    seconds_per_step: float
    seconds_per_image: float  # of evaluation

    def job_seconds(self, config: RunConfig, split: Split) -> float:
        """The expected time of one job."""
        images = sum(len(split.part(name)) for name in SETS)
        each = images if config.evaluate == "full" else len(split.validation)
        evaluations = math.ceil(config.steps / config.eval_every)
        evaluated = evaluations * each + 2 * images  # at the end: the last and the selected weights
        return config.steps * self.seconds_per_step + evaluated * self.seconds_per_image


@dataclass(frozen=True)
class TimeEstimate:
    """The expected time of the remaining jobs."""

    jobs: int
    seconds: float  # of one job after another
    methods: dict[str, float]  # seconds per step, averaged over what was measured

    def hours(self, slots: int) -> float:
        """With `slots` jobs at a time."""
        return self.seconds / 3600 / max(slots, 1)


def estimate(
    jobs: Iterable[Job], states: Mapping[str, JobState], runtime: Runtime, device: str = "auto", bar: Bar = no_bar
) -> TimeEstimate:
    """Measure each kind of job that is left once, with its default hyper-parameters.

    Nothing is compiled on a CPU, where that takes minutes per method: with `compile = "on"`, the steps of the sweep are
    faster than measured there, but the time of compiling is not counted.
    """
    listed = list(jobs)
    left = [job for job in listed if states[job.fingerprint].state not in FINISHED]
    finished: dict[Kind, list[float]] = {}
    for job in listed:
        found = states[job.fingerprint]
        if found.state == "done" and not found.in_table:  # a table of runs has the times of another machine
            finished.setdefault(_kind(job), []).append(float(found.row()["seconds_per_step"]))
    tasks = TaskCache(runtime)
    kinds: dict[Kind, Job] = {}
    splits: dict[str, Split] = {}
    for job in left:
        kinds.setdefault(_kind(job), job)
        if job.dataset not in splits:
            splits[job.dataset] = tasks.get(job.config, bar).split
    costs: dict[Kind, Cost] = {}
    per_image: dict[tuple[str, str], float] = {}  # of a backbone on a dataset: methods hardly differ in evaluation
    with bar("measuring", len(kinds)) as tick:
        for kind, job in kinds.items():
            tick(0, job.method)
            try:
                cost = measure_cost(job.config, runtime, device, tasks, per_image.get(kind[1:]))
            except Exception as error:  # a method may raise anything: name it before the sweep starts
                raise LongshiftError(
                    f"{job}: the steps that measure the time failed: {error}. Plan without them: --no-measure"
                ) from error
            per_image.setdefault(kind[1:], cost.seconds_per_image)
            known = finished.get(kind)
            costs[kind] = replace(cost, seconds_per_step=statistics.mean(known)) if known else cost
            tick(1, job.method)
    seconds = sum(costs[_kind(job)].job_seconds(job.config, splits[job.dataset]) for job in left)
    per_method: dict[str, list[float]] = {}
    for (method, _, _), cost in costs.items():
        per_method.setdefault(method, []).append(cost.seconds_per_step)
    return TimeEstimate(len(left), seconds, {name: statistics.mean(values) for name, values in per_method.items()})


def _kind(job: Job) -> Kind:
    return job.method, str(job.run["backbone"]), job.dataset


def thinned(task: Task, most: int) -> Task:
    """The same training with about `most` samples, evenly spread, in each set that is evaluated."""
    split = task.split
    validation, test, target = (
        rows[:: max(len(rows) // most, 1)] for rows in (split.validation, split.test, split.target_indices)
    )
    return replace(task, split=replace(split, validation=validation, test=test, target_indices=target))


def measure_cost(
    config: RunConfig, runtime: Runtime, device: str, tasks: TaskCache, seconds_per_image: float | None = None
) -> Cost:
    """Time a few steps, the first of which warm up and do not count, and one evaluation; nothing is written.

    Args:
        config: The run.
        runtime: How it is run; on a CPU without compiling.
        device: Where.
        tasks: Open data.
        seconds_per_image: The time of an evaluation, if it is known.
    """
    on_gpu = resolve_device(device).type == "cuda"
    every = 12 if on_gpu else 2
    short = config.model_copy(update={"steps": 2 * every, "hparam_seed": 0})
    task = tasks.get(short)
    # A CPU needs minutes for thousands of photographs; a sample of them is enough.
    small = task if on_gpu else thinned(task, MEASURED)
    how = replace(runtime, device=device) if on_gpu else replace(runtime, device=device, compile="off")
    timer = StepTimer(Trainer(short, small, "not written", how))
    try:
        first = timer.seconds(every if on_gpu else 1)
        if not on_gpu and first >= SLOW:
            every = 1
        # A step of seconds is not repeated: 30 methods would take minutes, and warming up is a small part of it.
        per_step = first if not on_gpu and first >= VERY_SLOW else timer.seconds(every) / every
        if seconds_per_image is None:
            watch = Stopwatch(timer.trainer.device)
            timer.trainer.evaluator.measure(SETS)
            seconds_per_image = watch.lap() / max(sum(map(len, timer.trainer.evaluator.sets.values())), 1)
    finally:
        timer.close()
    return Cost(per_step, seconds_per_image)
