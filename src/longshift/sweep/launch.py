"""One `longshift sweep run`: the jobs that are left, what asks it to stop, and the launchers that run jobs.

A launcher decides where jobs run: "local" uses processes of this machine, "ray" a cluster.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from longshift.errors import LongshiftError
from longshift.io import require_inside, write_text
from longshift.registry import Registry
from longshift.sweep.jobs import Job, Plan
from longshift.sweep.state import FINISHED, Outcome, State, read_states, state_of, write_failure
from longshift.sweep.sweep_folder import StoreFolder, SweepFolder
from longshift.training import Runtime, TrackerKind

POLL_SECONDS = 1.0  # until a job that runs elsewhere, or the request to cancel, is looked at again


@dataclass
class JobQueue:
    """The jobs of a sweep as one `run` command sees them; the same for all launchers."""

    store: StoreFolder  # where the runs are kept
    total: int
    waiting: deque[Job]  # jobs that nobody runs
    done: int = 0
    failed: int = 0
    finished_here: int = 0  # jobs that this command finished
    in_table: int = 0  # jobs that only the table of runs next to the sweep file has
    running: set[str] = field(default_factory=set)  # fingerprints of the jobs that this command runs
    elsewhere: list[Job] = field(default_factory=list)  # jobs that others run
    deaths: Counter[str] = field(default_factory=Counter)  # how often the process of a job died
    trouble: str = ""  # what ended the sweep early
    listener: Callable[[JobQueue], None] = lambda job_queue: None  # called by `tell` after a change
    _polled: float = 0.0
    _told: tuple[int, ...] = ()

    def next_job(self) -> Job | None:
        """A job that nobody runs, or None for now."""
        if not self.waiting and self.elsewhere and time.monotonic() - self._polled >= POLL_SECONDS:
            self._polled = time.monotonic()
            again, self.elsewhere = self.elsewhere, []
            for job in again:
                self._sort(job, state_of(self.store, job.fingerprint))
        while self.waiting:
            job = self.waiting.popleft()
            state = state_of(self.store, job.fingerprint)
            # The lease may be that of a killed process, which only a worker finds out.
            if state in ("waiting", "running"):
                self.running.add(job.fingerprint)
                return job
            self._sort(job, state)
        return None

    def _sort(self, job: Job, state: State) -> None:
        if state in FINISHED:
            self.done += 1
        elif state == "failed":
            self.failed += 1
        else:
            (self.elsewhere if state == "running" else self.waiting).append(job)

    def finish(self, job: Job, outcome: Outcome) -> None:
        """Record the outcome of a job."""
        self.running.discard(job.fingerprint)
        if outcome.kind == "done":
            self.done += 1
            self.finished_here += not outcome.message  # else another process had finished it meanwhile
        elif outcome.kind == "failed":
            self.failed += 1
        elif outcome.kind == "busy":
            self.elsewhere.append(job)
        else:
            self.waiting.appendleft(job)
            if outcome.kind == "blocked":
                self.trouble = self.trouble or outcome.message

    def died(self, job: Job, why: str, most: int) -> None:
        """The process that ran a job died: run the job again, unless that happened `most` times."""
        self.running.discard(job.fingerprint)
        self.deaths[job.fingerprint] += 1
        if self.deaths[job.fingerprint] < most:
            self.waiting.appendleft(job)
            return
        write_failure(self.store, job.fingerprint, f"its worker died {most} times, the last time: {why}")
        self.failed += 1

    def tell(self) -> None:
        """Call the listener if anything has changed.

        Launchers call this when free workers have a new job: between two jobs of a worker, too few would seem to run.
        """
        state = (self.done, self.failed, len(self.running), len(self.elsewhere))
        if state != self._told:
            self._told = state
            self.listener(self)

    @property
    def left(self) -> int:
        """Jobs that have neither a result nor an error."""
        return self.total - self.done - self.failed

    @property
    def open(self) -> bool:
        """Whether there is anything left that may still be run."""
        return bool(self.waiting or self.running or self.elsewhere)

    def note(self) -> str:
        """Running, failed, run elsewhere; who shows the progress adds the remaining time."""
        parts = [f"{len(self.running)} running"]
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.elsewhere:
            parts.append(f"{len(self.elsewhere)} run elsewhere")
        return ", ".join(parts)


def make_queue(plan: Plan) -> JobQueue:
    """What is left to do of a plan."""
    require_inside(plan.folder.store.jobs, plan.folder.store.path)
    runs, states = plan.runs, read_states(plan)
    job_queue = JobQueue(plan.folder.store, len(runs), deque())
    job_queue.in_table = sum(state.in_table for state in states.values())
    for job in runs:
        state = states[job.fingerprint].state
        job_queue._sort(job, "waiting" if state == "running" else state)  # a worker finds out whether it is
    return job_queue


class CancelWatch:
    """Notices that a file has changed since it was made; `sweep cancel` writes such a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._before = self._read()
        self._polled, self._asked = time.monotonic(), False

    def _read(self) -> str:
        try:
            return self._path.read_text()
        except OSError:
            return ""

    def __call__(self) -> bool:
        """Whether to stop."""
        if not self._asked and time.monotonic() - self._polled > POLL_SECONDS:
            self._polled = time.monotonic()
            self._asked = self._read() not in ("", self._before)
        return self._asked


def ask_to_cancel(folder: SweepFolder) -> None:
    """Make every `run` of this sweep stop after its current steps, with checkpoints."""
    write_text(folder.cancel, uuid.uuid4().hex + "\n")


class SweepStopped(LongshiftError):
    """The sweep was asked to stop; everything is saved."""

    exit_code = 130


@dataclass(frozen=True)
class LaunchOptions:
    """The options of `longshift sweep run`; a launcher ignores those that mean nothing to it."""

    device: str = "auto"  # "auto", "cpu", "cuda", "cuda:1"
    jobs_per_gpu: int = 1  # jobs that share a GPU
    workers: int | None = None  # most jobs at a time; None: as many as the machine or cluster can take
    threads: int = 1  # CPU threads per job
    address: str | None = None  # address of a cluster, whose machines all see the store under the same path


@dataclass(frozen=True)
class Launch:
    """One `longshift sweep run`.

    Args:
        queue: The jobs: `next_job()` gives a job or None, `finish(job, outcome)` takes its outcome, `tell()` updates
            the progress bar, `open` says whether anything is left.
        options: The options of the command.
        runtime: How each job is executed.
        stop: Whether the user asked to stop.
        track: Where to send metrics while jobs run, if anywhere.

    Example:
        >>> @register_launcher("one-by-one")  # doctest: +SKIP
        ... def one_by_one(launch: Launch) -> None:
        ...     while not launch.stop() and (job := launch.queue.next_job()) is not None:
        ...         launch.queue.finish(job, execute(job, launch.queue.store, launch.runtime, tasks))
    """

    queue: JobQueue
    options: LaunchOptions
    runtime: Runtime
    stop: Callable[[], bool] = lambda: False
    track: TrackerKind | None = None


Launcher = Callable[[Launch], None]

LAUNCHERS = Registry[Launcher]("launcher")


def register_launcher(name: str) -> Callable[[Launcher], Launcher]:
    """Decorate a function that runs the jobs of a sweep: `longshift sweep run --launcher NAME` then calls it.

    Args:
        name: Name of the launcher.

    Returns:
        The decorator. The function returns when no job is left, when `launch.stop()` is true, or when
        `launch.queue.trouble` says why the sweep cannot continue.

    Raises:
        LongshiftError: If another launcher has this name.

    Example:
        >>> @register_launcher("here")
        ... def run_here(launch):
        ...     queue, tasks = launch.queue, TaskCache(launch.runtime)
        ...     while not launch.stop() and not queue.trouble and (job := queue.next_job()) is not None:
        ...         queue.finish(job, execute(job, queue.store, launch.runtime, tasks, launch.stop, launch.track))
        ...         queue.tell()
    """

    def add(launcher: Launcher) -> Launcher:
        LAUNCHERS.add(name, launcher)
        return launcher

    return add


@register_launcher("local")
def _launch_local(launch: Launch) -> None:
    from longshift.sweep.local import make_slots, run_local

    options = launch.options
    slots = make_slots(options.device, options.jobs_per_gpu, options.workers, options.threads)
    run_local(launch.queue, slots, launch.runtime, launch.stop, launch.track)


@register_launcher("ray")
def _launch_ray(launch: Launch) -> None:
    from longshift.sweep.ray import run_ray

    run_ray(launch)
