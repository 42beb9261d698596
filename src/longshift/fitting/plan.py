"""What a fit trains: one run per held-out site and method, then the final model on all sites."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from longshift.errors import LongshiftError
from longshift.inference import FINAL_FOLDER
from longshift.io import content_hash, read_json, write_json
from longshift.methods import MethodConfig
from longshift.report import slug
from longshift.settings import NO_TARGET
from longshift.text import about, counted, duration
from longshift.training import OpenDataset, RunConfig, Runtime, StepTimer, Task, Trainer

SCHEMA = 1
COMPARED = ("erm", "bsoftmax", "ndcl_plus")  # by --compare, in addition to the method of the fit
# Passes over the training samples, the least and the most steps, and the most where time is given, by kind of network.
EFFORT = {"mlp": (20, 200, 300, 1000), "small_conv": (40, 300, 1500, 3000), "timm": (20, 200, 3000, 5000)}
LONGER = 3  # times the usual steps if there is time; harmless, since weights are selected during training
FEWEST = 20  # steps; with fewer, nothing is learned
SHORTEST = 3  # a run that is too slow has at least this part (a third) of the planned steps, even if it takes longer
STEP_SHARE = 0.75  # of the given time is for steps; the rest is for evaluation and the report
WARM, TIMED = 3, 5


@dataclass(frozen=True)
class Job:
    """One run of the fit."""

    method: str
    site: str  # held out; "" for the final model
    folder: Path
    config: RunConfig
    style: str = ""  # where styles are tried: the one of this run

    @property
    def label(self) -> str:
        """For the progress bar and for messages."""
        if not self.site:
            return "final model on all sites"
        tried = f", style mixing {'off' if self.style == 'none' else 'on'}" if self.style else ""
        return f"{self.method} without {self.site}{tried}"


@dataclass(frozen=True)
class Plan:
    """Everything that decides what is trained."""

    method: str
    sites: tuple[str, ...]  # held out in turn
    base: dict[str, Any]  # values of RunConfig that all runs share
    reason: str  # why this network
    fingerprint: str  # of the manifest
    version: str  # of the data, by the content of their files
    pace: str = ""  # how the given time is used, in words that are also true after the training
    slower: str = ""  # where time ran short: a sentence on the steps that runs have now
    planned_steps: int = 0  # where time ran short: of each run before that
    choice: str = ""  # why the whole network or only a head is trained
    site_steps: dict[str, int] = field(default_factory=dict)  # where time ran short: of the runs of earlier sites
    styles: tuple[str, ...] = ()  # tried at each held-out site
    style_reason: str = ""  # why styles are or are not mixed; "" before the trial and for methods without styles
    compared: bool = False  # the methods of --compare are trained: later calls keep the comparison
    what_if_labeled: bool = False  # the value of labels was simulated: later calls keep it

    @property
    def network(self) -> list[str]:
        """Sentences on the network and on the part of it that is trained."""
        return [sentence for sentence in (self.reason, self.choice) if sentence]

    def training(self, runs: int) -> str:
        """The number and the length of all runs, with the reason if --minutes was given; `runs` are without a trial."""
        runs += self.style_runs
        if self.pace:
            return f"{counted(runs, 'run')}. {self.pace} {self.slower}".rstrip()
        return f"{counted(runs, 'run')} of {counted(self.base['steps'], 'step')}."

    @property
    def style_runs(self) -> int:
        """Runs with the styles that are not chosen."""
        return max(len(self.styles) - 1, 0) * len(self.sites)

    def with_style(self, style: str, reason: str = "") -> Plan:
        """The plan with a style for the method of the fit."""
        # The options of a style that is off have no effect and would be refused.
        kept = self.base.get("style") or {} if style != "none" else {}
        base = {**self.base, "style": {**kept, "mix": style}}
        return replace(self, base=base, style_reason=reason)

    def with_steps(self, steps: int, pinned: Mapping[str, int], reason: str) -> Plan:
        """The plan with another length for the final model and for sites without finished runs.

        Args:
            steps: The new length.
            pinned: Steps at sites with finished runs: methods are compared there, so the others have as many.
            reason: A sentence for the report, in place of an earlier one.
        """
        kept, base = {**self.site_steps, **pinned}, {**self.base, **lengths(steps)}
        return replace(self, base=base, site_steps=kept, slower=reason, planned_steps=self.steps_at_first)

    @property
    def steps_at_first(self) -> int:
        """Steps of each run before time ran short."""
        return self.planned_steps or int(self.base["steps"])

    @property
    def fewest_steps(self) -> int:
        """Steps that each run has even if time runs short: a part of the planned ones, so that it learns enough."""
        return max(FEWEST, self.steps_at_first // SHORTEST)

    def steps_at(self, site: str) -> int:
        """Steps of each run without this site; `NO_TARGET`: of the final model."""
        return self.site_steps.get(site, int(self.base["steps"]))

    def job(self, dataset: OpenDataset, method: str, site: str, out: Path) -> Job:
        """One run; methods to compare with use the common hyper-parameters and their own defaults for the others."""
        values = {**self.base, "method": method, "target": site}
        name, style = slug(method), ""
        if method != self.method:
            common = MethodConfig.hyper_parameters()
            values |= {"style": None, "hparams": {k: v for k, v in self.base["hparams"].items() if k in common}}
        elif self.styles:
            style = (self.base.get("style") or {}).get("mix", self.styles[-1])
            name += f"-style-{style}"
        if site == NO_TARGET:
            folder = out / FINAL_FOLDER
        else:
            folder = out / "sites" / f"{name}-{self.sites.index(site) + 1}-{slug(site)}"
        if site in self.site_steps:
            values |= lengths(self.site_steps[site])
        return Job(method, site, folder, dataset.resolve(values, "the fit").config, style)

    def trial(self, dataset: OpenDataset, out: Path) -> list[Job]:
        """The runs that try styles: site by site, each with every style."""
        tried = [self.with_style(style) for style in self.styles]
        return [one.job(dataset, self.method, site, out) for site in self.sites for one in tried]

    def jobs(self, dataset: OpenDataset, out: Path, compare: bool) -> list[Job]:
        """All runs in order: site by site, so that compared runs have the same length; the final model last."""
        methods = (self.method, *(name for name in COMPARED if compare and name != self.method))
        held_out = [self.job(dataset, method, site, out) for site in self.sites for method in methods]
        return [*held_out, self.job(dataset, self.method, NO_TARGET, out)]


def lengths(steps: int) -> dict[str, int]:
    """The keys of a run that say how long it is."""
    return {"steps": steps, "eval_every": max(steps // 10, 1)}


def _effort(config: RunConfig) -> tuple[int, int, int, int]:
    small = "mlp" if config.vectors or config.frozen else config.backbone_name
    return EFFORT.get(small, EFFORT["timm"])


def usual_steps(samples: int, domains: int, config: RunConfig) -> int:
    """The usual number of steps: some passes over the data, within limits."""
    passes, least, most, _ = _effort(config)
    batch = config.method_config().batch_size * domains
    return min(max(round(passes * samples / batch), least), most)


def longest_steps(usual: int, config: RunConfig) -> int:
    """The largest useful number of steps."""
    return max(usual, min(LONGER * usual, _effort(config)[3]))


def usual_batch(samples: int, domains: int, config: RunConfig) -> int:
    """Samples per site and step: the default of the method, but at most about half of a typical site."""
    half = max(samples // (2 * domains), 1)
    return max(min(config.method_config().batch_size, 1 << (half.bit_length() - 1)), 8)


def seconds_per_step(config: RunConfig, task: Task, runtime: Runtime) -> float:
    """The median of a few steps, so that one slow step does not distort the plan."""
    timer = StepTimer(Trainer(config, task, "not written", runtime))
    try:
        return timer.median(WARM, TIMED)
    finally:
        timer.close()


@dataclass(frozen=True)
class Pace:
    """Steps per run, a sentence on why, and one on the time, which is only of use before the training."""

    steps: int
    words: str
    takes: str


def pace_within(
    minutes: float, runs: int, per_step: float, usual: int, longest: int, asked: bool = False,
    left: float | None = None, small: bool = False,
) -> Pace:  # fmt: skip
    """As many steps as fit into the time, at most `longest`; `asked`: the user gave the number of steps.

    Steps may use `STEP_SHARE` of the minutes that are `left`. `small`: there is no smaller network.

    >>> pace_within(10, runs=5, per_step=0.1, usual=300, longest=900).words
    '900 steps per run, as many as fit into 10 minutes; the usual number for this data is 300.'
    """
    given = duration(60 * minutes)
    left = minutes if left is None else left
    affordable = int(60 * max(left, 0) * STEP_SHARE / (max(per_step, 1e-6) * runs))
    if affordable < FEWEST:
        needed = math.ceil(10 * (FEWEST * per_step * runs / (60 * STEP_SHARE) + minutes - left)) / 10
        raise LongshiftError(
            f"Expected time for at least {FEWEST} steps in each of the {runs} runs, got {given}, enough for "
            f"{counted(affordable, 'step')}. Allow more time (--minutes {needed:g}), hold out one site (--target SITE)"
            + ("" if small else " or use a smaller network (--backbone small_conv)")
        )
    steps = min(affordable, longest)
    takes = f"All runs together take {about(steps * per_step * runs / STEP_SHARE)}; the limit is {given}."
    if steps < usual:
        what = f"the requested {usual}" if asked else f"the usual {usual}"
        more = "More time may give a better model."
        return Pace(steps, f"{steps} steps per run, as many as fit into {given}, fewer than {what}. {more}", takes)
    if affordable <= longest:
        why = f", as many as fit into {given}; the usual number for this data is {usual}"
    elif asked:
        why = ", as requested"
    else:
        usually = "" if steps == usual else f" instead of the usual {usual}"
        why = f"{usually}; more would hardly change this model"
    return Pace(steps, f"{steps} steps per run{why}.", takes)


def earlier_plan(path: Path, request: dict[str, Any]) -> Plan | None:
    """The plan of an interrupted fit in the same folder, or None; raise if that fit had another request."""
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
    """Paths with and without a trailing slash are equal."""
    return os.path.normpath(value) if isinstance(value, str) else value


def keep_plan(path: Path, request: dict[str, Any], plan: Plan) -> None:
    """Write the plan, so that an interrupted fit can resume."""
    kept = {"request": request, "plan": {**vars(plan), "sites": list(plan.sites), "styles": list(plan.styles)}}
    write_json(path, {"schema": SCHEMA, "hash": content_hash(kept), **kept})


def _read_plan(path: Path) -> tuple[dict[str, Any], Plan]:
    """The request and its plan."""
    try:
        value = read_json(path)
        if value["schema"] != SCHEMA:
            raise ValueError(f"expected schema {SCHEMA}, got {value['schema']!r}")
        kept = {"request": value["request"], "plan": value["plan"]}
        if value["hash"] != content_hash(kept):
            raise ValueError("expected the values that were saved, got others")
        request: dict[str, Any] = dict(kept["request"])
        return request, Plan(**{**kept["plan"], **{key: tuple(kept["plan"][key]) for key in ("sites", "styles")}})
    except (LongshiftError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise LongshiftError(
            f"{path} is not a valid plan of a fit: {error}. Choose another --out, or remove that file and run the same "
            "command again; finished runs are kept."
        ) from error
