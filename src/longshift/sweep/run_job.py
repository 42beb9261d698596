"""Run one job in this process: claim it, train it (from its checkpoint if there is one), keep the outcome."""

from __future__ import annotations

import contextlib
import errno
import gc
import shutil
import traceback
from collections.abc import Callable
from pathlib import Path

import torch

from longshift.data import DataChanged
from longshift.errors import LongshiftError
from longshift.io import FolderInUse, cannot_write, lock_folder
from longshift.sweep import job_claims as claims
from longshift.sweep.job_store import FINISHED, Outcome, quarantine, record_finished, state_of, write_failure
from longshift.sweep.jobs import Job
from longshift.sweep.sweep_folder import StoreFolder
from longshift.training import (
    Interrupted,
    RunFolder,
    Runtime,
    TaskCache,
    TrackerKind,
    Trainer,
    load_resume,
    open_tracker,
    resolve_device,
)


def execute(
    job: Job,
    store: StoreFolder,
    runtime: Runtime,
    tasks: TaskCache,
    stop: Callable[[], bool] = lambda: False,
    track: TrackerKind | None = None,
) -> Outcome:
    """Run a job of a sweep unless it is finished, has failed, or runs elsewhere.

    Args:
        job: The job.
        store: The store that keeps its folder.
        runtime: Device and other options that do not change what is computed.
        tasks: Cache of data that jobs share.
        stop: Function that is asked after each step whether to stop.
        track: Tracker to write to.

    Returns:
        The outcome: done (also if the run diverged), failed, stopped, busy, full (disk) or changed (data).

    Example:
        >>> outcome = execute(job, queue.store, Runtime(device="cpu"), TaskCache())  # doctest: +SKIP
    """
    try:
        claim = claims.take(store.claim(job.fingerprint))
    except OSError as error:
        return _trouble(error, job, store)
    if claim is None:
        return Outcome("busy")
    with claim:
        quarantine(store, job.fingerprint)
        state = state_of(store, job.fingerprint)
        if state in FINISHED:
            return Outcome("done", "it was finished before")
        if state == "failed":
            return Outcome("failed", "it failed before")
        try:
            with lock_folder(store.job(job.fingerprint)):  # against `longshift train --resume`, which takes no claim
                _train(job, store, runtime, tasks, stop, track)
            record_finished(store, job.fingerprint)
        except Interrupted as error:
            return Outcome("stopped", str(error))
        except FolderInUse:
            return Outcome("busy")
        except Exception as error:  # an error of a method fails its job, not the sweep
            return _trouble(error, job, store)
        return Outcome("done")


def _train(
    job: Job,
    store: StoreFolder,
    runtime: Runtime,
    tasks: TaskCache,
    stop: Callable[[], bool],
    track: TrackerKind | None,
) -> None:
    config = job.config
    if config.fingerprint() != job.fingerprint:
        raise LongshiftError(
            f"the plan names this run {job.fingerprint[:16]}, but here it is {config.fingerprint()[:16]}: "
            "this machine has another version of longshift or of the method"
        )
    folder = store.job(job.fingerprint)
    device = resolve_device(runtime.device)
    if device.type == "cuda":
        torch.cuda.set_device(device)
        torch.cuda.reset_peak_memory_stats(device)
    _drop_damaged_checkpoint(RunFolder(folder).resume)
    tracker = open_tracker(track, folder, config, store.path) if track else contextlib.nullcontext()
    try:
        with tracker as tracking:
            on_row = tracking.row if tracking else lambda row: None
            result = Trainer(config, tasks.get(config), folder, runtime, stop, on_row).run(resume=True)
            if tracking:
                tracking.finish(result)
    finally:
        gc.collect()  # a trainer refers to itself; its memory must be free before the next job
        if device.type == "cuda":
            torch.cuda.empty_cache()


def _drop_damaged_checkpoint(path: Path) -> None:
    """Remove a checkpoint that a power cut damaged: the job starts again instead of failing."""
    if path.exists():
        try:
            load_resume(path, torch.device("cpu"))
        except LongshiftError:
            path.unlink(missing_ok=True)


def _trouble(error: Exception, job: Job, store: StoreFolder) -> Outcome:
    if disk_full(error, store.path):
        cause = OSError(errno.ENOSPC, "disk full")
        return Outcome("full", str(cannot_write(store.job(job.fingerprint), cause)))
    text = str(error) if isinstance(error, LongshiftError) else f"{type(error).__name__}: {error}"
    if isinstance(error, DataChanged):
        return Outcome("changed", text)
    if not_to_blame(error):
        return Outcome("full", text)
    try:
        write_failure(store, job.fingerprint, text, traceback.format_exc())
    except LongshiftError as unwritten:
        return Outcome("full", str(unwritten))
    return Outcome("failed", text)


# No space, a limit on file sizes or open files, a folder that is read-only, gone or on a lost network disk.
_BLOCKED = (
    errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.ENFILE, errno.EACCES, errno.EPERM, errno.EROFS,
    errno.EIO, errno.ESTALE, errno.ENODEV, errno.ENXIO, errno.ENOTCONN,
)  # fmt: skip


def not_to_blame(error: BaseException | None) -> bool:
    """Whether every other job would fail in the same way: the machine is in trouble, not the job.

    Only stated causes count: a method may have handled an error of its own before it failed for another reason.
    """
    while error is not None:
        if isinstance(error, OSError) and error.errno in _BLOCKED:
            return True
        error = error.__cause__
    return False


def disk_full(error: BaseException | None, folder: Path) -> bool:
    """Whether an error comes from a full disk. Libraries that write with their own code hide the error number."""
    words = ("No space left", "PytorchStreamWriter", "unexpected pos", "file write failed", "disk is full")
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        if "No space left" in str(error) or (any(word in str(error) for word in words) and _no_room(folder)):
            return True
        error = error.__cause__ or error.__context__
    return False


def _no_room(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free < 64 * 2**20
    except OSError:
        return False
