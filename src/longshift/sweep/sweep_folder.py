"""Paths of a sweep: the sweep's folder and the store of jobs, which several sweeps may share.

DIR/sweep.toml        the sweep
DIR/plan.jsonl        its jobs, written by `plan` and `run`
DIR/runs.parquet      a table of runs made elsewhere or collected earlier (or runs.csv): its jobs count as finished
DIR/cancel            changes when `cancel` is called
STORE/jobs/ID/        the folder of a run, as `longshift train` writes it; failure.json if it raised an error
STORE/claims/ID       names the process that runs the job, which holds ID.lock next to it
STORE/index.tsv       one line per finished job: a cache, made again where it is missing or stale
STORE/quarantine/     results that could not be trusted
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from longshift.io import FileIn

ID_LENGTH = 16  # hex digits of the fingerprint in a folder's name


def job_id(fingerprint: str) -> str:
    """The name of a job's folder."""
    return fingerprint[:ID_LENGTH]


def absolute(path: str, base: Path) -> str:
    """Paths in a sweep file are meant from the file's folder."""
    given = Path(path).expanduser()
    return str(given if given.is_absolute() else (base / given).resolve())


@dataclass(frozen=True)
class SweepFolder:
    """Paths of a sweep."""

    path: Path
    store_path: Path | None = None

    file = FileIn("sweep.toml")
    plan = FileIn("plan.jsonl")
    cancel = FileIn("cancel")

    @property
    def table(self) -> Path:
        """runs.parquet; or runs.csv where only that exists."""
        names = [name for name in ("runs.parquet", "runs.csv") if (self.path / name).exists()]
        return self.path / (names or ["runs.parquet"])[0]

    @property
    def store(self) -> StoreFolder:
        """The store of jobs."""
        return StoreFolder(self.store_path or self.path)


@dataclass(frozen=True)
class StoreFolder:
    """Paths of a store."""

    path: Path

    jobs = FileIn("jobs")
    claims = FileIn("claims")
    index = FileIn("index.tsv")
    quarantine = FileIn("quarantine")

    def job(self, fingerprint: str) -> Path:
        """The folder of a job."""
        return self.jobs / job_id(fingerprint)

    def claim(self, fingerprint: str) -> Path:
        """The lock of a job."""
        return self.claims / job_id(fingerprint)

    def failure(self, fingerprint: str) -> Path:
        """What went wrong with a job."""
        return self.job(fingerprint) / "failure.json"
