"""The jobs that a launcher has to run, and how far it is; the same for all launchers."""

from __future__ import annotations

import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from longshift.errors import LongshiftError
from longshift.io import write_text
from longshift.sweep.job_status import job_entries
from longshift.sweep.job_store import FINISHED, Outcome, state_of, write_failure
from longshift.sweep.jobs import Job, Plan
from longshift.sweep.sweep_folder import StoreFolder, SweepFolder
from longshift.text import counted

LOOK_AGAIN = 1.0  # seconds until a job that runs elsewhere is looked at again


@dataclass
class JobQueue:
    """The jobs of a sweep as one `run` command sees them."""

    store: StoreFolder
    total: int
    waiting: deque[Job]
    done: int = 0
    failed: int = 0
    finished_here: int = 0
    in_table: int = 0  # finished in the table of runs next to the sweep file, not in the store
    running: set[str] = field(default_factory=set)
    elsewhere: list[Job] = field(default_factory=list)
    deaths: dict[str, int] = field(default_factory=dict)
    trouble: str = ""  # what ended the sweep early
    changed: dict[str, str] = field(default_factory=dict)  # datasets whose files changed meanwhile, and how
    left_out: list[Job] = field(default_factory=list)  # jobs on them
    listener: Callable[[JobQueue], None] = lambda job_queue: None
    _looked: float = 0.0
    _told: tuple[int, ...] = ()

    def next_job(self) -> Job | None:
        """A job that nobody runs, or None for now."""
        self._look_elsewhere()
        while self.waiting:
            job = self.waiting.popleft()
            if job.dataset in self.changed:
                self.left_out.append(job)
                continue
            state = state_of(self.store, job.fingerprint)
            if state in ("waiting", "corrupt"):
                self.running.add(job.fingerprint)
                return job
            self._file(job, state)
        return None

    def _look_elsewhere(self) -> None:
        if self.waiting or not self.elsewhere or time.monotonic() - self._looked < LOOK_AGAIN:
            return
        self._looked = time.monotonic()
        again, self.elsewhere = self.elsewhere, []
        for job in again:
            self._file(job, state_of(self.store, job.fingerprint))

    def _file(self, job: Job, state: str) -> None:
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
            self.finished_here += 1
        elif outcome.kind == "failed":
            self.failed += 1
        elif outcome.kind == "busy":
            self.elsewhere.append(job)
        elif outcome.kind == "changed":
            self.changed.setdefault(job.dataset, outcome.message)
            self.left_out.append(job)
        else:
            self.waiting.appendleft(job)
            if outcome.kind == "full":
                self.trouble = self.trouble or outcome.message

    def died(self, job: Job, why: str, most: int) -> None:
        """The process that ran a job died: run the job again, unless that happened `most` times."""
        self.running.discard(job.fingerprint)
        self.deaths[job.fingerprint] = self.deaths.get(job.fingerprint, 0) + 1
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
    def problem(self) -> str:
        """Why jobs are left though nobody asked to stop; "" if there is no such reason."""
        counts = Counter(job.dataset for job in self.left_out)
        return self.trouble or "\n".join(
            f"{counted(counts[name], 'job')} on {name} not run: {why}" for name, why in self.changed.items()
        )

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


def make_queue(plan: Plan, listener: Callable[[JobQueue], None] = lambda job_queue: None) -> JobQueue:
    """What is left to do of a plan."""
    runs = plan.runs
    entries = job_entries(plan)
    job_queue = JobQueue(plan.folder.store, len(runs), deque(), listener=listener)
    job_queue.in_table = sum(entry.elsewhere for entry in entries.values())
    for job in runs:
        state = entries[job.fingerprint].state
        job_queue._file(job, "waiting" if state == "running" else state)  # `next_job` looks at its claim again
    return job_queue


class CancelWatch:
    """Notices that `cancel` was called since it was made."""

    def __init__(self, folder: SweepFolder) -> None:
        self._path = folder.cancel
        self._before = self._read()
        self._looked, self._asked = time.monotonic(), False

    def _read(self) -> str:
        try:
            return self._path.read_text()
        except OSError:
            return ""

    def __call__(self) -> bool:
        """Whether `cancel` was called."""
        if not self._asked and time.monotonic() - self._looked > 0.5:
            self._looked = time.monotonic()
            self._asked = self._read() not in ("", self._before)
        return self._asked


def ask_to_cancel(folder: SweepFolder) -> None:
    """Make every `run` of this sweep stop after its current steps, with checkpoints."""
    write_text(folder.cancel, uuid.uuid4().hex + "\n")


def time_is_up(minutes: float) -> Callable[[], bool]:
    """Whether so many minutes have passed since this call."""
    end = time.monotonic() + 60 * minutes
    return lambda: time.monotonic() >= end


def any_check(checks: Iterable[Callable[[], bool]]) -> Callable[[], bool]:
    """Whether one of the checks says yes."""
    kept = tuple(checks)
    return lambda: any(check() for check in kept)


class SweepStopped(LongshiftError):
    """The sweep was asked to stop; everything is saved."""

    exit_code = 130
