"""The Ray launcher: jobs as tasks on a cluster.

Ray finds a node with enough processors (and a share of a GPU) for each job. A job whose worker or node is lost runs
again; in a shared folder it resumes from its checkpoint. Where nodes do not share a folder, a job runs in a folder of
its node and its small files are sent back as bytes; the process that started the sweep holds the job's lock.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import os
import socket
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from longshift.data import cores
from longshift.errors import LongshiftError, UsageError
from longshift.io import cannot_write, replacing
from longshift.registry import VARIABLE, plugin_files
from longshift.sweep import job_claims as claims
from longshift.sweep.job_store import FINISHED, Outcome, quarantine, record_finished, state_of, write_failure
from longshift.sweep.jobs import Job
from longshift.sweep.launchers import Launch
from longshift.sweep.run_job import disk_full, execute
from longshift.sweep.sweep_folder import StoreFolder
from longshift.training import Runtime, TaskCache, TrackerKind

MOST_LOSSES = 10  # of workers of one job; more than on one machine, because nodes come and go
MOST_IN_A_ROW = 6  # lost workers of several jobs; more than a few nodes lose at once
CLUSTER_GONE = "the Ray cluster does not run jobs any more; start it again"
LAST = "result.json"  # written after everything else: its presence says that a job is finished
Files = dict[str, bytes]


def run_ray(launch: Launch) -> None:
    """Run all jobs of the queue on a cluster; return when none is left, when asked to stop, or in trouble."""
    ray = import_ray()
    mine, address = not ray.is_initialized(), launch.options.address
    if mine:
        _check_address(address)
        files = plugin_files()  # which workers load, too; nodes must have them at the same path
        options: dict[str, Any] = {"env_vars": {VARIABLE: os.pathsep.join(map(str, files))}} if files else {}
        own = {} if address else {"num_cpus": cores(), "include_dashboard": False}
        try:
            ray.init(address=address, log_to_driver=False, runtime_env=options, **own)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise LongshiftError(f"no Ray cluster at {address!r}: {error}") from error
    try:
        Driver(ray, launch).run(launch.stop)
    except (ray.exceptions.RayError, ConnectionError) as error:  # a call of Ray itself: the cluster is gone
        launch.queue.trouble = f"{CLUSTER_GONE} ({type(error).__name__}: {str(error).splitlines()[0]})"
    finally:
        if mine:
            ray.shutdown()


def import_ray() -> Any:
    """Import Ray, or raise an error with the command that installs it."""
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise UsageError("the ray launcher needs Ray, which is not installed; pip install -e '.[ray]'") from error


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
        self.flights: dict[Any, tuple[Job, claims.Claim | None]] = {}
        self.losses: list[str] = []  # jobs whose workers were lost since the last job that ended

    def run(self, stop: Callable[[], bool]) -> None:
        """Run until no job is left or `stop` is true."""
        stopping = False
        while self.flights or (self.job_queue.open and not stopping):
            if not stopping and (stop() or self.job_queue.trouble):
                stopping = True
                self.flag.ask.remote()
            if not stopping:
                self._launch()
            self.job_queue.tell()
            ready, _ = self.ray.wait(list(self.flights), timeout=0.2) if self.flights else ([], [])
            if not self.flights:
                time.sleep(0.2)  # what is left runs elsewhere
            for flight in ready:
                self._land(flight)
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
        while len(self.flights) < self._room() and (job := self.job_queue.next_job()) is not None:
            share = self._gpu_share(self.ray.cluster_resources())
            store, threads = self.job_queue.store, self.options.threads
            # Retries are ours: only we know whether the job was finished before its worker was lost.
            needs = {"num_cpus": threads, "num_gpus": share, "max_retries": 0}
            if self.options.shared_folder:
                task = self.ray.remote(**needs)(run_shared)
                absolute = StoreFolder(store.path.resolve())
                flight = task.remote(job, absolute, self.runtime, threads, self.flag, self.track)
                self.flights[flight] = (job, None)
                continue
            claim = claims.take(store.claim(job.fingerprint))
            if claim is None:
                self.job_queue.finish(job, Outcome("busy"))
                continue
            claim.__enter__()
            quarantine(store, job.fingerprint)
            task = self.ray.remote(**needs)(run_apart)
            files = read_files(store.job(job.fingerprint))
            flight = task.remote(job, files, self.runtime, threads, self.flag)
            self.flights[flight] = (job, claim)

    def _land(self, flight: Any) -> None:
        job, claim = self.flights.pop(flight)
        try:
            outcome, files = self.ray.get(flight)
            if claim is not None:
                outcome = self._keep(job, outcome, files)
            self.job_queue.finish(job, outcome)
        except self.ray.exceptions.RayTaskError as error:  # an error outside the job itself, e.g. on import
            text = str(error).strip()
            write_failure(self.job_queue.store, job.fingerprint, text.splitlines()[-1] if text else "no message", text)
            self.job_queue.finish(job, Outcome("failed", text))
        except self.ray.exceptions.RayError as error:
            self._lost(job, error)
        else:
            self.losses.clear()
        finally:
            if claim is not None:
                claim.__exit__(None, None, None)

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
            time.sleep(0.2)  # a node that comes back takes a moment

    def _keep(self, job: Job, outcome: Outcome, files: Files) -> Outcome:
        try:
            write_files(self.job_queue.store.job(job.fingerprint), files)
            if outcome.kind == "done":
                record_finished(self.job_queue.store, job.fingerprint)
                if state_of(self.job_queue.store, job.fingerprint) not in FINISHED:
                    return Outcome("stopped", "its result is incomplete")
        except (LongshiftError, OSError) as error:
            if disk_full(error, self.job_queue.store.path):
                return Outcome("full", str(error))
            raise
        return outcome


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


def run_shared(
    job: Job, store: StoreFolder, runtime: Runtime, threads: int, flag: Any, track: TrackerKind | None
) -> tuple[Outcome, Files]:
    """Run a job on a node that sees the store."""
    return _run(job, store, runtime, threads, flag, track), {}


def run_apart(job: Job, files: Files, runtime: Runtime, threads: int, flag: Any) -> tuple[Outcome, Files]:
    """Run a job on a node that does not see the store, in a folder of the node; a lost job can resume there."""
    store = node_store()
    folder = store.job(job.fingerprint)
    if not (folder / "resume.pt").exists():
        write_files(folder, files)
    (folder / LAST).unlink(missing_ok=True)
    store.failure(job.fingerprint).unlink(missing_ok=True)
    outcome = _run(job, store, runtime, threads, flag, None)
    found = read_files(folder)
    if outcome.kind in ("done", "failed"):
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
    return outcome, found


def node_store() -> StoreFolder:
    """Where a node without the shared folder keeps the jobs it runs."""
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")  # Windows has no getuid
    folder = Path(tempfile.gettempdir()) / f"longshift-ray-{user}"
    # Its name is known to everybody, and so anybody could have put a folder or a link there.
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise cannot_write(folder, error) from error
    if not stat.S_ISDIR(status.st_mode) or (hasattr(os, "getuid") and status.st_uid != os.getuid()):
        raise LongshiftError(f"{folder} belongs to somebody else. Remove it, or set TMPDIR to a folder of your own.")
    return StoreFolder(folder)


def _run(job: Job, store: StoreFolder, runtime: Runtime, threads: int, flag: Any, track: TrackerKind | None) -> Outcome:
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


def read_files(folder: Path) -> Files:
    """The files of a job; none where there is no folder."""
    if not folder.is_dir():
        return {}
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file() and path.name[0] != "."}


def write_files(folder: Path, files: Files) -> None:
    """Put a job's files in place, the result last; a checkpoint that the job no longer has is removed."""
    for name in sorted(files, key=lambda name: name == LAST):
        with replacing(folder / name) as temporary:
            temporary.write_bytes(files[name])
    if LAST in files:
        (folder / "resume.pt").unlink(missing_ok=True)
