"""The Ray launcher: jobs as tasks on a cluster whose nodes all see the store under the same path.

Ray finds a node with enough processors (and a share of a GPU) for each job. A job whose worker or node is lost resumes
from its checkpoint.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import logging
import os
import secrets
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from longshift.data import cores
from longshift.errors import LongshiftError, UsageError
from longshift.registry import VARIABLE, plugin_files
from longshift.sweep.jobs import Job
from longshift.sweep.launch import Launch, SweepStopped
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
        try:
            Driver(ray, launch).run(launch.stop)
        except (ray.exceptions.RayError, ConnectionError) as error:  # a call of Ray itself: the cluster is gone
            launch.queue.trouble = f"{CLUSTER_GONE} ({type(error).__name__}: {str(error).splitlines()[0]})"


@contextlib.contextmanager
def _connected(address: str | None) -> Iterator[Any]:
    """Ray, connected to the cluster at an address or else to one that is started on this machine."""
    _check_address(address)
    # Ray reads these when it is imported. Without a token, any user of the network could run code in the cluster.
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    if address is None:
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # on any system: listen on 127.0.0.1 only
    ray = import_ray()
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


def import_ray() -> Any:
    """Import Ray, or raise an error with the command that installs it."""
    try:
        ray = importlib.import_module("ray")
    except ImportError as error:
        raise UsageError("the ray launcher needs Ray, which is not installed; pip install -e '.[ray]'") from error
    if tuple(map(int, ray.__version__.split(".")[:2])) < FIRST_WITH_TOKENS:
        raise UsageError(f"the ray launcher needs Ray 2.52 or later, got {ray.__version__}; pip install -e '.[ray]'")
    return ray


def _check_address(address: str | None) -> None:
    """Raise an error at once if nothing listens there: Ray itself waits for minutes."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        try:
            socket.create_connection((host, int(port)), timeout=10).close()
        except OSError as error:
            raise LongshiftError(f"no Ray cluster at {address}: {error}") from error


class Driver:
    """Gives jobs to the cluster and collects their outcomes."""

    def __init__(self, ray: Any, launch: Launch) -> None:
        self.ray, self.job_queue, self.options, self.track = ray, launch.queue, launch.options, launch.track
        self.runtime = dataclasses.replace(launch.runtime, device="cpu" if self.options.device == "cpu" else "auto")
        # The flag lives where this command runs: if that node is lost, so is the command.
        strategies = importlib.import_module("ray.util.scheduling_strategies")
        here = strategies.NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        self.flag = ray.remote(num_cpus=0, scheduling_strategy=here)(StopFlag).remote()
        self.pending: dict[Any, Job] = {}
        self.losses: list[str] = []  # jobs whose workers were lost since the last job that ended

    def run(self, stop: Callable[[], bool]) -> None:
        """Run until no job is left or `stop` is true."""
        stopping = False
        while self.pending or (self.job_queue.open and not stopping):
            if not stopping and (stop() or self.job_queue.trouble):
                stopping = True
                self.flag.ask.remote()
            if not stopping:
                self._launch()
            self.job_queue.tell()
            ready, _ = self.ray.wait(list(self.pending), timeout=POLL_SECONDS) if self.pending else ([], [])
            if not self.pending:
                time.sleep(POLL_SECONDS)  # what is left runs elsewhere
            for task in ready:
                self._collect(task)
        self.job_queue.tell()

    def _room(self) -> int:
        """How many jobs the cluster takes now; one more than fits keeps it busy."""
        resources: Mapping[str, float] = self.ray.cluster_resources()
        fits = int(resources.get("CPU", 1) // self.options.threads)
        if self._gpu_share(resources):
            fits = min(fits, int(resources["GPU"] * self.options.jobs_per_gpu))
        most = max(fits, 1) + 1
        return min(most, self.options.workers or most)

    def _gpu_share(self, resources: Mapping[str, float]) -> float:
        on_gpu = self.options.device != "cpu" and resources.get("GPU", 0) > 0
        return 1 / self.options.jobs_per_gpu if on_gpu else 0.0

    def _launch(self) -> None:
        store, threads = StoreFolder(self.job_queue.store.path.resolve()), self.options.threads
        while len(self.pending) < self._room() and (job := self.job_queue.next_job()) is not None:
            share = self._gpu_share(self.ray.cluster_resources())
            # Retries are ours: only we know whether the job was finished before its worker was lost.
            task = self.ray.remote(num_cpus=threads, num_gpus=share, max_retries=0)(run_task)
            self.pending[task.remote(job, store, self.runtime, threads, self.flag, self.track)] = job

    def _collect(self, task: Any) -> None:
        job = self.pending.pop(task)
        try:
            self.job_queue.finish(job, self.ray.get(task))
            self.losses.clear()
        except self.ray.exceptions.RayTaskError as error:  # an error outside the job itself, e.g. on import
            text = str(error).strip()
            write_failure(self.job_queue.store, job.fingerprint, text.splitlines()[-1] if text else "no message", text)
            self.job_queue.finish(job, Outcome("failed", text))
        except self.ray.exceptions.RayError as error:
            self._lost(job, error)

    def _lost(self, job: Job, error: Exception) -> None:
        """A worker is gone: with its node, or by what the job did.

        Only a worker that died by itself counts against its job. When several jobs are lost one after the other and
        none ends, the cluster is gone and no job is to blame: the sweep stops and can be resumed.
        """
        why = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        self.losses.append(job.fingerprint)
        exceptions = self.ray.exceptions
        crashed = isinstance(error, (exceptions.WorkerCrashedError, exceptions.OutOfMemoryError))
        if len(self.losses) >= MOST_IN_A_ROW and (len(set(self.losses)) > 1 or not crashed):
            self.job_queue.trouble = self.job_queue.trouble or f"{CLUSTER_GONE} ({why})"
        if crashed and not self.job_queue.trouble:
            self.job_queue.died(job, why, MOST_LOSSES)
        else:
            self.job_queue.finish(job, Outcome("stopped", why))
            time.sleep(POLL_SECONDS)  # a node that comes back takes a moment


class StopFlag:
    """Lives on the cluster; running jobs ask it whether to stop."""

    def __init__(self) -> None:
        self._asked = False

    def ask(self) -> None:
        """Ask all jobs to stop."""
        self._asked = True

    def asked(self) -> bool:
        """Whether jobs should stop."""
        return self._asked


_tasks: dict[tuple[Path | None, str], TaskCache] = {}  # one per worker process: Ray uses it for many jobs


def run_task(
    job: Job, store: StoreFolder, runtime: Runtime, threads: int, flag: Any, track: TrackerKind | None
) -> Outcome:
    """Run a job on a node."""
    import torch

    torch.set_num_threads(threads)
    ended, stop = threading.Event(), threading.Event()
    ray = import_ray()

    def watch() -> None:
        while not ended.wait(1.0) and not stop.is_set():
            # Without an answer the job continues: Ray itself ends the tasks of a command that is gone.
            with contextlib.suppress(Exception):
                if ray.get(flag.asked.remote(), timeout=30):
                    stop.set()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        tasks = _tasks.setdefault((runtime.cache, runtime.device), TaskCache(runtime))
        return execute(job, store, runtime, tasks, stop.is_set, track)
    finally:
        ended.set()
