"""`longshift.fit`: from your own data to a model, an honest estimate and a report; resumes after an interruption."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy.typing as npt

from longshift.data import DataChanged, ImageSamples, Manifest, what_changed
from longshift.errors import LongshiftError
from longshift.fitting.baselines import baseline_scores
from longshift.fitting.card import write_card
from longshift.fitting.data_summary import named_lines, summarize_data
from longshift.fitting.facts import (
    FitSummary,
    Training,
    choose_method,
    choose_style,
    held_out_scores,
    require_weights,
    summarize,
    untried_style,
)
from longshift.fitting.page import write_report
from longshift.fitting.plan import FitJob, FitPlan, earlier_plan, keep_plan, make_plan
from longshift.fitting.request import EXPECTED, FitRequest, keep_samples, make_request, open_data
from longshift.fitting.site_calibration import learn_new_sites
from longshift.fitting.suggest import LabelCurve, simulate_labels
from longshift.inference import LEVEL, PLAN_FILE, LoadedModel, keep_unseen, load_model, write_knowledge
from longshift.io import lock_folder, write_json
from longshift.progress import Bar, Tick, no_bar
from longshift.settings import NO_TARGET, read_recipe
from longshift.templates import render
from longshift.training import (
    Interrupted,
    OpenDataset,
    RunFolder,
    Runtime,
    Task,
    Trainer,
    inputs_key,
    make_task,
    read_model_file,
    read_predictions,
    read_result,
    resolve_device,
    training_threads,
    use_threads,
)

FEWEST_STEPS = 20  # of a run that is out of time; with fewer, nothing is learned
LONGEST_NAME = 80  # characters of a dataset in the name of a folder
clock = time.monotonic
Results = dict[Path, dict[str, Any]]
Say = Callable[[str], None]


@dataclass(frozen=True)
class FitResult:
    """The folder of a fit and its results."""

    folder: Path
    plan: FitPlan
    summary: FitSummary

    @property
    def report(self) -> Path:
        """The HTML page."""
        return self.folder / "report.html"

    @property
    def card(self) -> Path:
        """The model card."""
        return self.folder / "MODEL_CARD.md"

    def to_text(self) -> str:
        """What `longshift fit` prints at the end: the numbers, and what was written."""
        return render(
            "longshift.fitting", "fit_done.txt.j2", done=self, summary=self.summary, worst=self.summary.worst_site,
            level=LEVEL, argument=shlex.quote(str(self.folder)),
        )  # fmt: skip

    def model(self, device: str = "auto") -> LoadedModel:
        """The final model."""
        return load_model(self.folder, device=device)


def fit(
    data: str | Path | npt.ArrayLike | ImageSamples,
    y: npt.ArrayLike | None = None,
    domains: npt.ArrayLike | None = None,
    *,
    out: str | Path | None = None,
    runtime: Runtime | None = None,
    bar: Bar = no_bar,
    say: Say = lambda text: None,
    stop: Callable[[], bool] = lambda: False,
    **options: Any,
) -> FitResult:
    """Train on all sites of a dataset after holding out each in turn for an honest estimate.

    Everything is written to a folder; the same call resumes an interrupted fit. If the method mixes image styles, it
    is trained with and without that at each held-out site, and the better of the two is used.

    Args:
        data: What `load_dataset` takes: a folder site/class/image, an archive, a table, or a file of vectors.
            Or a PyTorch `Dataset` of (image, label, domain), or an array of vectors (N, length); both are kept in the
            folder.
        y: The class of each row of an array.
        domains: The site of each row of an array.
        out: Folder to write; by default fits/NAME.
        runtime: Device and other options that do not change what is computed.
        bar: Factory of progress bars.
        say: Function for messages.
        stop: Function that is asked after each step whether to stop.
        **options: The fields of `longshift.fitting.FitRequest`: target, method, minutes, compare, what_if_labeled,
            steps, network, weights, pretrained, image_size, trainable, head, views, average, hparams, style,
            split_seed and train_seed.

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
    if isinstance(data, (str, os.PathLike)):
        if y is not None or domains is not None:
            raise TypeError(f"Expected `data` to be {EXPECTED}, got a path with y or domains.")
        request = make_request(data, options)
    else:
        out = out or Path("fits") / "arrays"
        request = make_request(keep_samples(data, y, domains, Path(out)), options)
    return run_fit(request, open_data(request), out, runtime or Runtime(), bar, say, stop)


def run_fit(
    request: FitRequest, manifest: Manifest, out: str | Path | None, runtime: Runtime, bar: Bar, say: Say,
    stop: Callable[[], bool],
) -> FitResult:  # fmt: skip
    """Run a checked request on its data, which are read (`open_data`)."""
    end = None if request.minutes is None else clock() + 60 * request.minutes
    folder = Path(out) if out else Path("fits") / folder_name(manifest.name)
    early = _stoppable(bar, stop)
    dataset = OpenDataset(request.data, manifest, cache=runtime.cache, bar=early)
    with lock_folder(folder):
        # Report errors in the request before opening every image.
        plan = earlier_plan(folder / PLAN_FILE, request)
        if plan is None:
            plan = make_plan(dataset, request, resolve_device(runtime.device).type == "cuda")
        elif (plan.fingerprint, plan.version) != (manifest.fingerprint(), dataset.version):
            raise DataChanged(
                f"The files of {manifest.name} changed since the fit in {folder} started: "
                f"{what_changed(plan.version, dataset.version, dataset.cache)}. Choose another --out, or remove that "
                "folder, and run again."
            )
        # What is finished stays in the results of a later command that does not ask for it again.
        compare = request.compare or plan.compared
        jobs = plan.held_out_jobs(dataset, folder, compare)
        final = plan.final_job(dataset, folder, plan.styles[-1] if plan.styles else "")
        training = Training(
            final.config, len(jobs) + 1, final.config.steps, plan.usual_steps, request.minutes,
            max(len(plan.styles) - 1, 0) * len(plan.sites), plan.unreached, plan.why_trainable,
            tuple(dict.fromkeys(job.config.method_class.info.title for job in jobs if job.method in plan.tried)),
        )  # fmt: skip
        with early(f"looking at {manifest.name}", len(manifest)) as tick:
            look = summarize_data(manifest, tick)
        for sentence in (*look.statements(), *look.warnings()):
            say(sentence)
        for name, value in named_lines("training.txt.j2", training=training):
            say(f"{name}: {value}")
        keep_plan(folder / PLAN_FILE, request, plan)
        runner = JobRunner(dataset, folder, runtime, end, early, say, stop)
        longest = replace(plan, method=plan.tried[-1]).final_job(dataset, folder, "") if plan.tried else final
        with runner.training([*jobs, longest], bar):
            results = runner.train(jobs)
            if plan.tried:
                plan = replace(plan, method=choose_method(plan, jobs, results))
                final = plan.final_job(dataset, folder, "")
            style = untried_style(final.config, request.style_is_chosen)
            if plan.styles:
                style = choose_style(plan, jobs, results, one_source=len(manifest.domain_names) == 2)
                jobs = [job for job in jobs if job.style in ("", style.style)]
                final = plan.final_job(dataset, folder, style.style)
            results |= runner.train([final])
            own = [job for job in jobs if job.method == plan.method]
            baselines = baseline_scores({job.site: runner.task(job) for job in own})
        plan = replace(plan, compared=compare, what_if_labeled=request.what_if_labeled or plan.what_if_labeled)
        keep_plan(folder / PLAN_FILE, request, plan)
        require_weights([*jobs, final], results)
        curve = _label_curve(own, RunFolder(final.folder)) if plan.what_if_labeled else None
        training = replace(
            training, config=final.config, steps=final.config.steps, final_steps=results[final.folder]["steps_done"],
            unvalidated=read_recipe(RunFolder(final.folder).split).unvalidated,
        )  # fmt: skip
        validation = results[final.folder]["selected"]["validation"]["accuracy"]
        scores = held_out_scores(jobs, results) | baselines
        summary = summarize(look, training, scores, validation, style, curve)
        done = FitResult(folder, plan, summary)
        _write_results(done, manifest, own, [*jobs, final], results)
        for sentence in summary.findings:
            say(sentence)
        return done


class JobRunner:
    """Trains the runs of a fit, each in its folder, and resumes what was interrupted.

    Args:
        dataset: Their data.
        folder: Where the fit is kept.
        runtime: Device, threads, cache.
        end: When all runs should be finished, by `clock`; None: no limit.
        early: Shows the progress of the work before the training.
        say: Called with each message.
        stop: Asked after each step whether to stop.
    """

    def __init__(
        self, dataset: OpenDataset, folder: Path, runtime: Runtime, end: float | None, early: Bar, say: Say,
        stop: Callable[[], bool],
    ) -> None:  # fmt: skip
        self.dataset, self.folder, self.runtime, self.end = dataset, folder, runtime, end
        self.say, self.stop = say, stop
        self._early = early
        self._known: dict[tuple[Any, ...], Task] = {}  # one of each kind of inputs
        self._tasks: dict[tuple[str, tuple[Any, ...]], Task] = {}  # by site and kind: methods and styles share it
        self._results: Results = {}
        self._runs = self._steps = 0  # of all runs; of those that are left
        self._tick: Tick = lambda done=1, note="": None

    @contextmanager
    def training(self, jobs: Sequence[FitJob], bar: Bar) -> Iterator[None]:
        """Read the results of finished runs; show one bar over the steps of all others."""
        for job in {inputs_key(job.config): job for job in jobs}.values():
            self.task(job)  # with a bar of its own, which must not run inside that of training
        self._early = no_bar
        for job in jobs:
            if RunFolder(job.folder).finished():
                self._results[job.folder] = read_result(RunFolder(job.folder))
        self._runs, left = len(jobs), [job for job in jobs if job.folder not in self._results]
        if len(left) < len(jobs):
            self.say(f"{len(jobs) - len(left)} of {len(jobs)} runs are already finished.")
        threads = use_threads(training_threads(jobs[0].config, self.runtime))
        self._steps = sum(job.config.steps for job in left)
        with bar("fitting", self._steps) as self._tick, threads:
            yield

    def train(self, jobs: Sequence[FitJob]) -> Results:
        """The results of some of the runs; those that are not finished are trained."""
        for job in jobs:
            if job.folder not in self._results:
                self._results[job.folder] = self._train(job)
            elif self._results[job.folder]["fingerprint"] != job.config.fingerprint():
                raise LongshiftError(f"{job.folder} holds another run. Remove it and run the same command.")
        return {job.folder: self._results[job.folder] for job in jobs}

    def _train(self, job: FitJob) -> dict[str, Any]:
        number = f"{len(self._results) + 1}/{self._runs}"
        keep = replace(self.runtime, keep_model=job.site == NO_TARGET, save_predictions=True)

        def tick(done: int = 1, note: str = "") -> None:
            self._steps -= done
            self._tick(done, f"{number} {job.label} {note}".rstrip())

        try:
            with lock_folder(job.folder):
                trainer = Trainer(
                    job.config, self.task(job), job.folder, keep, self.stop,
                    out_of_time=equal_share(self.end, self._runs - len(self._results)),
                )  # fmt: skip
                result = trainer.run(tick)
        except Interrupted as error:
            raise Interrupted(
                f"stopped in run {len(self._results) + 1} of {self._runs}; everything is saved in {self.folder}. "
                "Resume with the same command"
            ) from error
        # Out of time, or diverged; the last run may also be of another method than the one that was counted.
        last = len(self._results) + 1 == self._runs
        if missing := self._steps if last else job.config.steps - result["steps_done"]:
            tick(missing)
        return result

    def task(self, job: FitJob) -> Task:
        """The data of a job: read and decoded (or passed through the frozen network) once."""
        inputs = inputs_key(job.config)
        if (job.site, inputs) not in self._tasks:
            task = make_task(job.run, self.runtime, self._early, self._known.get(inputs))
            self._known[inputs] = self._tasks[job.site, inputs] = task
        return self._tasks[job.site, inputs]


def equal_share(end: float | None, runs: int) -> Callable[[int], bool]:
    """Whether a run that starts now is out of time: it has an equal share of what is left to `runs` runs."""
    if end is None:
        return lambda step: False
    mine = clock() + (end - clock()) / runs
    return lambda step: step >= FEWEST_STEPS and clock() >= mine


def _write_results(
    done: FitResult, manifest: Manifest, own: Sequence[FitJob], jobs: Sequence[FitJob], results: Results
) -> None:
    """Write report, card and numbers, and what the model's own files keep."""
    final, summary = RunFolder(jobs[-1].folder), done.summary
    try:
        keep_unseen(final.description, summary.unseen)
    except LongshiftError as error:
        raise LongshiftError(f"{error}. Remove {final.path} and run the same command to train it again.") from error
    knowledge = learn_new_sites(own, final.path, summary.data)
    write_knowledge(final.path, knowledge, read_model_file(final.description).weights)
    write_report(done.report, summary, [(job, results[job.folder]) for job in jobs], manifest)
    write_card(done.card, summary, results[final.path], knowledge)
    steps = {job.site: results[job.folder]["steps_done"] for job in own}
    value = {
        "schema": 2,
        "data": done.plan.base["data"],
        "steps": {"held_out": steps, "final": summary.training.final_steps},
    }
    write_json(done.folder / "fit.json", value | summary.to_json())


def _label_curve(held_out: Sequence[FitJob], final: RunFolder) -> LabelCurve:
    """How much labels of a new site would help, at each held-out site."""
    if read_model_file(final.description).predictor != "network":
        raise LongshiftError(
            "--what-if-labeled needs a method whose last layer is linear. Choose another --method and --out."
        )
    found = [simulate_labels(job.site, read_predictions(RunFolder(job.folder).predictions)) for job in held_out]
    return LabelCurve(tuple(row for rows in found for row in rows))


def folder_name(name: str) -> str:
    """A folder name for a dataset: keeps letters of any script, so that two names give two folders."""
    found = re.sub(r"[\W_]+", "-", name.lower()).strip("-") or "data"
    if len(found) <= LONGEST_NAME:
        return found
    return f"{found[: LONGEST_NAME // 4]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _stoppable(bar: Bar, stop: Callable[[], bool]) -> Bar:
    """A bar for work before the training, which has nothing to save and can stop anywhere."""

    @contextmanager
    def stoppable(label: str, total: int) -> Iterator[Tick]:
        with bar(label, total) as tick:

            def checked(done: int = 1, note: str = "") -> None:
                if stop():
                    raise Interrupted(f"stopped while {label}; nothing was trained yet. Resume with the same command")
                tick(done, note)

            yield checked

    return stoppable
