"""Run one job in this process: hold its folder, train it (from its checkpoint if there is one), keep the outcome."""

from __future__ import annotations

import errno
import gc
import shutil
import traceback
from collections.abc import Callable
from pathlib import Path

import torch

from longshift.data import DataChanged
from longshift.errors import LongshiftError
from longshift.io import FolderInUse, cannot_write, require_inside
from longshift.sweep.jobs import Job
from longshift.sweep.state import Outcome, hold_lease, state_of, write_failure
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

# No space, a limit on file sizes or open files, a folder that is read-only, gone or on a lost network disk.
MACHINE_ERRORS = (
    errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.ENFILE, errno.EACCES, errno.EPERM, errno.EROFS,
    errno.EIO, errno.ESTALE, errno.ENODEV, errno.ENXIO, errno.ENOTCONN,
)  # fmt: skip
LITTLE_SPACE = 64 * 2**20  # bytes: with less, an error of a writer is that of a full disk


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
        The outcome: done (also if the run diverged), failed, stopped, busy or blocked (by a full disk, say).

    Example:
        >>> outcome = execute(job, queue.store, Runtime(device="cpu"), TaskCache())  # doctest: +SKIP
    """
    folder = store.job(job.fingerprint)
    try:
        require_inside(folder, store.path)
    except LongshiftError as error:
        return Outcome("blocked", str(error))
    try:
        with hold_lease(folder) as lost:
            state = state_of(store, job.fingerprint)
            if state in ("done", "failed"):
                return Outcome("done" if state == "done" else "failed", f"it was {state} before")
            _train(job, store, runtime, tasks, lambda: stop() or lost(), track)
        return Outcome("done")
    except Interrupted as error:
        return Outcome("stopped", str(error))
    except FolderInUse:
        return Outcome("busy")
    except DataChanged as error:
        return Outcome("blocked", str(error))
    except Exception as error:  # an error of a method fails its job, not the sweep
        text = str(error) if isinstance(error, LongshiftError) else f"{type(error).__name__}: {error}"
        if _is_full(store.path):  # libraries that write with their own code hide the error number
            return Outcome("blocked", str(cannot_write(folder, OSError(errno.ENOSPC, text))))
        if is_machine_error(error):
            return Outcome("blocked", text)
        try:
            write_failure(store, job.fingerprint, text, traceback.format_exc())
        except LongshiftError as unwritten:
            return Outcome("blocked", str(unwritten))
        return Outcome("failed", text)


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
    resume = RunFolder(folder).resume
    if resume.exists():
        try:
            load_resume(resume, torch.device("cpu"))
        except LongshiftError:  # damaged by a power cut: the job starts again instead of failing
            resume.unlink(missing_ok=True)
    try:
        with open_tracker(track, folder, config, store.path) as tracker:
            tracker.finish(Trainer(config, tasks.get(config), folder, runtime, stop, tracker.row).run())
    finally:
        gc.collect()  # a trainer refers to itself; its memory must be free before the next job
        if device.type == "cuda":
            torch.cuda.empty_cache()


def is_machine_error(error: BaseException | None) -> bool:
    """Whether every other job would fail in the same way.

    Only stated causes count: a method may have handled an error of its own before it failed for another reason.
    """
    while error is not None:
        if isinstance(error, OSError) and error.errno in MACHINE_ERRORS:
            return True
        error = error.__cause__
    return False


def _is_full(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free < LITTLE_SPACE
    except OSError:
        return False
