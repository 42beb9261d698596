"""How long a sweep takes: a few steps of each method on this machine, or what finished jobs took."""

from __future__ import annotations

import math
import statistics
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from longshift.errors import LongshiftError
from longshift.progress import Tick, silent
from longshift.results import SETS
from longshift.sweep.job_store import FINISHED, Entry
from longshift.sweep.jobs import Job
from longshift.sweep.sweep_file import run_config
from longshift.training import RunConfig, RunFolder, Runtime, Task, TaskCache, Trainer, read_metrics

MEASURED = 100  # samples of each set that are evaluated to measure the time on a processor
Kind = tuple[str, str, str]  # method, backbone, dataset


@dataclass(frozen=True)
class Cost:
    """What a job of one kind takes."""

    seconds_per_step: float
    seconds_per_image: float  # of evaluation
    measured: bool  # False: from finished jobs

    def job_seconds(self, config: RunConfig, images: Mapping[str, int]) -> float:
        """The expected time of one job."""
        each = sum(images.values()) if config.evaluate == "full" else images["validation"]
        evaluations = math.ceil(config.steps / config.eval_every)
        evaluated = evaluations * each + 2 * sum(images.values())  # at the end: the last and the selected weights
        return config.steps * self.seconds_per_step + evaluated * self.seconds_per_image


@dataclass(frozen=True)
class Estimate:
    """The expected time of what is left."""

    jobs: int
    seconds: float  # of one job after another
    methods: dict[str, float]  # seconds per step, averaged over what was measured

    def hours(self, slots: int) -> float:
        """With so many jobs at a time."""
        return self.seconds / 3600 / max(slots, 1)


def estimate(
    jobs: Iterable[Job], entries: Mapping[str, Entry], runtime: Runtime, device: str = "auto", tick: Tick = silent
) -> Estimate:
    """Measure each kind of job that is left once, with its default hyper-parameters."""
    listed = list(jobs)
    left = [job for job in listed if entries[job.fingerprint].state not in FINISHED]
    finished: dict[Kind, list[float]] = {}
    for job in listed:
        entry = entries[job.fingerprint]
        if entry.state == "done" and not entry.elsewhere:  # a table of runs tells of another machine's pace
            finished.setdefault(_kind(job), []).append(float(entry.row()["seconds_per_step"]))
    tasks = TaskCache(runtime.cache)
    costs: dict[Kind, Cost] = {}
    images: dict[str, dict[str, int]] = {}
    seconds = 0.0
    for job in left:
        kind, config = _kind(job), run_config(job.run)
        if job.dataset not in images:
            split = tasks.get(config).split
            images[job.dataset] = {
                "validation": len(split.validation), "test": len(split.test), "target": len(split.target_indices)
            }  # fmt: skip
        if kind not in costs:
            try:
                cost = measure(config, runtime, device, tasks)
            except Exception as error:  # whatever a method raises: the user wants to know which one, before the sweep
                raise LongshiftError(
                    f"{job}: a few steps, to measure the time, failed: {error}. Plan without: --no-measure"
                ) from error
            known = finished.get(kind)
            costs[kind] = replace(cost, seconds_per_step=statistics.mean(known), measured=False) if known else cost
            tick(1, job.method)
        seconds += costs[kind].job_seconds(config, images[job.dataset])
    per_method: dict[str, list[float]] = {}
    for (method, _, _), cost in costs.items():
        per_method.setdefault(method, []).append(cost.seconds_per_step)
    return Estimate(len(left), seconds, {name: statistics.mean(values) for name, values in per_method.items()})


def kinds(jobs: Iterable[Job]) -> int:
    """How many measurements an estimate needs."""
    return len({_kind(job) for job in jobs})


def _kind(job: Job) -> Kind:
    return job.method, str(job.run["backbone"]), job.dataset


def thinned(task: Task, most: int) -> Task:
    """The same training with about `most` samples, evenly spread, in each set that is evaluated."""
    split = task.split
    validation, test, target = (
        rows[:: max(len(rows) // most, 1)] for rows in (split.validation, split.test, split.target_indices)
    )
    return replace(task, split=replace(split, validation=validation, test=test, target_indices=target))


def measure(config: RunConfig, runtime: Runtime, device: str, tasks: TaskCache) -> Cost:
    """Train a few steps in a folder that is thrown away; the first ones, which warm up, do not count."""
    on_gpu = device.startswith("cuda") or (device == "auto" and torch.cuda.is_available())
    every = 12 if on_gpu else 2
    short = config.model_copy(
        update={"steps": 2 * every, "eval_every": every, "evaluate": "selected", "hparam_seed": 0}
    )
    quick = replace(runtime, device=device, keep_model=False, save_predictions=False)
    with tempfile.TemporaryDirectory(prefix="longshift-plan-") as name:
        task = tasks.get(short)
        # A processor needs minutes for thousands of photographs; some of them tell the pace.
        trainer = Trainer(short, task if on_gpu else thinned(task, MEASURED), Path(name), quick)
        result = trainer.run()
        rows = read_metrics(RunFolder(Path(name)))
    per_step = (rows[-1]["seconds"] - rows[0]["seconds"]) / every if len(rows) > 1 else result["seconds"]["per_step"]
    sizes = {part: len(trainer.sets[part]) for part in SETS}
    evaluated = 2 * sizes["validation"] + 2 * sum(sizes.values())
    rest = max(result["seconds"]["total"] - result["seconds"]["training"], 0.0)
    return Cost(per_step, rest / max(evaluated, 1), True)
