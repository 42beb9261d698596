"""Make the plan of a fit: how many steps, which part of the network, and whether styles are mixed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from longshift.errors import LongshiftError
from longshift.fitting.fit_results import check_selected
from longshift.fitting.job_runner import JobRunner
from longshift.fitting.plan import Job, Plan, lengths, longest_steps, pace_within, seconds_per_step, usual_steps
from longshift.fitting.request_checks import Draft, make_draft
from longshift.fitting.site_scores import site_score
from longshift.fitting.style_trial import better_style, styles_to_try, untried_reason
from longshift.fitting.time_needed import require_time_for_features, time_all_runs
from longshift.training import RunConfig, training_threads, use_threads


def make_plan(
    runner: JobRunner, draft: Draft, request: dict[str, Any], compare: bool, gpu: bool
) -> tuple[Plan, list[str]]:
    """Choose the number of steps, by the size of the data or by the given time; also return what to say on the time.

    What is trained is said at once.
    """
    dataset, manifest = runner.dataset, runner.dataset.manifest
    usual = request["steps"] or usual_steps(len(manifest), len(manifest.domain_names), draft.config)
    name = draft.config.method_class.info.name
    plan = Plan(
        name, draft.sites, {**draft.base, "steps": usual}, draft.reason, manifest.fingerprint(), dataset.version
    )
    given = request["style"] or {}
    plan = replace(plan, styles=styles_to_try(draft.config, given), style_reason=untried_reason(draft.config, given))
    jobs = plan.jobs(dataset, runner.folder, compare)
    count = len(jobs) + plan.style_runs
    plan = replace(plan, choice=_what_is_trained(draft, request, gpu))
    for sentence in plan.network:  # before anything is measured: the features of all images may take minutes
        runner.say(sentence)
    steps, times = usual, _times(runner, draft, request, len(jobs), gpu)
    if request["minutes"] is not None:
        if draft.config.frozen:
            require_time_for_features(draft.config, manifest, runner.limit.left, runner.runtime)
        per_step = _seconds_per_step(runner, jobs, plan.style_runs)
        asked = request["steps"] is not None
        longest = usual if asked else longest_steps(usual, draft.config)
        left, small = runner.limit.left / 60, draft.config.vectors or draft.config.frozen
        pace = pace_within(request["minutes"], count, per_step, usual, longest, asked, left=left, small=small)
        steps, plan = pace.steps, replace(plan, pace=pace.words)
        times = [pace.takes, *times]
    return replace(plan, base={**draft.base, **lengths(steps)}), times


def _seconds_per_step(runner: JobRunner, jobs: list[Job], style_runs: int) -> float:
    """The mean over all runs: with `compare`, each method is timed, because their steps take different times."""
    kinds = {job.method: job for job in reversed(jobs)}
    counts = Counter(job.method for job in jobs)
    counts[jobs[-1].method] += style_runs
    with use_threads(training_threads(jobs[0].config, runner.runtime)):
        found = {name: seconds_per_step(job.config, runner.task(job), runner.runtime) for name, job in kinds.items()}
    return sum(counts[name] * seconds for name, seconds in found.items()) / sum(counts.values())


def _what_is_trained(draft: Draft, request: dict[str, Any], gpu: bool) -> str:
    """Whether the whole network or only a head is trained, and why; "" if there is no choice."""
    if not _has_choice(draft.config):
        return ""
    if request["trainable"]:
        why = "as requested"
    else:
        why = "because this machine has a GPU" if gpu else "because this machine has no GPU"
    what = "Only a head on the features of the network" if draft.config.frozen else "The whole network"
    return f"{what} is trained, {why}."


def _has_choice(config: RunConfig) -> bool:
    """Whether there are features to train a head on."""
    return not config.vectors and bool(config.weights or config.pretrained)


def _times(runner: JobRunner, draft: Draft, request: dict[str, Any], jobs: int, gpu: bool) -> list[str]:
    """How long all runs take, and how long if the other part of the network was trained; nothing on vectors."""
    config, manifest = draft.config, runner.dataset.manifest
    if config.vectors:
        return []

    def needed(kind: RunConfig) -> str:
        runs = jobs + max(len(styles_to_try(kind, request["style"] or {})) - 1, 0) * len(draft.sites)
        return time_all_runs(kind, manifest, runs, request["steps"], runner.runtime)

    said = [] if request["minutes"] is not None else [f"This takes {needed(config)}."]
    if not _has_choice(config):
        return said
    part = "all" if config.frozen else "head"
    try:
        changed = {"trainable": part, "head": "mlp", "views": 1}
        other = make_draft(runner.dataset, {**request, **changed}, gpu).config
    except LongshiftError:  # such as a style that only one of both can have
        return said
    what = "The whole network" if config.frozen else "Only a head on its features"
    return [*said, f"{what} would take {needed(other)} (--trainable {part})."]


def choose_style(runner: JobRunner, plan: Plan, compare: bool) -> Plan:
    """Train with each style at each held-out site and keep the better one; its runs are those of the estimate.

    A style with a run that diverged loses to one without.
    """
    everything = plan.trial(runner.dataset, runner.folder)
    later = len(plan.jobs(runner.dataset, runner.folder, compare)) - len(plan.sites)
    results, plan = runner.train(everything, plan, later=later)
    jobs = {style: everything[index :: len(plan.styles)] for index, style in enumerate(plan.styles)}
    diverged = {
        style: [job.site for job in some if results[job.folder]["status"] == "diverged"] for style, some in jobs.items()
    }
    if all(diverged.values()):  # no run can be trusted to the end: those with weights from before are compared
        diverged = {
            style: [job.site for job in some if not results[job.folder]["selected"]] for style, some in jobs.items()
        }
    if all(diverged.values()):
        check_selected(everything, results)
    scores = {
        style: [site_score(job.site, results[job.folder]["selected"]) for job in some]
        for style, some in jobs.items()
        if not diverged[style]
    }
    one_source = len(runner.dataset.manifest.domain_names) == 2
    return plan.with_style(*better_style(scores, diverged, one_source))
