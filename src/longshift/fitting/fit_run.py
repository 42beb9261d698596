"""`fit`: from your own data to a model, an honest estimate and a report; resumes after an interruption."""

from __future__ import annotations

import functools
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy.typing as npt

from longshift.data import DataChanged, what_changed
from longshift.errors import LongshiftError
from longshift.fitting.array_data import data_path
from longshift.fitting.data_summary import summarize_data
from longshift.fitting.fit_results import FitResult, write_results
from longshift.fitting.job_runner import JobRunner, Say
from longshift.fitting.plan import Plan, earlier_plan, keep_plan
from longshift.fitting.plan_making import choose_style, make_plan
from longshift.fitting.request_checks import make_draft
from longshift.fitting.style_trial import trial_sentence
from longshift.fitting.time_limit import TimeLimit
from longshift.inference import FINAL_FOLDER, PLAN_FILE
from longshift.io import lock_folder
from longshift.progress import Bar, Tick, no_bar
from longshift.text import agree, counted, duration
from longshift.training import Interrupted, OpenDataset, RunFolder, Runtime, read_result, resolve_device

SPARE_BYTES = 200 * 2**20


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
    what_if_labeled: bool = False,
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
    style: Mapping[str, Any] | None = None,
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
        compare: Whether to train ERM, BSoftmax and NDCL-plus as well and report whether the method is better. Once
            done, later calls for the same folder keep the comparison.
        what_if_labeled: Whether to simulate, at the held-out sites, how much labels of a new site would help. Later
            calls for the same folder keep it.
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
        hparams: Hyper-parameters of the method.
        style: Style mixing, such as {"mix": "none"}; {"mix": ...} overrides the choice of the fit.
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
        "average": average, "hparams": dict(hparams or {}), "style": dict(style) if style else None,
        "split_seed": split_seed, "train_seed": train_seed,
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
        times: list[str] = []
        if draft is not None:
            plan, times = make_plan(runner, draft, request, compare, gpu)
            keep(plan)
        assert plan is not None
        if draft is None:
            for sentence in plan.network:
                say(sentence)
        _check_files(plan, dataset, folder)
        # What is finished stays in the results of a later command that does not ask for it again.
        compare, what_if_labeled = compare or plan.compared, what_if_labeled or plan.what_if_labeled
        used, resumed = 0.0, draft is None and minutes is not None
        if resumed and RunFolder(folder / FINAL_FOLDER).finished():
            limit.lift()  # what `compare` adds later is as long as the runs that it is compared with
        elif resumed:
            used = _seconds_used(folder)
            limit.spend(used)
        jobs = plan.jobs(dataset, folder, compare)
        # Why styles are mixed is said with the results, of which it is a part.
        for sentence in (plan.training(len(jobs)), *times):
            say(sentence)
        if trying := bool(plan.styles and not plan.style_reason):
            say(trial_sentence(len(plan.sites)))
        folders = {job.folder for job in (*jobs, *plan.trial(dataset, folder))}
        finished = sum(RunFolder(path).finished() for path in folders)
        if finished:
            say(f"{finished} of the {counted(len(folders), 'run')} {agree(finished, 'is', 'are')} already finished.")
        if minutes is not None and used and finished < len(folders):
            took = f"Finished runs took {duration(used)} of {duration(60 * minutes)}"
            say(f"{took}; the rest is for the other runs.")
        if trying:
            plan = choose_style(runner, plan, compare)
            keep(plan)
            jobs = plan.jobs(dataset, folder, compare)
        results, plan = runner.train(jobs, plan, earlier=plan.style_runs)
        if (compare, what_if_labeled) != (plan.compared, plan.what_if_labeled):
            plan = replace(plan, compared=compare, what_if_labeled=what_if_labeled)
            keep(plan)
        return write_results(runner, look, plan, jobs, results)


def folder_name(name: str) -> str:
    """A folder name for a dataset: keeps letters of any script, so that two names give two folders."""
    return re.sub(r"[\W_]+", "-", name.lower()).strip("-") or "data"


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
