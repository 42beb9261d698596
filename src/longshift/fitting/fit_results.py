"""The result of a fit: numbers of all runs, written as report, model card and JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from longshift.errors import LongshiftError
from longshift.fitting.data_summary import DataSummary
from longshift.fitting.fit_page import write_report
from longshift.fitting.fit_summary import Summary, summarize
from longshift.fitting.job_runner import JobRunner, Results
from longshift.fitting.label_curve import LabelCurve, LabelGain, simulate_labels
from longshift.fitting.model_card import write_card
from longshift.fitting.plan import Job, Plan
from longshift.fitting.site_calibration import learn_new_sites
from longshift.fitting.site_scores import SiteScore, site_score
from longshift.inference import LoadedModel, keep_unseen, load_model, write_knowledge
from longshift.io import write_json
from longshift.settings import NO_TARGET
from longshift.training import RunFolder, read_model_file, read_predictions


@dataclass(frozen=True)
class FitResult:
    """The folder of a fit and its results."""

    folder: Path
    look: DataSummary
    plan: Plan
    summary: Summary

    @property
    def report(self) -> Path:
        """The HTML page."""
        return self.folder / "report.html"

    @property
    def card(self) -> Path:
        """The model card."""
        return self.folder / "MODEL_CARD.md"

    def model(self, device: str = "auto") -> LoadedModel:
        """The final model."""
        return load_model(self.folder, device=device)


def write_results(runner: JobRunner, look: DataSummary, plan: Plan, jobs: list[Job], results: Results) -> FitResult:
    """Summarize the results and write report, card and numbers."""
    check_selected(jobs, results)
    summary = summarize(look, plan, _scores(jobs, results), results[jobs[-1].folder])
    _keep_record(RunFolder(jobs[-1].folder), summary)
    held_out = [job for job in jobs[:-1] if job.method == jobs[-1].method]
    knowledge = learn_new_sites(held_out, jobs[-1].folder, look.sites)
    final = RunFolder(jobs[-1].folder)
    write_knowledge(final.path, knowledge, read_model_file(final.description).weights)
    curve = _label_curve(held_out, final) if plan.what_if_labeled else None
    if curve and (sentence := curve.sentence()):
        summary = replace(summary, sentences=(*summary.sentences, sentence))
    for sentence in summary.sentences:
        runner.say(sentence)
    done = FitResult(runner.folder, look, plan, summary)
    write_report(done.report, look, plan, summary, [(job, results[job.folder]) for job in jobs], curve)
    write_card(done.card, look, plan, summary, results[jobs[-1].folder])
    write_json(
        runner.folder / "fit.json",
        {
            "schema": 1, "data": plan.base["data"],
            "steps": {
                "held_out": {site: plan.steps_at(site) for site in plan.sites}, "final": plan.steps_at(NO_TARGET),
            },
            **summary.to_json(),
            **({"label_curve": curve.to_json()} if curve else {}),
        },
    )  # fmt: skip
    return done


def _label_curve(held_out: Sequence[Job], final: RunFolder) -> LabelCurve:
    """How much labels of a new site would help, at each held-out site."""
    if read_model_file(final.description).predictor != "network":
        raise LongshiftError(
            "--what-if-labeled: expected a method whose last layer is linear, got one with layers of its own. Choose "
            "another --method and --out."
        )
    rows: list[LabelGain] = []
    for job in held_out:
        rows += simulate_labels(job.site, read_predictions(RunFolder(job.folder).predictions))
    return LabelCurve(tuple(rows))


def _keep_record(final: RunFolder, summary: Summary) -> None:
    """Keep the accuracy at unseen sites in the model's own files, which may be copied without the rest."""
    try:
        keep_unseen(final.description, summary.unseen)
    except LongshiftError as error:
        raise LongshiftError(f"{error}. Remove {final.path} and run the same command to train it again.") from error


def check_selected(jobs: list[Job], results: Mapping[Path, dict[str, Any]]) -> None:
    """Raise for a run that diverged before it had weights to select."""
    for job in jobs:
        if not results[job.folder]["selected"]:
            raise LongshiftError(
                f"{job.label}: the loss became infinite or NaN before the first evaluation; "
                f"use a smaller learning rate (--set lr=...) and another --out. The run is in {job.folder}"
            )


def _scores(jobs: list[Job], results: Mapping[Path, dict[str, Any]]) -> dict[str, list[SiteScore]]:
    """Scores by the printed name of the model: "NDCL", "NDCL + EMA", "ERM"."""
    scores: dict[str, list[SiteScore]] = {}
    for job in jobs:
        if job.site == NO_TARGET:
            continue
        title, result = job.config.method_class.info.title, results[job.folder]
        scores.setdefault(title, []).append(site_score(job.site, result["selected"]))
        if result.get("averaged"):
            name = f"{title} + {job.config.average.upper()}"
            scores.setdefault(name, []).append(site_score(job.site, result["averaged"]))
    return scores
