"""The folder of a sweep, the store of its runs (which several sweeps may share), and the cache of both.

DIR/sweep.toml        the sweep
DIR/runs.parquet      a table of runs made elsewhere or collected earlier: its jobs count as finished
DIR/cache.parquet     the jobs of the sweep and the rows of the finished ones: a cache that can be deleted
DIR/cancel            changes when `cancel` is called
STORE/jobs/ID/        the folder of a run, as `longshift train` writes it

The folder of a run is its state: result.json says that it is finished, failure.json that it failed, a lease whose time
stamp is fresh that it is running; a run without any of them is waiting.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from longshift.data import read_parquet
from longshift.errors import LongshiftError
from longshift.io import FileIn, replacing, require_inside

ID_LENGTH = 16  # hex digits of the fingerprint in a folder's name


def job_id(fingerprint: str) -> str:
    """The name of a job's folder."""
    return fingerprint[:ID_LENGTH]


def absolute(path: str, base: Path) -> str:
    """Paths in a sweep file are meant from the file's folder."""
    given = Path(path).expanduser()
    return str(given if given.is_absolute() else (base / given).resolve())


def store_of(raw: Mapping[str, Any], directory: Path) -> Path:
    """The store that a sweep file names; one inside the sweep's folder must not be a link to somewhere else."""
    name = str(raw.get("store", "."))
    if (Path(os.path.abspath(directory)) / name).is_relative_to(os.path.abspath(directory)) and ".." not in name:
        require_inside(directory / name, directory)
    return Path(absolute(name, directory))


@dataclass(frozen=True)
class SweepFolder:
    """Paths of a sweep."""

    path: Path
    store_path: Path | None = None

    file = FileIn("sweep.toml")
    cache = FileIn("cache.parquet")
    cancel = FileIn("cancel")
    table = FileIn("runs.parquet")

    @property
    def store(self) -> StoreFolder:
        """The store of runs."""
        return StoreFolder(self.store_path or self.path)


@dataclass(frozen=True)
class StoreFolder:
    """Paths of a store."""

    path: Path

    jobs = FileIn("jobs")

    def job(self, fingerprint: str) -> Path:
        """The folder of a run."""
        return self.jobs / job_id(fingerprint)

    def failure(self, fingerprint: str) -> Path:
        """The error of a failed run."""
        return self.job(fingerprint) / "failure.json"


@dataclass(frozen=True)
class CachedRow:
    """The row of a finished run as JSON, and the time stamp of the result it was read from."""

    stamp: int
    state: str
    line: str


@dataclass(frozen=True)
class Cache:
    """What cache.parquet holds."""

    jobs: Sequence[dict[str, Any]] = ()  # the values of each job of the sweep, in order
    key: str = ""  # changes whenever the jobs may
    versions: dict[str, str] = field(default_factory=dict)  # the version of each dataset when the jobs were named
    rows: dict[str, CachedRow] = field(default_factory=dict)  # finished runs by fingerprint
    columns: str = ""  # changes whenever the rows may


_ABOUT = b"longshift"  # key of the file's metadata
_JOB = ("fingerprint", "dataset", "method", "trial", "draw", "run")
_ROW = ("stamp", "state", "line")


def read_cache(folder: SweepFolder) -> Cache:
    """The cache of a sweep; an empty one where there is none or it cannot be read."""
    if not folder.cache.is_file():
        return Cache()
    try:
        table = read_parquet(folder.cache)
        about, entries = json.loads(table.schema.metadata[_ABOUT]), table.to_pylist()
        jobs = [{**{k: e[k] for k in _JOB}, "run": json.loads(e["run"])} for e in entries if e["run"]]
        rows = {e["fingerprint"]: CachedRow(*(e[k] for k in _ROW)) for e in entries if e["line"]}
        return Cache(jobs, about["key"], about["versions"], rows, about["columns"])
    except Exception:  # only a cache: pyarrow raises nearly anything on a damaged file
        return Cache()


def write_cache(folder: SweepFolder, cache: Cache) -> None:
    """Replace the cache of a sweep, where its folder may be written to."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # A line for each job, and one for each row, which two jobs may share.
    entries = [{**job, "run": json.dumps(job["run"])} for job in cache.jobs]
    entries += [{"fingerprint": name, **vars(row)} for name, row in cache.rows.items()]
    about = {"key": cache.key, "versions": cache.versions, "columns": cache.columns}
    types = {name: pa.int64() if name in ("trial", "draw", "stamp") else pa.string() for name in (*_JOB, *_ROW)}
    table = pa.Table.from_pylist(entries, pa.schema(types, metadata={_ABOUT: json.dumps(about).encode()}))
    with contextlib.suppress(LongshiftError), replacing(folder.cache) as temporary:  # a read-only sweep can be read
        pq.write_table(table, temporary, compression="zstd", write_statistics=False)
