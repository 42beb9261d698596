"""What a fit will train: one run per site held out (and method compared), then the final model on all sites."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longshift.errors import LongshiftError
from longshift.files import content_hash, read_json, write_json
from longshift.inference import FINAL
from longshift.methods import MethodConfig
from longshift.report import slug
from longshift.settings import NO_TARGET
from longshift.text import counted
from longshift.training import OpenDataset, RunConfig, Runtime, StepTimer, Task, Trainer

SCHEMA = 1
COMPARED = ("erm", "bsoftmax", "ndcl_plus")
# Passes over the training samples, the least and the most steps, and the most where time is given, by kind of network.
EFFORT = {"mlp": (20, 200, 300, 1000), "small_conv": (40, 300, 1500, 3000), "timm": (20, 200, 3000, 5000)}
LONGER = 3  # with time to spare, this many times the usual steps; weights are selected on the way, so it does no harm
FEWEST = 20  # steps; below this nothing is learnt
WARM, TIMED = 3, 5


@dataclass(frozen=True)
class Job:
    """One run of the fit."""

    method: str
    site: str  # held out; "" for the final model
    folder: Path
    config: RunConfig

    @property
    def label(self) -> str:
        """What the progress bar says."""
        return f"{self.method} without {self.site}" if self.site else "final model on all sites"


@dataclass(frozen=True)
class Plan:
    """Everything that decides what is trained."""

    method: str
    sites: tuple[str, ...]  # held out in turn
    base: dict[str, Any]  # values of RunConfig that all runs share
    reason: str  # why this network
    fingerprint: str  # of the manifest
    pace: str = ""  # what is done with the time that was given

    def training(self, runs: int) -> str:
        """How long the runs are, and why where time was given."""
        return self.pace or f"{counted(runs, 'run')} of {counted(self.base['steps'], 'step')}."

    def job(self, dataset: OpenDataset, method: str, site: str, out: Path) -> Job:
        """A run; methods that are only compared share the common hyper-parameters and keep their own defaults."""
        values = {**self.base, "method": method, "target": site}
        if method != self.method:
            values["hparams"] = {k: v for k, v in self.base["hparams"].items() if k in MethodConfig.hyper_parameters()}
        if site == NO_TARGET:
            folder = out / FINAL
        else:
            folder = out / "sites" / f"{slug(method)}-{self.sites.index(site) + 1}-{slug(site)}"
        return Job(method, site, folder, dataset.resolve(values, "the fit").config)

    def jobs(self, dataset: OpenDataset, out: Path, compare: bool) -> list[Job]:
        """All runs in order: sites first, so that the estimate comes before the final model."""
        methods = (self.method, *(name for name in COMPARED if compare and name != self.method))
        held_out = [self.job(dataset, method, site, out) for method in methods for site in self.sites]
        return [*held_out, self.job(dataset, self.method, NO_TARGET, out)]


def usual_steps(samples: int, domains: int, config: RunConfig) -> int:
    """How long to train: some passes over the data, within limits."""
    passes, least, most, _ = EFFORT.get(config.backbone_name, EFFORT["timm"])
    batch = config.method_config().batch_size * domains
    return min(max(round(passes * samples / batch), least), most)


def longest_steps(usual: int, config: RunConfig) -> int:
    """How many steps are still of use when there is time."""
    return max(usual, min(LONGER * usual, EFFORT.get(config.backbone_name, EFFORT["timm"])[3]))


def usual_batch(samples: int, domains: int, config: RunConfig) -> int:
    """Samples per site in a step: the method's default, but not more than about half of a typical site."""
    half = max(samples // (2 * domains), 1)
    return max(min(config.method_config().batch_size, 1 << (half.bit_length() - 1)), 8)


def seconds_per_step(config: RunConfig, task: Task, runtime: Runtime) -> float:
    """The median of a few steps: one step during which the machine was busy must not halve the training."""
    timer = StepTimer(Trainer(config, task, "not written", runtime))
    try:
        return timer.median(WARM, TIMED)
    finally:
        timer.close()


@dataclass(frozen=True)
class Pace:
    """Steps of each run, and a sentence that says what becomes of the time."""

    steps: int
    words: str


def pace_within(
    minutes: float, runs: int, per_step: float, usual: int, longest: int, asked: bool = False, share: float = 0.75
) -> Pace:
    """As many steps as fit into the time, up to the longest that is of use; `asked`: the user named the steps.

    A share of the time is for steps, the rest for evaluation, loading and the report.

    >>> pace_within(10, runs=5, per_step=0.1, usual=300, longest=900).words
    '10 minutes allow 900 steps in each of the 5 runs; the usual number for this data is 300.'
    """
    given = f"{minutes:g} minute{'s' * (minutes != 1)}"
    affordable = int(60 * minutes * share / (max(per_step, 1e-6) * runs))
    if affordable < FEWEST:
        needed = FEWEST * per_step * runs / (60 * share)
        raise LongshiftError(
            f"{given} allow {counted(affordable, 'step')} for each of the {runs} runs, at least {FEWEST} are needed: "
            f"give {_minutes(needed)}, fewer sites (--target SITE) or a smaller network (--backbone small_conv)"
        )
    steps = min(affordable, longest)
    what = f"the {usual} asked for" if asked else f"the usual {usual}"
    if steps < usual:
        return Pace(
            steps,
            f"{given} allow {steps} steps in each of the {runs} runs, fewer than {what}; more time may give a better "
            "model.",
        )
    if affordable <= longest:
        return Pace(
            steps,
            f"{given} allow {steps} steps in each of the {runs} runs; the usual number for this data is {usual}.",
        )
    about = _minutes(steps * per_step * runs / (60 * share))
    more = "" if asked or steps == usual else f", more than the usual {usual}"
    why = "as asked for" if asked else "and further ones would hardly change this model"
    return Pace(steps, f"{steps} steps in each of the {runs} runs{more}, {why}: about {about} of the {given}.")


def _minutes(number: float) -> str:
    """To half a minute or better, never less than is needed."""
    rounded = math.ceil(10 * number) / 10 if number < 10 else math.ceil(number)
    return f"{rounded:g} minute{'s' * (rounded != 1)}"


def earlier_plan(path: Path, request: dict[str, Any]) -> Plan | None:
    """The plan of a broken-off fit in the same folder; an error if that fit was another one, None if there is none."""
    if not path.exists():
        return None
    asked, plan = _read_plan(path)
    changed = [name for name, value in request.items() if _same_name(asked.get(name)) != _same_name(value)]
    if changed:
        listed = ", ".join(f"{name}: {asked.get(name)!r} there, {request[name]!r} now" for name in changed)
        raise LongshiftError(
            f"{path.parent} holds another fit (it differs in {listed}). Choose another --out, or remove the folder."
        )
    return plan


def _same_name(value: Any) -> Any:
    """Paths with and without a slash at their end are the same."""
    return os.path.normpath(value) if isinstance(value, str) else value


def keep_plan(path: Path, request: dict[str, Any], plan: Plan) -> None:
    """Write the plan, for a fit that is broken off."""
    kept = {"request": request, "plan": {**vars(plan), "sites": list(plan.sites)}}
    write_json(path, {"schema": SCHEMA, "hash": content_hash(kept), **kept})


def _read_plan(path: Path) -> tuple[dict[str, Any], Plan]:
    """What was asked for, and the plan that was made of it."""
    try:
        value = read_json(path)
        if value["schema"] != SCHEMA:
            raise ValueError(f"expected schema {SCHEMA}, found {value['schema']!r}")
        kept = {"request": value["request"], "plan": value["plan"]}
        if value["hash"] != content_hash(kept):
            raise ValueError("its values are not those that were saved")
        request: dict[str, Any] = dict(kept["request"])
        return request, Plan(**{**kept["plan"], "sites": tuple(kept["plan"]["sites"])})
    except (LongshiftError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise LongshiftError(
            f"{path} is not the plan of a fit: {error}. Choose another --out, or remove that file and run the same "
            "command: runs that are finished are kept."
        ) from error
