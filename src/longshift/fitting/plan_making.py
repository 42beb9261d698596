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
from longshift.fitting.time_needed import explain, require_time_for_features
from longshift.text import counted
from longshift.training import RunConfig, training_threads, use_threads


def make_plan(runner: JobRunner, draft: Draft, request: dict[str, Any], compare: bool, gpu: bool) -> Plan:
    """Choose the number of steps, by the size of the data or by the given time."""
    dataset, manifest = runner.dataset, runner.dataset.manifest
    usual = request["steps"] or usual_steps(len(manifest), len(manifest.domain_names), draft.config)
    name = draft.config.method_class.info.name
    plan = Plan(
        name, draft.sites, {**draft.base, "steps": usual}, draft.reason, manifest.fingerprint(), dataset.version
    )
    given = request["hparams"]
    plan = replace(plan, styles=styles_to_try(draft.config, given), style_reason=untried_reason(draft.config, given))
    jobs = plan.jobs(dataset, runner.folder, compare)
    count = len(jobs) + plan.style_runs
    plan = replace(plan, choice=_explain(runner, draft, request, len(jobs), gpu))
    steps = usual
    if request["minutes"] is not None:
        if draft.config.frozen:
            require_time_for_features(draft.config, manifest, runner.limit.left, runner.runtime)
        per_step = _seconds_per_step(runner, jobs, plan.style_runs)
        asked = request["steps"] is not None
        longest = usual if asked else longest_steps(usual, draft.config)
        left, small = runner.limit.left / 60, draft.config.vectors or draft.config.frozen
        pace = pace_within(request["minutes"], count, per_step, usual, longest, asked, left=left, small=small)
        steps, plan = pace.steps, replace(plan, pace=pace.words)
    return replace(plan, base={**draft.base, **lengths(steps)})


def _seconds_per_step(runner: JobRunner, jobs: list[Job], style_runs: int) -> float:
    """The mean over all runs: with `compare`, each method is timed, because their steps take different times."""
    kinds = {job.method: job for job in reversed(jobs)}
    counts = Counter(job.method for job in jobs)
    counts[jobs[-1].method] += style_runs
    with use_threads(training_threads(jobs[0].config, runner.runtime)):
        found = {name: seconds_per_step(job.config, runner.task(job), runner.runtime) for name, job in kinds.items()}
    return sum(counts[name] * seconds for name, seconds in found.items()) / sum(counts.values())


def _explain(runner: JobRunner, draft: Draft, request: dict[str, Any], jobs: int, gpu: bool) -> str:
    """Why the whole network or only a head is trained, with the time of both; "" if there is no choice."""
    config, manifest = draft.config, runner.dataset.manifest
    if manifest.vectors or not (config.weights or config.pretrained):
        return ""
    if request["trainable"]:
        why = "as requested"
    else:
        why = "because this machine has a GPU" if gpu else "because this machine has no GPU"
    changed = {"trainable": "all" if config.frozen else "head", "head": "mlp", "views": 1}
    try:
        other: RunConfig | None = make_draft(runner.dataset, {**request, **changed}, gpu).config
    except LongshiftError:  # such as a style that only one of both can have
        other = None
    runs: dict[str, int] = {
        kind.trainable: jobs + max(len(styles_to_try(kind, request["hparams"])) - 1, 0) * len(draft.sites)
        for kind in (config, *([other] if other else []))
    }
    return explain(config, other, manifest, runs, why, runner.runtime)


def choose_style(runner: JobRunner, plan: Plan, compare: bool) -> Plan:
    """Train with each style at each held-out site and keep the better one; its runs are those of the estimate.

    A style with a run that diverged loses to one without.
    """
    tried = {style: plan.with_style(style) for style in plan.styles}
    everything = [
        one.job(runner.dataset, plan.method, site, runner.folder) for site in plan.sites for one in tried.values()
    ]
    later = len(plan.jobs(runner.dataset, runner.folder, compare)) - len(plan.sites)
    runner.say(f"Training with and without style mixing first: {counted(len(everything), 'run')}.")
    results, plan = runner.train(everything, plan, later)
    jobs = {style: everything[index :: len(tried)] for index, style in enumerate(tried)}
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
