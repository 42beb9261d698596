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

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import longshift
from longshift.errors import LongshiftError, UsageError
from longshift.files import file_hash, replacing
from longshift.plugins import plugin_files
from longshift.sweep.sweep_folder import SweepFolder, absolute, job_id
from longshift.toml import read_toml

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


def make_plan(directory: Path) -> tuple[Sweep, Plan]:
    """Check the sweep file, name all jobs, and write plan.jsonl."""
    from longshift.sweep.sweep_file import read_sweep

    sweep = read_sweep(directory)
    plan = Plan(sweep.folder, tuple(expand(sweep)))
    files = _files_that_count(sweep)
    head = {"key": _key(sweep.folder, files), "files": files}
    with replacing(sweep.folder.plan) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.write(json.dumps(head) + "\n")
        for job in plan.jobs:
            file.write(json.dumps(vars(job)) + "\n")
    return sweep, plan


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
        with folder.plan.open(encoding="utf-8") as file:
            head = json.loads(file.readline())
            if head["key"] == _key(folder, head["files"]):
                # Not kept in the file: a copy of the folder has a store of its own.
                store = Path(absolute(str(read_toml(folder.file).get("store", ".")), folder.path))
                return Plan(SweepFolder(folder.path, store), tuple(Job(**json.loads(line)) for line in file))
    except (OSError, ValueError, KeyError, TypeError, LongshiftError):
        pass  # missing, from an older version or damaged: it is only a cache
    try:
        return make_plan(directory)[1]
    except UsageError:
        raise
    except LongshiftError as error:
        raise LongshiftError(f"cannot list the jobs of {directory}: {error}") from error


def _key(folder: SweepFolder, files: list[str]) -> str:
    """Changes whenever the jobs may: the sweep file, this version, the code that names jobs, files that count."""
    digest = hashlib.sha256(longshift.__version__.encode())
    package = Path(longshift.__file__).parent
    sources = [*sorted((package / "methods").glob("*.py")), *sorted((package / "sweep").glob("*.py"))]
    sources += [package / "training" / "run_config.py", package / "training" / "resolve_run.py"]
    sources += [package / "data" / "image_size.py"]
    for source in [folder.file, *sources, *plugin_files()]:
        digest.update(hashlib.sha256(source.read_bytes()).digest())
    for file in files:
        digest.update(file_hash(Path(file)).encode())
    return digest.hexdigest()


def _files_that_count(sweep: Sweep) -> list[str]:
    """Weights and vectors: a run's fingerprint follows from their contents."""
    found: dict[str, None] = {}
    for config in (case.config for case in sweep.cases):
        named = (config.weights, config.data if config.vectors else None)
        found |= dict.fromkeys(name for name in named if name)
    return list(found)
