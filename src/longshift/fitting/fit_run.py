"""`fit`: from your own data to a model, an honest estimate and a report; resumes after an interruption."""

from __future__ import annotations

import functools
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy.typing as npt

from longshift.data import DataChanged, what_changed
from longshift.errors import LongshiftError
from longshift.files import write_json
from longshift.fitting.array_data import data_path
from longshift.fitting.data_summary import DataSummary, summarize_data
from longshift.fitting.fit_page import write_report
from longshift.fitting.fit_summary import Summary, summarise
from longshift.fitting.job_runner import JobRunner, Results, Say
from longshift.fitting.label_curve import LabelCurve, LabelGain, simulate_labels
from longshift.fitting.model_card import write_card
from longshift.fitting.plan import (
    Job,
    Plan,
    duration,
    earlier_plan,
    keep_plan,
    lengths,
    longest_steps,
    pace_within,
    seconds_per_step,
    usual_steps,
)
from longshift.fitting.request_checks import Draft, make_draft
from longshift.fitting.site_calibration import learn_new_sites
from longshift.fitting.site_scores import SiteScore, site_score
from longshift.fitting.style_trial import better_style, styles_to_try
from longshift.fitting.time_limit import TimeLimit
from longshift.fitting.time_needed import explain, require_time_for_features
from longshift.inference import PLAN_FILE, LoadedModel, keep_unseen, load_model, write_knowledge
from longshift.locks import lock_folder
from longshift.progress import Tick
from longshift.settings import NO_TARGET
from longshift.text import counted
from longshift.training import (
    Bar,
    Interrupted,
    OpenDataset,
    RunConfig,
    RunFolder,
    Runtime,
    no_bar,
    read_model_file,
    read_predictions,
    read_result,
    resolve_device,
    training_threads,
    use_threads,
)

SPARE_BYTES = 200 * 2**20


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


def fit(
    data: str | Path | npt.ArrayLike,
    y: npt.ArrayLike | None = None,
    domains: npt.ArrayLike | None = None,
    *,
    target: str | None = None,
    method: str = "ndcl_plus",
    out: str | Path | None = None,
    minutes: float | None = None,
    compare: bool = False,
    what_if_labelled: bool = False,
    steps: int | None = None,
    backbone: str = "auto",
    weights: str | Path | None = None,
    pretrained: bool | None = None,
    image_size: int = 0,
    trainable: Literal["all", "head"] | None = None,
    head: Literal["mlp", "linear"] = "mlp",
    views: int = 1,
    average: Literal["none", "ema", "swa"] = "none",
    hparams: Mapping[str, Any] | None = None,
    split_seed: int = 0,
    train_seed: int = 0,
    runtime: Runtime | None = None,
    bar: Bar = no_bar,
    say: Say = lambda text: None,
    stop: Callable[[], bool] = lambda: False,
) -> FitResult:
    """Train on all sites of a dataset after holding out each in turn for an honest estimate.

    Everything is written to a folder; the same call resumes an interrupted fit. If the method mixes image styles, it
    is trained with and without that at each held-out site, and the better of the two is used.

    Args:
        data: What `load_dataset` takes: a folder site/class/image, an archive, a table, or a file of vectors.
            Or an array of vectors (N, length); it is kept in the folder.
        y: The class of each row of an array.
        domains: The site of each row of an array.
        target: The only site to hold out; by default each in turn.
        method: Name of the method.
        out: Folder to write; by default fits/NAME.
        minutes: Time limit from the call to the report; the number of steps is chosen to fit it. A fit that resumes
            counts the time of its finished runs.
        compare: Whether to train ERM, BSoftmax and NDCL-plus as well and report whether the method is better.
        what_if_labelled: Whether to simulate, at the held-out sites, what labels of a new site would bring.
        steps: Training steps per run; by default chosen by the size of the data.
        backbone: Network: any timm model, torchvision/NAME, small_conv, mlp, or auto.
        weights: File of starting weights (.safetensors).
        pretrained: Whether to use published weights; by default if they can be downloaded.
        image_size: Pixels per side; 0 chooses it.
        trainable: "all" trains the whole network, "head" only a head on its features, which are computed once; by
            default "head" on a CPU with starting weights.
        head: The head on features or vectors: "mlp" (a hidden layer) or "linear".
        views: Versions of each image that a head is trained on: the image and views - 1 copies.
        average: Also average the weights ("ema" or "swa").
        hparams: Hyper-parameters of the method; {"style": ...} overrides the choice of style mixing.
        split_seed: Seed of the splits.
        train_seed: Seed of training.
        runtime: Device and other options that do not change what is computed.
        bar: Factory of progress bars.
        say: Function for messages.
        stop: Function that is asked after each step whether to stop.

    Returns:
        The result: folder, summary with all numbers, and plan.

    Raises:
        UsageError: If an argument is wrong; nothing was trained.
        TypeError: If the data are neither a path nor arrays.
        LongshiftError: If the data cannot be used; the message says why.

    Example:
        >>> done = longshift.fit("hospitals/", minutes=10)  # doctest: +SKIP
        >>> done.summary.accuracy  # doctest: +SKIP
    """
    runtime, limit = runtime or Runtime(), TimeLimit(minutes)
    path = data_path(data, y, domains, Path(out or "fits/arrays"))
    early = _stoppable(bar, stop)
    dataset = OpenDataset(path, cache=runtime.cache, bar=early)
    manifest = dataset.manifest
    name = folder_name(manifest.name) if isinstance(data, (str, Path)) else "arrays"
    folder = Path(out) if out else Path("fits") / name
    _need_room(folder)
    request = {
        "data": path, "target": target, "method": method, "steps": steps, "backbone": backbone,
        "weights": str(weights) if weights else None, "pretrained": pretrained, "image_size": image_size,
        "trainable": trainable, "head": head, "views": views,
        "average": average, "hparams": dict(hparams or {}), "split_seed": split_seed, "train_seed": train_seed,
        "minutes": minutes,
    }  # fmt: skip
    with lock_folder(folder):
        # Report errors in the request before opening every image.
        plan = earlier_plan(folder / PLAN_FILE, request)
        gpu = resolve_device(runtime.device).type == "cuda"
        draft = make_draft(dataset, request, gpu) if plan is None else None
        with early(f"looking at {manifest.name}", len(manifest)) as tick:
            look = summarize_data(manifest, tick)
        for sentence in (*look.sentences(), *look.warnings()):
            say(sentence)
        keep = functools.partial(keep_plan, folder / PLAN_FILE, request)
        runner = JobRunner(dataset, folder, runtime, limit, (bar, early), say, stop, keep)
        if draft is not None:
            plan = _make_plan(runner, draft, request, compare, gpu)
            keep(plan)
        assert plan is not None
        _check_files(plan, dataset, folder)
        used = _seconds_used(folder) if draft is None and minutes is not None else 0.0
        limit.spend(used)
        if plan.styles and not plan.style_reason:
            plan = _choose_style(runner, plan)
            keep(plan)
        jobs = plan.jobs(dataset, folder, compare)
        for sentence in filter(None, (plan.reason, plan.choice, plan.training(len(jobs)), plan.style_reason)):
            say(sentence)
        finished = sum(RunFolder(job.folder).finished() for job in jobs)
        if finished:
            say(f"{finished} of the {counted(len(jobs), 'run')} are already finished.")
        if used and finished < len(jobs):
            say(f"They took {duration(used)} of the {minutes:g} (--minutes); the rest is for the other runs.")
        results, plan = runner.train(jobs, plan)
        return _finish(runner, look, plan, jobs, results, what_if_labelled)


def folder_name(name: str) -> str:
    """A folder name for a dataset: keeps letters of any script, so that two names give two folders."""
    return re.sub(r"[\W_]+", "-", name.lower()).strip("-") or "data"


def _finish(
    runner: JobRunner, look: DataSummary, plan: Plan, jobs: list[Job], results: Results, what_if_labelled: bool
) -> FitResult:
    """Summarize the results and write report, card and numbers."""
    _check_selected(jobs, results)
    summary = summarise(look, plan, _scores(jobs, results), results[jobs[-1].folder])
    _keep_record(RunFolder(jobs[-1].folder), summary)
    held_out = [job for job in jobs[:-1] if job.method == jobs[-1].method]
    knowledge = learn_new_sites(held_out, jobs[-1].folder, look.sites)
    final = RunFolder(jobs[-1].folder)
    write_knowledge(final.path, knowledge, read_model_file(final.description).weights)
    curve = _label_curve(held_out, final) if what_if_labelled else None
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
            "schema": 1, "data": plan.base["data"], "style_mixing": plan.style_reason, **summary.to_json(),
            **({"label_curve": curve.to_json()} if curve else {}),
        },
    )  # fmt: skip
    return done


def _label_curve(held_out: Sequence[Job], final: RunFolder) -> LabelCurve:
    """What labels of a new site would bring, at each held-out site."""
    if read_model_file(final.description).predictor != "network":
        raise LongshiftError(
            "--what-if-labelled: expected a method whose last layer is linear, got one with layers of its own. Choose "
            "another --method and --out."
        )
    rows: list[LabelGain] = []
    for job in held_out:
        rows += simulate_labels(job.site, read_predictions(RunFolder(job.folder).predictions))
    return LabelCurve(tuple(rows))


def _check_files(plan: Plan, dataset: OpenDataset, folder: Path) -> None:
    if (plan.fingerprint, plan.version) != (dataset.manifest.fingerprint(), dataset.version):
        raise DataChanged(
            f"The files of {dataset.manifest.name} changed since the fit in {folder} started: "
            f"{what_changed(plan.version, dataset.version, dataset.cache)}. Choose another --out, or remove that "
            "folder, and run again."
        )


def _seconds_used(folder: Path) -> float:
    """How long the finished runs of a fit took."""
    runs = [RunFolder(path) for path in (*sorted(folder.glob("sites/*")), folder / "final")]
    return float(sum(read_result(run)["seconds"]["total"] for run in runs if run.finished()))


def _choose_style(runner: JobRunner, plan: Plan) -> Plan:
    """Train with each style at each held-out site and keep the better one; its runs are those of the estimate.

    A style with a run that diverged loses to one without.
    """
    tried = {style: plan.with_style(style) for style in plan.styles}
    jobs = {
        style: [one.job(runner.dataset, plan.method, site, runner.folder) for site in plan.sites]
        for style, one in tried.items()
    }
    everything = [job for some in jobs.values() for job in some]
    runner.say(f"Training with and without style mixing first: {counted(len(everything), 'run')}.")
    results, plan = runner.train(everything, plan)
    diverged = {
        style: [job.site for job in some if results[job.folder]["status"] == "diverged"] for style, some in jobs.items()
    }
    if all(diverged.values()):  # no run can be trusted to the end: those with weights from before are compared
        diverged = {
            style: [job.site for job in some if not results[job.folder]["selected"]] for style, some in jobs.items()
        }
    if all(diverged.values()):
        _check_selected(everything, results)
    scores = {
        style: [site_score(job.site, results[job.folder]["selected"]) for job in some]
        for style, some in jobs.items()
        if not diverged[style]
    }
    return plan.with_style(*better_style(scores, diverged))


def _keep_record(final: RunFolder, summary: Summary) -> None:
    """Keep the accuracy at unseen sites in the model's own files, which may be copied without the rest."""
    try:
        keep_unseen(final.description, summary.unseen)
    except LongshiftError as error:
        raise LongshiftError(f"{error}. Remove {final.path} and run the same command to train it again.") from error


def _make_plan(runner: JobRunner, draft: Draft, request: dict[str, Any], compare: bool, gpu: bool) -> Plan:
    """Choose the number of steps, by the size of the data or by the given time."""
    dataset, manifest = runner.dataset, runner.dataset.manifest
    usual = request["steps"] or usual_steps(len(manifest), len(manifest.domain_names), draft.config)
    name = draft.config.method_class.info.name
    plan = Plan(
        name, draft.sites, {**draft.base, "steps": usual}, draft.reason, manifest.fingerprint(), dataset.version
    )
    plan = replace(plan, styles=styles_to_try(draft.config, request["hparams"]))
    jobs = plan.jobs(dataset, runner.folder, compare)
    count = len(jobs) + plan.style_runs
    plan = replace(plan, choice=_explain(runner, draft, request, len(jobs), gpu))
    steps = usual
    if request["minutes"] is not None:
        if draft.config.frozen:
            require_time_for_features(draft.config, manifest, runner.limit.left, runner.runtime)
        with use_threads(training_threads(jobs[0].config, runner.runtime)):
            per_step = seconds_per_step(jobs[0].config, runner.task(jobs[0]), runner.runtime)
        asked = request["steps"] is not None
        longest = usual if asked else longest_steps(usual, draft.config)
        left, small = runner.limit.left / 60, draft.config.vectors or draft.config.frozen
        pace = pace_within(request["minutes"], count, per_step, usual, longest, asked, left=left, small=small)
        steps, plan = pace.steps, replace(plan, pace=pace.words)
    return replace(plan, base={**draft.base, **lengths(steps)})


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


def _check_selected(jobs: list[Job], results: Mapping[Path, dict[str, Any]]) -> None:
    """Raise for a run that diverged before it had weights to select."""
    for job in jobs:
        if not results[job.folder]["selected"]:
            raise LongshiftError(
                f"{job.label}: the loss became infinite or NaN before the first evaluation; "
                f"use a smaller learning rate (--set lr=...) and another --out. The run is in {job.folder}"
            )


def _stoppable(bar: Bar, stop: Callable[[], bool]) -> Bar:
    """A bar for work before the training, which has nothing to save and can stop anywhere."""

    @contextmanager
    def stoppable(label: str, total: int) -> Iterator[Tick]:
        with bar(label, total) as tick:

            def checked(done: int = 1, note: str = "") -> None:
                if stop():
                    raise Interrupted(
                        f"stopped while {label}; nothing was trained yet. Run the same command to continue"
                    )
                tick(done, note)

            yield checked

    return stoppable


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


def _need_room(folder: Path) -> None:
    """Check the free disk space before a fit starts."""
    place = folder.resolve()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if free < SPARE_BYTES:
        raise LongshiftError(
            f"Expected at least {SPARE_BYTES / 2**20:.0f} MiB of free space in {place}, got {free / 2**20:.0f}. Free "
            "some space or choose another --out"
        )
