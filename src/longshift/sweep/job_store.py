"""The store: which jobs are finished, failed, running or waiting.

A job is finished when its folder has a valid result.json. Reading 20,000 of them takes long, so the row of each is
kept in index.tsv with the size and time stamp of the file it was read from; a row whose file has changed is not used,
nor is one whose own checksum is wrong.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
from json import dumps, loads
from pathlib import Path
from typing import Any, Literal

from longshift.errors import LongshiftError
from longshift.io import cannot_write, locked, read_json, require_regular, write_json
from longshift.results import BadResult, read_summary, row_marks
from longshift.sweep import job_claims as claims
from longshift.sweep.sweep_folder import StoreFolder, job_id

State = Literal["done", "diverged", "failed", "running", "corrupt", "waiting"]
STATES: tuple[State, ...] = ("done", "diverged", "failed", "running", "corrupt", "waiting")
FINISHED: tuple[State, ...] = ("done", "diverged")


@dataclass(frozen=True)
class Entry:
    """The status of a job; `line` is its row as JSON if it is finished; `elsewhere`: the store has no result of it."""

    state: State
    line: str = ""
    elsewhere: bool = False

    def row(self) -> dict[str, Any]:
        """The row of a finished job."""
        found: dict[str, Any] = loads(self.line)
        return found


@dataclass(frozen=True)
class Outcome:
    """The outcome of a job: done (also: diverged), failed, stopped with a checkpoint, busy elsewhere, full, changed.

    Full: the disk is, or something else stands in the way of all jobs. The job is not to blame; the sweep stops.
    Changed: the files of its dataset did, since the jobs were named. The other jobs on that dataset are left out.
    """

    kind: Literal["done", "failed", "stopped", "busy", "full", "changed"]
    message: str = ""


@dataclass(frozen=True)
class Indexed:
    """A line of the index."""

    size: int
    stamp: int
    entry: Entry


def scan_jobs(store: StoreFolder, fingerprints: Iterable[str]) -> dict[str, Entry]:
    """The status of each job, in one pass over the store."""
    known, fresh = read_index(store), []
    there = _names(store.jobs)
    claimed = _names(store.claims)
    found: dict[str, Entry] = {}
    for fingerprint in fingerprints:
        name = job_id(fingerprint)
        if name in there:
            entry, line = _finished(store, fingerprint, known.get(fingerprint))
            if line:
                fresh.append(line)
            if entry is None and store.failure(fingerprint).exists():
                entry = Entry("failed")
            if entry is not None:
                found[fingerprint] = entry
                continue
        running = name in claimed and claims.is_held(store.claims / name)
        found[fingerprint] = Entry("running" if running else "waiting")
    if fresh:
        # Only a cache: a read-only store must not fail.
        with contextlib.suppress(LongshiftError, OSError):
            append_index(store, fresh)
    return found


def state_of(store: StoreFolder, fingerprint: str) -> State:
    """The state of one job."""
    entry, _ = _finished(store, fingerprint, None)
    if entry is not None:
        return entry.state
    if store.failure(fingerprint).exists():
        return "failed"
    return "running" if claims.is_held(store.claim(fingerprint)) else "waiting"


def _finished(store: StoreFolder, fingerprint: str, known: Indexed | None) -> tuple[Entry | None, str]:
    """The entry of a job that has a result, and its line for the index where that is new."""
    folder = store.job(fingerprint)
    try:
        stat = os.stat(f"{folder}/result.json")
    except OSError:
        return None, ""
    if known is not None and (known.size, known.stamp) == (stat.st_size, stat.st_mtime_ns):
        return known.entry, ""
    try:
        row = read_summary(folder, fingerprint)
    except BadResult:
        return Entry("corrupt"), ""
    text = dumps(row)
    line = f"{fingerprint}\t{stat.st_size}\t{stat.st_mtime_ns}\t{row['status']}\t{text}"
    return Entry(row["status"], text), f"{_sum(line)}\t{line}\n"


def _sum(line: str) -> str:
    return hashlib.sha256(line.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def record_finished(store: StoreFolder, fingerprint: str) -> None:
    """Put a job that has just finished into the index."""
    _, line = _finished(store, fingerprint, None)
    if line:
        append_index(store, [line])


def read_index(store: StoreFolder) -> dict[str, Indexed]:
    """All lines of the index with the right checksum; of two for one job the later counts."""
    found: dict[str, Indexed] = {}
    try:
        require_regular(store.index)
        file = store.index.open(encoding="utf-8", errors="replace")
    except OSError:
        return found
    marks = row_marks()
    with file:
        for line in file:
            checksum, _, rest = line.rstrip("\n").partition("\t")
            parts = rest.split("\t", 4)
            # A row that lacks one of the present columns is read again from its run, as is a damaged one.
            whole = len(parts) == 5 and checksum == _sum(rest) and all(mark in parts[4] for mark in marks)
            if whole and parts[3] in FINISHED:
                state: State = "done" if parts[3] == "done" else "diverged"
                with contextlib.suppress(ValueError):
                    found[parts[0]] = Indexed(int(parts[1]), int(parts[2]), Entry(state, parts[4]))
    return found


def append_index(store: StoreFolder, lines: Iterable[str]) -> None:
    """Add lines; a line that a killed process left unfinished is closed first."""
    try:
        store.path.mkdir(parents=True, exist_ok=True)
        if store.index.is_symlink():  # in a folder of a stranger, it may lead to any file of the user
            store.index.unlink()
        with locked(store.index.with_name(".index.lock")), store.index.open("a+b") as file:
            end = file.seek(0, os.SEEK_END)
            if end:
                file.seek(end - 1)
                if file.read(1) != b"\n":
                    file.write(b"\n")
            file.write("".join(lines).encode())
    except OSError as error:
        raise cannot_write(store.index, error) from error


def quarantine(store: StoreFolder, fingerprint: str) -> Path | None:
    """Move a result that cannot be trusted out of the way; None if nothing is wrong."""
    folder = store.job(fingerprint)
    if not (folder / "result.json").exists():
        return None
    try:
        read_summary(folder, fingerprint)
    except BadResult as error:
        place = store.quarantine / f"{job_id(fingerprint)}-{time.time_ns()}"
        place.mkdir(parents=True)
        (place / "why.txt").write_text(f"{error}\n", encoding="utf-8")
        shutil.move(folder / "result.json", place / "result.json")
        # What was trained from the same run goes too: the job starts again from nothing.
        for leftover in ("metrics.jsonl", "resume.pt"):
            if (folder / leftover).exists():
                shutil.move(folder / leftover, place / leftover)
        return place
    return None


def write_failure(store: StoreFolder, fingerprint: str, error: str, traceback: str = "") -> None:
    """Keep the error of a job."""
    value = {
        "schema": 1, "fingerprint": fingerprint, "error": error, "traceback": traceback,
        "machine": claims.machine(), "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }  # fmt: skip
    write_json(store.failure(fingerprint), value)


def read_failure(store: StoreFolder, fingerprint: str) -> str:
    """The error of a failed job, in one line."""
    try:
        text = str(read_json(store.failure(fingerprint))["error"])
    except (LongshiftError, KeyError, TypeError):
        return "its failure.json cannot be read"
    return text.strip().splitlines()[0] if text.strip() else "no message"


def clear_failures(store: StoreFolder, fingerprints: Iterable[str]) -> int:
    """Let failed jobs run again; return their number."""
    count = 0
    for fingerprint in fingerprints:
        with contextlib.suppress(FileNotFoundError):
            store.failure(fingerprint).unlink()
            count += 1
    return count


def _names(folder: Path) -> set[str]:
    try:
        return set(os.listdir(folder))
    except FileNotFoundError:
        return set()
