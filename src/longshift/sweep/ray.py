"""The Ray launcher: jobs as tasks on a cluster whose nodes all see the store under the same path.

Ray finds a node with enough processors (and a share of a GPU) for each job. A job whose worker or node is lost resumes
from its checkpoint.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import os
import secrets
import signal
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from longshift.data import cores
from longshift.errors import LongshiftError, UsageError
from longshift.io import write_text
from longshift.registry import VARIABLE, plugin_files
from longshift.sweep.jobs import Job
from longshift.sweep.launch import CancelWatch, Launch, SweepStopped
from longshift.sweep.state import Outcome, write_failure
from longshift.sweep.sweep_folder import StoreFolder
from longshift.sweep.worker import execute
from longshift.training import Runtime, TaskCache, TrackerKind

MOST_LOSSES = 10  # of workers of one job; more than on one machine, because nodes come and go
MOST_IN_A_ROW = 6  # lost workers of several jobs; more than a few nodes lose at once
POLL_SECONDS = 0.2
FIRST_WITH_TOKENS = (2, 52)  # the first version with token authentication
CLUSTER_GONE = "the Ray cluster does not run jobs any more; start it again"


def run_ray(launch: Launch) -> None:
    """Run all jobs of the queue on a cluster; return when none is left, when asked to stop, or in trouble."""
    with _connected(launch.options.address or os.environ.get("RAY_ADDRESS")) as ray:
        driver = Driver(ray, launch)
        try:
            driver.run()
        except (ray.exceptions.RayError, ConnectionError) as error:  # a call of Ray itself: the cluster is gone
            launch.queue.trouble = f"{CLUSTER_GONE} ({_why(error)})"
        finally:
            driver.flag.unlink(missing_ok=True)


def _why(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0]}"


@contextlib.contextmanager
def _connected(address: str | None) -> Iterator[Any]:
    """Ray, connected to the cluster at an address or else to one that is started on this machine."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        try:  # an error at once if nothing listens there: Ray itself waits for minutes
            socket.create_connection((host, int(port)), timeout=10).close()
        except OSError as error:
            raise LongshiftError(f"no Ray cluster at {address}: {error}") from error
    # Ray reads these when it is imported. Without a token, any user of the network could run code in the cluster.
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    if address is None:
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # on any system: listen on 127.0.0.1 only
    try:
        ray = importlib.import_module("ray")
    except ImportError as error:
        raise UsageError("the ray launcher needs Ray, which is not installed; pip install -e '.[ray]'") from error
    if tuple(map(int, ray.__version__.split(".")[:2])) < FIRST_WITH_TOKENS:
        raise UsageError(f"the ray launcher needs Ray 2.52 or later, got {ray.__version__}; pip install -e '.[ray]'")
    if ray.is_initialized():
        yield ray
        return
    files = plugin_files()  # which workers load, too; nodes must have them at the same path
    options: dict[str, Any] = {"env_vars": {VARIABLE: os.pathsep.join(map(str, files))}} if files else {}
    own = {} if address else {"num_cpus": cores(), "include_dashboard": False}
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    before = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address or "local", runtime_env=options, **quiet, **own)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise LongshiftError(f"no Ray cluster at {address or 'this machine'}: {error}") from error
    except SystemExit as error:  # of the handler that Ray installs
        raise SweepStopped("stopped while Ray was starting; no job has begun") from error
    # Ray takes over SIGTERM, in Python and in C++, and ends with an abort. To the sweep, it is the request to stop.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, before)
    try:
        yield ray
    finally:
        ray.shutdown()


class Driver:
    """Gives jobs to the cluster and collects their outcomes."""

    def __init__(self, ray: Any, launch: Launch) -> None:
        self.ray, self.launch, self.queue = ray, launch, launch.queue
        self.runtime = replace(launch.runtime, device="cpu" if launch.options.device == "cpu" else "auto")
        self.store = StoreFolder(launch.queue.store.path.resolve())
        self.flag = self.store.path / f".stop-{uuid.uuid4().hex}"  # which running jobs look for
        self.pending: dict[Any, Job] = {}
        self.losses: list[str] = []  # jobs whose workers were lost since the last job that ended

    def run(self) -> None:
        """Run until no job is left, or the user asks to stop."""
        stopping = False
        while self.pending or (self.queue.open and not stopping):
            if not stopping and (self.launch.stop() or self.queue.trouble):
                stopping = True
                write_text(self.flag, "stop\n")
            if not stopping:
                self._submit()
            self.queue.tell()
            if not self.pending:
                time.sleep(POLL_SECONDS)  # what is left runs elsewhere
                continue
            for task in self.ray.wait(list(self.pending), timeout=POLL_SECONDS)[0]:
                self._collect(task)
        self.queue.tell()

    def _submit(self) -> None:
        """Give the cluster as many jobs as it takes now; one more than fits keeps it busy."""
        options, resources = self.launch.options, self.ray.cluster_resources()
        fits, share = int(resources.get("CPU", 1) // options.threads), 0.0
        if options.device != "cpu" and resources.get("GPU", 0) > 0:
            fits, share = min(fits, int(resources["GPU"] * options.jobs_per_gpu)), 1 / options.jobs_per_gpu
        most = min(max(fits, 1) + 1, options.workers or max(fits, 1) + 1)
        # Retries are ours: only we know whether the job was finished before its worker was lost.
        remote = self.ray.remote(num_cpus=options.threads, num_gpus=share, max_retries=0)(run_task)
        while len(self.pending) < most and (job := self.queue.next_job()) is not None:
            task = remote.remote(job, self.store, self.runtime, options.threads, self.flag, self.launch.track)
            self.pending[task] = job

    def _collect(self, task: Any) -> None:
        job = self.pending.pop(task)
        try:
            self.queue.finish(job, self.ray.get(task))
            self.losses.clear()
        except self.ray.exceptions.RayTaskError as error:  # an error outside the job itself, e.g. on import
            text = str(error).strip() or "no message"
            write_failure(self.store, job.fingerprint, text.splitlines()[-1], text)
            self.queue.finish(job, Outcome("failed", text))
        except self.ray.exceptions.RayError as error:
            self._lost(job, error)

    def _lost(self, job: Job, error: Exception) -> None:
        """A worker is gone: with its node, or by what the job did.

        Only a worker that died by itself counts against its job. When several jobs are lost one after the other and
        none ends, the cluster is gone and no job is to blame: the sweep stops and can be resumed.
        """
        self.losses.append(job.fingerprint)
        known = self.ray.exceptions
        crashed = isinstance(error, (known.WorkerCrashedError, known.OutOfMemoryError))
        if len(self.losses) >= MOST_IN_A_ROW and (len(set(self.losses)) > 1 or not crashed):
            self.queue.trouble = self.queue.trouble or f"{CLUSTER_GONE} ({_why(error)})"
        if crashed and not self.queue.trouble:
            self.queue.died(job, _why(error), MOST_LOSSES)
        else:
            self.queue.finish(job, Outcome("stopped", _why(error)))
            time.sleep(POLL_SECONDS)  # a node that comes back takes a moment


_tasks = functools.cache(TaskCache)  # Ray uses a worker process for many jobs


def run_task(
    job: Job, store: StoreFolder, runtime: Runtime, threads: int, flag: Path, track: TrackerKind | None
) -> Outcome:
    """Run a job on a node."""
    import torch

    torch.set_num_threads(threads)
    stop = CancelWatch(flag)
    if flag.exists():
        return Outcome("stopped", "before it began")
    return execute(job, store, runtime, _tasks(runtime), stop, track)
