"""The state of each job: finished, failed, running or waiting. The folder of its run is the only place that knows.

A sweep also resumes from a table: of runs made on another machine, often only DIR/runs.parquet was copied back. A job
that is finished there is finished here, with that row. The store's own result wins where there is one.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import socket
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from longshift.errors import LongshiftError
from longshift.io import FolderInUse, lock_folder, read_json, read_limited, require_inside, write_json
from longshift.sweep.columns import columns_key, join_average, read_row
from longshift.sweep.jobs import Plan
from longshift.sweep.sweep_folder import CachedRow, StoreFolder, SweepFolder, job_id, read_cache, write_cache

State = Literal["done", "diverged", "failed", "running", "waiting"]
STATES: tuple[State, ...] = ("done", "diverged", "failed", "running", "waiting")
FINISHED: tuple[State, ...] = ("done", "diverged")

LEASE = "lease"  # file in the folder of a run
LEASE_SECONDS = 60.0  # a lease that was not renewed for this long is void; clocks of machines must differ by less
RENEWALS = 6  # in that time
MOST_LEASE = 1 << 10  # bytes


@dataclass(frozen=True)
class JobState:
    """The state of a job; `line` is its row as JSON if it is finished."""

    state: State  # one of `STATES`
    line: str = ""  # the row of a finished job
    in_table: bool = False  # whether only the table of runs next to the sweep file has its result

    def row(self) -> dict[str, Any]:
        """The row of a finished job."""
        found: dict[str, Any] = json.loads(self.line)
        return found


@dataclass(frozen=True)
class Outcome:
    """The outcome of a job."""

    # "done" may be diverged, "stopped" has a checkpoint, "busy" runs elsewhere. "blocked": the disk is full, the data
    # have changed since the jobs were named, or something else stands in the way of all jobs; the sweep stops.
    kind: Literal["done", "failed", "stopped", "busy", "blocked"]
    message: str = ""  # the reason; of a job that is done, that somebody else has finished it


def read_states(plan: Plan) -> dict[str, JobState]:
    """The state of each job of a plan by its fingerprint.

    Rows of finished runs are kept in the cache of the sweep, so that each result is read once.
    """
    store, cache, columns = plan.folder.store, plan.cache or read_cache(plan.folder), columns_key()
    known = cache.rows if cache.columns == columns else {}
    made = _table_states(plan.folder)
    place = store.jobs
    there = set(os.listdir(place)) if place.is_dir() else set[str]()
    found: dict[str, JobState] = {}
    fresh: dict[str, CachedRow] = {}
    for job in plan.runs:
        name = job.fingerprint
        folder = f"{place}/{job_id(name)}"
        stamp = _stamp(f"{folder}/result.json") if job_id(name) in there else 0
        if stamp:
            row = known.get(name)
            if row is None or row.stamp != stamp:
                values = read_row(Path(folder), name)
                row = fresh[name] = CachedRow(stamp, values["status"], json.dumps(values))
            found[name] = JobState("done" if row.state == "done" else "diverged", row.line)
        elif name in made:
            found[name] = made[name]
        else:
            found[name] = JobState(_unfinished(store, name) if job_id(name) in there else "waiting")
    if fresh:
        write_cache(plan.folder, replace(cache, rows={**known, **fresh}, columns=columns))
    return found


def state_of(store: StoreFolder, fingerprint: str) -> State:
    """The state of one job; "done" also if it diverged."""
    return "done" if (store.job(fingerprint) / "result.json").exists() else _unfinished(store, fingerprint)


def _unfinished(store: StoreFolder, fingerprint: str) -> State:
    if store.failure(fingerprint).exists():
        return "failed"
    return "running" if _is_fresh(store.job(fingerprint) / LEASE, LEASE_SECONDS) else "waiting"


def _stamp(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _table_states(folder: SweepFolder) -> dict[str, JobState]:
    """The finished runs of the table next to a sweep file."""
    if not (folder.file.exists() and folder.table.exists()):
        return {}
    try:
        return {
            fingerprint: JobState(rows[0]["status"], json.dumps(join_average(rows)), in_table=True)
            for fingerprint, rows in table_rows(folder).items()
        }
    except LongshiftError as error:
        raise LongshiftError(
            f"{str(error).rstrip('.')}. Restore or remove the file; without it, the jobs that only it has run again."
        ) from error


def table_rows(folder: SweepFolder) -> dict[str, list[dict[str, Any]]]:
    """The rows of each finished run in the table next to a sweep file, by fingerprint."""
    from longshift.sweep.run_table import read_runs  # `status` waits for pandas only where there is a table

    frame = read_runs(folder.table)
    frame = frame[frame["status"].isin(FINISHED) & (frame["fingerprint"] != "")]
    found: dict[str, list[dict[str, Any]]] = {}
    for row in frame.astype(object).where(frame.notna(), None).to_dict("records"):
        found.setdefault(str(row["fingerprint"]), []).append({str(name): value for name, value in row.items()})
    return found


@contextlib.contextmanager
def hold_lease(folder: Path, seconds: float = LEASE_SECONDS) -> Iterator[Callable[[], bool]]:
    """Hold the folder of a run, which is created, and say so to other machines.

    The lock of the folder keeps out other processes of this machine, and those of other machines where the file system
    shares locks; it ends with its process. For all others, the lease has a time stamp that is renewed.

    Args:
        folder: The folder of the run.
        seconds: How long a lease is valid without being renewed.

    Yields:
        A function that says whether the lease was lost: this machine was suspended, and another one took the run.

    Raises:
        FolderInUse: Somebody else holds the folder.
        OSError: The lease cannot be written.
    """
    path, own = folder / LEASE, f"{_machine()} {uuid.uuid4().hex}"

    def is_held(real_lock: bool) -> bool:
        killed = real_lock and _holder(path).split(" ")[0] == _machine()  # whoever has the lock is not its holder
        return _is_fresh(path, seconds) and not killed

    if is_held(True):  # before the lock, which removes files that are half-written
        raise FolderInUse(f"another machine is using {folder}")
    with lock_folder(folder) as real_lock:
        if is_held(real_lock):
            raise FolderInUse(f"another process or machine is using {folder}")
        path.unlink(missing_ok=True)  # of a process that was killed, or a link in a folder of a stranger
        try:
            handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            raise FolderInUse(f"another machine is using {folder}") from None
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(own)
        ended, lost = threading.Event(), threading.Event()

        def renew() -> None:
            while not ended.wait(seconds / RENEWALS):
                if _holder(path) != own:
                    lost.set()
                    return
                with contextlib.suppress(OSError):
                    os.utime(path)

        thread = threading.Thread(target=renew, daemon=True)
        thread.start()
        try:
            yield lost.is_set
        finally:
            ended.set()
            thread.join()
            if _holder(path) == own:
                path.unlink(missing_ok=True)


@functools.cache
def _machine() -> str:
    """A name of this machine since it was started."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        boot = str(uuid.getnode())
    return f"{socket.gethostname()}/{boot}"


def _holder(path: Path) -> str:
    try:
        return read_limited(path, MOST_LEASE).decode("utf-8", "replace")
    except OSError:
        return ""


def _is_fresh(path: Path, seconds: float) -> bool:
    try:
        # A stamp of tomorrow is no fresher than one of yesterday: a clock was wrong.
        return abs(time.time() - path.lstat().st_mtime) < seconds
    except OSError:
        return False


def write_failure(store: StoreFolder, fingerprint: str, error: str, traceback: str = "") -> None:
    """Keep the error of a job."""
    require_inside(store.job(fingerprint), store.path)
    now = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    value = {"schema": 1, "fingerprint": fingerprint, "error": error, "traceback": traceback, "time": now}
    write_json(store.failure(fingerprint), {**value, "machine": socket.gethostname()})


def read_failure(store: StoreFolder, fingerprint: str) -> str:
    """The error of a failed job, in one line."""
    try:
        text = str(read_json(store.failure(fingerprint))["error"]).strip()
    except (LongshiftError, KeyError, TypeError):
        return "its failure.json cannot be read"
    lines = text.splitlines() or ["no message"]
    return " ".join(dict.fromkeys((lines[0], lines[-1])))  # what is wrong and what to do; a list stands between them


def clear_failures(store: StoreFolder, fingerprints: Iterable[str]) -> int:
    """Let failed jobs run again; return their number."""
    failed = [path for path in map(store.failure, set(fingerprints)) if path.exists()]
    for path in failed:
        require_inside(path.parent, store.path)
        path.unlink(missing_ok=True)
    return len(failed)


@dataclass(frozen=True)
class StatusFacts:
    """How far a sweep is."""

    directory: Path  # the sweep's folder
    total: int
    counts: dict[State, int]  # runs in each state
    methods: dict[str, dict[State, int]]  # jobs in each state by method; a run that two rows share is counted in both
    # The failed runs: the folder's name ("job"), what it is ("what") and its error in one line ("error")
    failures: list[dict[str, str]]
    in_table: int  # finished runs that only the table of runs has
    table: Path  # the table

    @property
    def finished(self) -> int:
        """Finished runs."""
        return sum(self.counts[state] for state in FINISHED)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        counts: dict[str, Any] = {str(state): count for state, count in self.counts.items()}
        return {"total": self.total, **counts, "methods": self.methods, "failures": self.failures}


def status_facts(plan: Plan) -> StatusFacts:
    """Count the jobs of a plan by state."""
    states = read_states(plan)
    counts = Counter(found.state for found in states.values())
    methods: dict[str, Counter[State]] = {}
    for job in plan.jobs:
        methods.setdefault(job.method, Counter())[states[job.fingerprint].state] += 1
    failed = [job for job in plan.runs if states[job.fingerprint].state == "failed"]
    return StatusFacts(
        directory=plan.folder.path,
        total=len(states),
        counts={state: counts[state] for state in STATES},
        methods={name: {state: found[state] for state in STATES} for name, found in methods.items()},
        failures=[
            {"job": job.id, "what": str(job), "error": read_failure(plan.folder.store, job.fingerprint)}
            for job in failed
        ],
        in_table=sum(found.in_table for found in states.values()),
        table=plan.folder.table,
    )
