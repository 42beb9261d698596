"""From a sweep to its jobs, and the list of jobs as a file.

Naming 20,000 jobs takes seconds and needs every method imported; `status` must not wait for that. The list is
therefore kept in plan.jsonl, under a key made from the sweep file and the code that names jobs.

Trials and draws become seeds in the same way for everybody:

Trial t:            split_seed = t and train_seed = t (other files, other initial weights, other batches).
Draw 0:             hparam_seed = 0, the defaults.
Draw i of trial t:  hparam_seed = 1000 t + i for 1 <= i <= 999; the hyper-parameters follow from the method's name
                    and this seed alone (`longshift.training.run_config.hparam_rng`).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import longshift
from longshift.data import vector_file
from longshift.errors import LongshiftError, UsageError
from longshift.io import MOST_TEXT, file_hash, read_limited, read_toml, require_regular, write_text
from longshift.progress import Bar, no_bar
from longshift.registry import plugin_files
from longshift.sweep.sweep_folder import SweepFolder, absolute, job_id

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

    @property
    def runs(self) -> tuple[Job, ...]:
        """One job for each run: a variant that says what another row says already needs no run of its own."""
        first: dict[str, Job] = {}
        for job in self.jobs:
            first.setdefault(job.fingerprint, job)
        return tuple(first.values())


def expand(sweep: Sweep) -> Iterator[Job]:
    """All jobs, first trials and draws first: a sweep that is stopped early has something of everything."""
    for trial, draw in product(sweep.trials, range(sweep.draws)):
        seeds = {"split_seed": trial, "train_seed": trial, "hparam_seed": hparam_seed(trial, draw)}
        for case in sweep.cases:
            config = case.config.model_copy(update=seeds)
            yield Job(config.fingerprint(), case.dataset, case.method, trial, draw, config.model_dump())


def make_plan(directory: Path, bar: Bar = no_bar) -> tuple[Sweep, Plan]:
    """Check the sweep file, name all jobs, and write plan.jsonl."""
    from longshift.sweep.sweep_file import read_sweep

    sweep = read_sweep(directory, bar)
    jobs, files = tuple(expand(sweep)), _files_that_count(sweep)
    plan = Plan(sweep.folder, jobs, tuple(_changed_data(sweep, _read_head(sweep.folder))))
    text = "".join(json.dumps(vars(job)) + "\n" for job in jobs)
    head = {
        "key": _key(sweep.folder, files), "files": files, "jobs": hashlib.sha256(text.encode()).hexdigest(),
        "versions": {dataset.name: dataset.version for dataset in sweep.datasets},
    }  # fmt: skip
    with contextlib.suppress(LongshiftError):  # only a cache: a read-only sweep can be looked at
        write_text(sweep.folder.plan, f"{json.dumps(head)}\n{text}")
    return sweep, plan


def _changed_data(sweep: Sweep, head: dict[str, Any]) -> Iterator[str]:
    """A warning for each dataset whose files changed since the jobs were last named."""
    from longshift.data import what_changed

    known = head.get("versions")
    for dataset in sweep.datasets:
        before = known.get(dataset.name) if isinstance(known, dict) else None
        if isinstance(before, str) and before != dataset.version:
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
    """The jobs of a sweep: from plan.jsonl while it fits the sweep file, else made anew."""
    folder = SweepFolder(Path(directory))
    if not folder.file.exists():
        raise UsageError(f"no {folder.file}; write one with: longshift sweep init {directory}")
    try:
        head, text = _read_plan(folder)
        same = hashlib.sha256(text.encode()).hexdigest() == head["jobs"]
        if same and head["key"] == _key(folder, head["files"]):
            # Not kept in the file: a copy of the folder has a store of its own.
            store = Path(absolute(str(read_toml(folder.file).get("store", ".")), folder.path))
            return Plan(SweepFolder(folder.path, store), tuple(Job(**json.loads(line)) for line in text.splitlines()))
    except (OSError, ValueError, KeyError, TypeError, LongshiftError):
        pass  # missing, from an older version or damaged: it is only a cache
    try:
        return make_plan(directory)[1]
    except UsageError:
        raise
    except LongshiftError as error:
        raise LongshiftError(f"cannot list the jobs of {directory}: {error}") from error


def _read_plan(folder: SweepFolder) -> tuple[dict[str, Any], str]:
    """The first line of plan.jsonl and the lines of the jobs."""
    require_regular(folder.plan)
    line, _, text = folder.plan.read_text(encoding="utf-8").partition("\n")
    head = json.loads(line)
    if not isinstance(head, dict):
        raise ValueError(f"expected an object, got {line[:40]}")
    return head, text


def _read_head(folder: SweepFolder) -> dict[str, Any]:
    try:
        return _read_plan(folder)[0]
    except (OSError, ValueError):
        return {}


def _key(folder: SweepFolder, files: list[str]) -> str:
    """Changes whenever the jobs may: the sweep file, this version, the code that names jobs, files that count."""
    digest = hashlib.sha256(longshift.__version__.encode())
    package = Path(longshift.__file__).parent
    sources = [*sorted((package / "methods").glob("*.py")), *sorted((package / "sweep").glob("*.py"))]
    sources += [package / "training" / "run_config.py", package / "training" / "resolve_run.py"]
    sources += [package / "data" / "images.py"]
    for source in [folder.file, *sources, *plugin_files()]:
        digest.update(hashlib.sha256(read_limited(source, MOST_TEXT)).digest())
    for file in files:
        digest.update(file_hash(Path(file)).encode())
    return digest.hexdigest()


def _files_that_count(sweep: Sweep) -> list[str]:
    """Weights and vectors: a run's fingerprint follows from their contents."""
    found: dict[str, None] = {}
    for config in (case.config for case in sweep.cases):
        named = (config.weights, str(vector_file(config.data)) if config.vectors else None)
        found |= dict.fromkeys(name for name in named if name)
    return list(found)
