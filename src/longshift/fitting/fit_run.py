"""`fit`: from your own data to a model, an honest estimate and a report; resumes after an interruption."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from longshift.data import DataChanged, Manifest, what_changed
from longshift.errors import LongshiftError
from longshift.files import write_json
from longshift.fitting.data_summary import Look, look_at
from longshift.fitting.fit_page import write_report
from longshift.fitting.fit_summary import Summary, summarise
from longshift.fitting.model_card import write_card
from longshift.fitting.plan import (
    Job,
    Plan,
    earlier_plan,
    keep_plan,
    longest_steps,
    pace_within,
    seconds_per_step,
    usual_steps,
)
from longshift.fitting.request_checks import Draft, make_draft
from longshift.fitting.site_calibration import learn_new_sites
from longshift.fitting.site_scores import SiteScore, site_score
from longshift.fitting.style_trial import better_style, styles_to_try
from longshift.inference import PLAN, LoadedModel, keep_unseen, load_model, write_knowledge
from longshift.locks import lock_folder
from longshift.progress import Tick
from longshift.settings import NO_TARGET
from longshift.text import counted
from longshift.training import (
    Bar,
    Interrupted,
    OpenDataset,
    ResolvedRun,
    RunFolder,
    Runtime,
    Task,
    Trainer,
    inputs_key,
    make_task,
    no_bar,
    read_result,
    resolve_device,
    training_threads,
    use_threads,
)

Say = Callable[[str], None]
SPARE_BYTES = 200 * 2**20


@dataclass(frozen=True)
class FitResult:
    """The folder of a fit and its results."""

    folder: Path
    look: Look
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
    data: str | Path,
    *,
    target: str | None = None,
    method: str = "ndcl_plus",
    out: str | Path | None = None,
    minutes: float | None = None,
    compare: bool = False,
    steps: int | None = None,
    backbone: str = "auto",
    weights: str | Path | None = None,
    pretrained: bool | None = None,
    image_size: int = 0,
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
    is
    trained with and without that at each held-out site, and the better of the two is used.

    Args:
        data: What `load_dataset` takes: a folder site/class/image, an archive, a table, or a file of vectors.
        target: The only site to hold out; by default each in turn.
        method: Name of the method.
        out: Folder to write; by default fits/NAME.
        minutes: Time limit; the number of steps is chosen to fit it.
        compare: Whether to train ERM, BSoftmax and NDCL-plus as well and report whether the method is better.
        steps: Training steps per run; by default chosen by the size of the data.
        backbone: Network: any timm model, torchvision/NAME, small_conv, mlp, or auto.
        weights: File of starting weights (.safetensors).
        pretrained: Whether to use published weights; by default if they can be downloaded.
        image_size: Pixels per side; 0 chooses it.
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
        LongshiftError: If the data cannot be used; the message says why.

    Example:
        >>> done = longshift.fit("hospitals/", minutes=10)  # doctest: +SKIP
        >>> done.summary.accuracy  # doctest: +SKIP
    """
    runtime = runtime or Runtime()
    dataset = OpenDataset(str(data))
    manifest = dataset.manifest
    folder = Path(out) if out else Path("fits") / folder_name(manifest.name)
    _need_room(folder)
    request = {
        "data": str(data), "target": target, "method": method, "steps": steps, "backbone": backbone,
        "weights": str(weights) if weights else None, "pretrained": pretrained, "image_size": image_size,
        "average": average, "hparams": dict(hparams or {}), "split_seed": split_seed, "train_seed": train_seed,
        "minutes": minutes,
    }  # fmt: skip
    with lock_folder(folder):
        # Report errors in the request before opening every image.
        plan = earlier_plan(folder / PLAN, request)
        gpu = resolve_device(runtime.device).type == "cuda"
        draft = make_draft(dataset, request, gpu) if plan is None else None
        early = _stoppable(bar, stop)
        with early(f"looking at {manifest.name}", len(manifest)) as tick:
            look = look_at(manifest, tick)
        for sentence in (*look.sentences(), *look.warnings()):
            say(sentence)
        tasks = _Tasks(manifest, runtime, early)
        if draft is not None:
            plan = _make_plan(dataset, draft, request, runtime, tasks, compare, folder)
            keep_plan(folder / PLAN, request, plan)
        assert plan is not None
        _check_files(plan, dataset, folder)
        if plan.styles and not plan.style_reason:
            plan = _choose_style(dataset, plan, tasks, runtime, folder, bar, say, stop)
            keep_plan(folder / PLAN, request, plan)
        return _fit(folder, dataset, look, plan, tasks, runtime, compare, bar, say, stop)


def folder_name(name: str) -> str:
    """A folder name for a dataset: keeps letters of any script, so that two names give two folders."""
    return re.sub(r"[\W_]+", "-", name.lower()).strip("-") or "data"


def _fit(
    folder: Path, dataset: OpenDataset, look: Look, plan: Plan, tasks: _Tasks, runtime: Runtime, compare: bool,
    bar: Bar, say: Say, stop: Callable[[], bool],
) -> FitResult:  # fmt: skip
    jobs = plan.jobs(dataset, folder, compare)
    for sentence in filter(None, (plan.reason, plan.training(len(jobs)), plan.style_reason)):
        say(sentence)
    finished = sum(RunFolder(job.folder).finished() for job in jobs)
    if finished:
        say(f"{finished} of the {counted(len(jobs), 'run')} are already finished.")
    results = _train_all(jobs, tasks, runtime, bar, stop, folder)
    _check_selected(jobs, results)
    scores = _scores(jobs, results)
    summary = summarise(look, plan, scores, results[jobs[-1].folder])
    _keep_record(RunFolder(jobs[-1].folder), summary)
    held_out = [job for job in jobs[:-1] if job.method == jobs[-1].method]
    knowledge = learn_new_sites(held_out, jobs[-1].folder, look.sites)
    if knowledge is not None:
        write_knowledge(jobs[-1].folder, knowledge)
    for sentence in summary.sentences:
        say(sentence)
    done = FitResult(folder, look, plan, summary)
    write_report(done.report, look, plan, summary, [(job, results[job.folder]) for job in jobs])
    write_card(done.card, look, plan, summary, results[jobs[-1].folder])
    write_json(
        folder / "fit.json",
        {"schema": 1, "data": plan.base["data"], "style_mixing": plan.style_reason, **summary.to_json()},
    )
    return done


def _check_files(plan: Plan, dataset: OpenDataset, folder: Path) -> None:
    if (plan.fingerprint, plan.version) != (dataset.manifest.fingerprint(), dataset.version):
        raise DataChanged(
            f"The files of {dataset.manifest.name} changed since the fit in {folder} started: "
            f"{what_changed(plan.version, dataset.version)}. Choose another --out, or remove that folder, and run "
            "again."
        )


def _choose_style(
    dataset: OpenDataset, plan: Plan, tasks: _Tasks, runtime: Runtime, folder: Path, bar: Bar, say: Say,
    stop: Callable[[], bool],
) -> Plan:  # fmt: skip
    """Train with each style at each held-out site and keep the better one; its runs are those of the estimate.

    A style with a run that diverged loses to one without.
    """
    tried = {style: plan.with_style(style) for style in plan.styles}
    jobs = {style: [one.job(dataset, plan.method, site, folder) for site in plan.sites] for style, one in tried.items()}
    everything = [job for some in jobs.values() for job in some]
    say(f"Training with and without style mixing first: {counted(len(everything), 'run')}.")
    results = _train_all(everything, tasks, runtime, bar, stop, folder)
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


class _Tasks:
    """Splits of one dataset: it is read and decoded (or passed through the frozen network) once."""

    def __init__(self, manifest: Manifest, runtime: Runtime, bar: Bar) -> None:
        self.manifest, self.runtime, self.bar = manifest, runtime, bar
        self._known: dict[tuple[Any, ...], Task] = {}

    def get(self, job: Job) -> Task:
        key = inputs_key(job.config)
        run = ResolvedRun(job.config, self.manifest)
        self._known[key] = make_task(run, self.runtime, self.bar, self._known.get(key))
        return self._known[key]


def _make_plan(
    dataset: OpenDataset, draft: Draft, request: dict[str, Any], runtime: Runtime, tasks: _Tasks, compare: bool,
    folder: Path,
) -> Plan:  # fmt: skip
    """Choose the number of steps, by the size of the data or by the given time."""
    manifest = dataset.manifest
    usual = request["steps"] or usual_steps(len(manifest), len(manifest.domain_names), draft.config)
    name = draft.config.method_class.info.name
    plan = Plan(
        name, draft.sites, {**draft.base, "steps": usual}, draft.reason, manifest.fingerprint(), dataset.version
    )
    plan = replace(plan, styles=styles_to_try(draft.config, request["hparams"]))
    steps = usual
    if request["minutes"] is not None:
        jobs = plan.jobs(dataset, folder, compare)
        with use_threads(training_threads(jobs[0].config, runtime)):
            per_step = seconds_per_step(jobs[0].config, tasks.get(jobs[0]), runtime)
        asked = request["steps"] is not None
        longest = usual if asked else longest_steps(usual, draft.config)
        pace = pace_within(request["minutes"], len(jobs) + plan.style_runs, per_step, usual, longest, asked)
        steps, plan = pace.steps, replace(plan, pace=pace.words)
    return replace(plan, base={**draft.base, "steps": steps, "eval_every": max(steps // 10, 1)})


def _train_all(
    jobs: list[Job], tasks: _Tasks, runtime: Runtime, bar: Bar, stop: Callable[[], bool], out: Path
) -> dict[Path, dict[str, Any]]:
    results: dict[Path, dict[str, Any]] = {}
    tasks.get(jobs[0])
    # Decoding has a bar of its own, which must not run inside that of training.
    tasks.bar = no_bar
    for job in jobs:
        if RunFolder(job.folder).finished() and (job.site != NO_TARGET or _has_model(RunFolder(job.folder))):
            results[job.folder] = read_result(RunFolder(job.folder), job.config.fingerprint())
    # Count only the remaining steps, so that finished runs do not distort the remaining time.
    left = sum(job.config.steps for job in jobs if job.folder not in results)
    with bar("fitting", left) as tick, use_threads(training_threads(jobs[0].config, runtime)):
        for number, job in enumerate(jobs, start=1):
            if job.folder in results:
                continue
            task = tasks.get(job)
            keep = replace(
                runtime,
                keep_model=job.site == NO_TARGET,
                # Of vectors, only the fit's own method needs them: for what to expect at a new site.
                save_predictions=not task.manifest.vectors or job.method == jobs[-1].method,
            )
            try:
                with lock_folder(job.folder):
                    trainer = Trainer(job.config, task, job.folder, keep, stop)
                    results[job.folder] = trainer.run(_noted(tick, f"{number}/{len(jobs)} {job.label}"), resume=True)
            except Interrupted:
                raise Interrupted(
                    f"stopped in run {number} of {len(jobs)}; everything is saved in {out}. "
                    "Resume with the same command"
                ) from None
    return results


def _check_selected(jobs: list[Job], results: Mapping[Path, dict[str, Any]]) -> None:
    """Raise for a run that diverged before it had weights to select."""
    for job in jobs:
        if not results[job.folder]["selected"]:
            raise LongshiftError(
                f"{job.label}: the loss became infinite or NaN before the first evaluation; "
                f"use a smaller learning rate (--set lr=...) and another --out. The run is in {job.folder}"
            )


def _has_model(final: RunFolder) -> bool:
    """Whether the final model can be loaded; if not, its run counts as unfinished and is made again."""
    try:
        load_model(final.path, device="cpu")
    except LongshiftError:
        final.result.unlink(missing_ok=True)
        return False
    return True


def _stoppable(bar: Bar, stop: Callable[[], bool]) -> Bar:
    """A bar for work before the training, which has nothing to save and can stop anywhere."""

    @contextmanager
    def stoppable(label: str, total: int) -> Iterator[Tick]:
        with bar(label, total) as tick:

            def checked(done: int = 1, note: str = "") -> None:
                if stop():
                    raise Interrupted(
                        f"stopped while {label}; nothing was trained yet. Run the same command to start again"
                    )
                tick(done, note)

            yield checked

    return stoppable


def _noted(tick: Tick, label: str) -> Tick:
    def noted(done: int = 1, note: str = "") -> None:
        tick(done, f"{label} {note}".rstrip())

    return noted


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
