"""The local launcher: worker processes, one job at a time each.

A worker holds the folder of its run, so the job is free again however the worker ends. A worker stops cleanly on
request, and when the process that started it is gone, which closes the pipe.
"""

from __future__ import annotations

import contextlib
import dataclasses
import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

from longshift.data import cores
from longshift.errors import LongshiftError
from longshift.sweep.jobs import Job
from longshift.sweep.launch import JobQueue
from longshift.sweep.state import Outcome
from longshift.sweep.sweep_folder import StoreFolder
from longshift.training import ENDINGS, Runtime, TrackerKind

MOST_DEATHS = 3  # of workers of one job
READY, STOP = "ready", "stop"
SAFE_PATH = "PYTHONSAFEPATH"  # since Python 3.11
KILLED = 9  # SIGKILL, which Windows does not name
# A forked child would inherit locks and CUDA; a spawned one starts clean.
CONTEXT = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Slot:
    """A device and threads for one job at a time."""

    device: str
    threads: int


def make_slots(device: str = "auto", jobs_per_gpu: int = 1, workers: int | None = None, threads: int = 1) -> list[Slot]:
    """One slot for each job that may run at once.

    GPUs: `jobs_per_gpu` each, which share the processors. Without a GPU: as many as there are processors
    for `threads` threads each. The number of threads is fixed, not fitted to the number of jobs, because sums on the
    CPU depend on it in the last digit. `workers` overrides the number.
    """
    import torch  # a worker handles signals before it spends seconds on this import

    from longshift.training import resolve_device

    if device == "cpu" or (device == "auto" and not torch.cuda.is_available()):
        count = workers or max(1, cores() // threads)
        return [Slot("cpu", threads)] * count
    resolve_device(device)  # an error if it does not exist
    gpus = [f"cuda:{i}" for i in range(torch.cuda.device_count())] if device in ("auto", "cuda") else [device]
    names = [gpu for _ in range(jobs_per_gpu) for gpu in gpus]
    if workers:
        names = [names[i % len(names)] for i in range(workers)]
    return [Slot(name, max(1, cores() // len(names))) for name in names]


def work(connection: Connection, slot: Slot, store: StoreFolder, runtime: Runtime, track: TrackerKind | None) -> None:
    """The life of a worker process."""
    # Ctrl-C, `timeout` and schedulers reach the whole group; the parent decides what it means. SIGTERM is caught, not
    # ignored: torch ends its compiling processes with it, and they would inherit that it is ignored.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for ending in ENDINGS:
        if signal.getsignal(ending) is not signal.SIG_IGN:
            signal.signal(ending, lambda number, frame: None)
    import torch

    from longshift.sweep.worker import execute
    from longshift.training import TaskCache

    torch.set_num_threads(slot.threads)
    stop, jobs = threading.Event(), queue.SimpleQueue[Job | None]()

    def listen() -> None:
        while True:
            try:
                message = connection.recv()
            except (EOFError, OSError):
                message = STOP
            if message == STOP:
                stop.set()
                jobs.put(None)
                return
            jobs.put(message)

    threading.Thread(target=listen, daemon=True).start()
    runtime = dataclasses.replace(runtime, device=slot.device)
    tasks = TaskCache(runtime)
    _tell(connection, READY)
    while (job := jobs.get()) is not None:
        outcome = execute(job, store, runtime, tasks, stop.is_set, track)
        _tell(connection, outcome)
        if outcome.kind == "failed" and slot.device != "cpu":
            return  # an error on a GPU can spoil the process for the next job; a new one takes over


def _tell(connection: Connection, message: object) -> None:
    with contextlib.suppress(OSError):  # the other side is gone, and its reader notices that
        connection.send(message)


@dataclass
class Worker:
    """A worker process as its parent sees it."""

    slot: Slot
    process: SpawnProcess
    connection: Connection
    ready: bool = False
    job: Job | None = None


def run_local(
    job_queue: JobQueue,
    slots: list[Slot],
    runtime: Runtime,
    stop: Callable[[], bool] = lambda: False,
    track: TrackerKind | None = None,
) -> None:
    """Run all jobs of the queue; return when none is left, when asked to stop, or in trouble (see `JobQueue`)."""
    team = LocalWorkers(job_queue, runtime, track)
    for slot in slots[: len(job_queue.waiting)]:
        team.start(slot)
    stopping = False
    try:
        while team.workers:
            if not stopping and (stop() or job_queue.trouble or not job_queue.open):
                stopping = True
                for worker in team.workers:
                    _tell(worker.connection, STOP)
            if not stopping:
                team.hand_out()
            job_queue.tell()
            wait([source for w in team.workers for source in (w.connection, w.process.sentinel)], timeout=0.2)
            for slot in team.receive():
                if not stopping:
                    team.start(slot)
        job_queue.tell()
    finally:
        for worker in team.workers:
            worker.process.kill()


@contextlib.contextmanager
def _safe_path() -> Iterator[None]:
    """A new Python must not import modules from the current folder, which may be a stranger's sweep."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SAFE_PATH]
        else:
            os.environ[SAFE_PATH] = before


class LocalWorkers:
    """The worker processes of one `run` command."""

    def __init__(self, job_queue: JobQueue, runtime: Runtime, track: TrackerKind | None) -> None:
        self.job_queue, self.workers, self.failed_starts = job_queue, list[Worker](), 0
        self._runtime, self._track = runtime, track

    def start(self, slot: Slot) -> None:
        """Start a worker."""
        ours, theirs = CONTEXT.Pipe()
        arguments = (theirs, slot, self.job_queue.store, self._runtime, self._track)
        process = CONTEXT.Process(target=work, args=arguments, daemon=True)
        with _safe_path():
            process.start()
        theirs.close()  # so that our end sees when the worker is gone
        self.workers.append(Worker(slot, process, ours))

    def hand_out(self) -> None:
        """Give each idle worker a job."""
        for worker in self.workers:
            if worker.ready and worker.job is None:
                worker.job = self.job_queue.next_job()
                if worker.job is None:
                    return
                _tell(worker.connection, worker.job)

    def receive(self) -> list[Slot]:
        """Read the messages of the workers; return the slots of those that have ended."""
        freed = []
        for worker in list(self.workers):
            gone = not worker.process.is_alive()  # checked before reading: its last message is then in the pipe
            try:
                while worker.connection.poll():
                    message = worker.connection.recv()
                    if message == READY:
                        worker.ready = True
                    elif isinstance(message, Outcome) and worker.job is not None:
                        job, worker.job = worker.job, None
                        self.job_queue.finish(job, message)
            except (EOFError, OSError):
                worker.process.join(timeout=5)
                gone = True
            if gone:
                self._remove(worker)
                freed.append(worker.slot)
        return freed

    def _remove(self, worker: Worker) -> None:
        self.workers.remove(worker)
        worker.connection.close()
        code = worker.process.exitcode or 0
        hint = " (often: the machine ran out of memory)" if -code == KILLED else ""
        why = f"killed by signal {-code}{hint}" if code < 0 else f"exit code {code}"
        if worker.job is not None:
            self.job_queue.died(worker.job, why, MOST_DEATHS)
        self.failed_starts = 0 if worker.ready else self.failed_starts + 1
        if self.failed_starts >= MOST_DEATHS:
            raise LongshiftError(
                f"{self.failed_starts} workers in a row could not start ({why}); see the messages above"
            )
