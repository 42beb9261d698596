"""From a sweep to its jobs: `Job` is one run, `Plan` the list of them and the folder that keeps them.

Trials and draws become seeds in the same way for everybody:

Trial t:            split_seed = t and train_seed = t (other files, other initial weights, other batches).
Draw 0:             hparam_seed = 0, the defaults.
Draw i of trial t:  hparam_seed = 1000 t + i for 1 <= i <= 999; the hyper-parameters follow from the method's name
                    and this seed alone (`longshift.training.run_config.hparam_rng`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import longshift
from longshift.data import holds_vectors, vector_file
from longshift.errors import UsageError
from longshift.io import MOST_TEXT, read_limited, read_toml, split_paths
from longshift.progress import Bar, no_bar
from longshift.registry import plugin_files
from longshift.sweep.sweep_folder import Cache, SweepFolder, job_id, read_cache, store_of, write_cache

if TYPE_CHECKING:
    from longshift.sweep.sweep_file import Sweep
    from longshift.training import RunConfig

PER_TRIAL = 1000  # most draws, so that the seeds of two trials never meet


def hparam_seed(trial: int, draw: int) -> int:
    """The seed of draw `draw` of trial `trial`."""
    if not 0 <= draw < PER_TRIAL:
        raise ValueError(f"Expected a draw from 0 to {PER_TRIAL - 1}, got {draw}.")
    return 0 if draw == 0 else trial * PER_TRIAL + draw


def draw_of(seed: int) -> int:
    """The draw that a hyper-parameter seed stands for."""
    return seed % PER_TRIAL


@dataclass(frozen=True)
class Job:
    """One run of a sweep. `run` holds the values of its `RunConfig`."""

    fingerprint: str
    dataset: str
    method: str
    trial: int
    draw: int
    run: dict[str, Any]

    @classmethod
    def of(cls, config: RunConfig, dataset: str, method: str = "", trial: int = 0, draw: int = 0) -> Job:
        """The job of a configuration; `method` is the row it stands in where that is not the method's own."""
        return cls(config.fingerprint(), dataset, method or config.method, trial, draw, config.model_dump())

    @property
    def id(self) -> str:
        """The name of its folder."""
        return job_id(self.fingerprint)

    @property
    def config(self) -> RunConfig:
        """Its configuration."""
        from longshift.training import RunConfig

        return RunConfig.model_validate(self.run)

    def __str__(self) -> str:
        run = self.run
        place = f"{self.dataset}/{run['setting']}/{run['target']}"
        return f"{self.method} on {place}, trial {self.trial}, draw {self.draw}"


@dataclass(frozen=True)
class Plan:
    """The jobs of a sweep and where its store is. Two rows of a table may rest on one run: see `runs`."""

    folder: SweepFolder
    jobs: tuple[Job, ...]
    warnings: tuple[str, ...] = ()  # data that changed since the jobs were last named
    cache: Cache | None = field(default=None, compare=False)  # None: not read yet

    @property
    def runs(self) -> tuple[Job, ...]:
        """One job for each run: a variant that says what another row says already needs no run of its own."""
        first: dict[str, Job] = {}
        for job in self.jobs:
            first.setdefault(job.fingerprint, job)
        return tuple(first.values())


def expand(sweep: Sweep) -> Iterator[Job]:
    """All jobs, first trials and draws first: a sweep that is stopped early has something of everything."""
    for trial, draw in product(sweep.table.trials, range(sweep.table.draws)):
        seeds = {"split_seed": trial, "train_seed": trial, "hparam_seed": hparam_seed(trial, draw)}
        for case in sweep.cases:
            config = case.config.model_copy(update=seeds)
            yield Job.of(config, case.dataset, case.method, trial, draw)


def make_plan(directory: Path, bar: Bar = no_bar, cache: Path | None = None) -> tuple[Sweep, Plan]:
    """Check the sweep file and name all jobs; `cache` is a folder of decoded images in place of the file's."""
    from longshift.sweep.sweep_file import read_sweep

    sweep = read_sweep(directory, bar, cache)
    jobs, before = [vars(job) for job in expand(sweep)], read_cache(sweep.folder)
    versions = {dataset.name: dataset.version for dataset in sweep.datasets}
    named = replace(before, jobs=jobs, key=_key(sweep.folder, jobs), versions=versions)
    if named != before:
        write_cache(sweep.folder, named)
    changed = tuple(_changed_data(sweep, before.versions))
    return sweep, Plan(sweep.folder, tuple(Job(**job) for job in jobs), changed, named)


def _changed_data(sweep: Sweep, known: dict[str, str]) -> Iterator[str]:
    """A warning for each dataset whose files changed since the jobs were last named."""
    from longshift.data import what_changed

    for dataset in sweep.datasets:
        before = known.get(dataset.name, dataset.version)
        if before != dataset.version:
            meaning = (
                "Finished jobs still count, because a benchmark counts by its name; reports say which version they saw."
                if dataset.benchmark
                else "Its jobs are new ones; finished jobs on the earlier version stay in the store and do not count."
            )
            difference = what_changed(before, dataset.version, sweep.runtime.cache)
            yield f"the files of {dataset.name} changed: {difference}. {meaning}"


def never_started(plan: Plan) -> list[str]:
    """A warning for every method of which a part begins after the last step, by its first job."""
    first: dict[str, Job] = {}
    for job in plan.jobs:
        first.setdefault(job.method, job)
    return [warning for job in first.values() if (warning := job.config.never_starts())]


def load_plan(directory: Path) -> Plan:
    """The jobs of a sweep: from its cache while that fits the sweep file, else named anew."""
    folder = SweepFolder(Path(directory))
    if not folder.file.exists():
        raise UsageError(f"no {folder.file}; write one with: longshift sweep init {directory}")
    cache = read_cache(folder)
    if cache.jobs and cache.key == _key(folder, cache.jobs):
        # The cache does not name the store: a copy of the folder has a store of its own.
        store = store_of(read_toml(folder.file), folder.path)
        return Plan(SweepFolder(folder.path, store), tuple(Job(**job) for job in cache.jobs), cache=cache)
    return make_plan(directory)[1]


def _key(folder: SweepFolder, jobs: Sequence[dict[str, Any]]) -> str:
    """Changes whenever the jobs may.

    They follow from the sweep file, from the code that names them (plugins, too), and from files whose contents count:
    weights and vectors.
    """
    digest = hashlib.sha256(read_limited(folder.file, MOST_TEXT))
    named = {job["run"]["weights"] for job in jobs} - {None}
    weights = {str(file) for text in named for file in split_paths(text)}
    vectors = {str(vector_file(name)) for name in {job["run"]["data"] for job in jobs} if holds_vectors(name)}
    sources = Path(longshift.__file__).parent.rglob("*.py")
    for path in (*sorted(sources), *plugin_files(), *map(Path, sorted(weights | vectors))):
        status = path.stat() if path.exists() else None
        digest.update(f"{path} {status and (status.st_size, status.st_mtime_ns)}".encode())
    return digest.hexdigest()
