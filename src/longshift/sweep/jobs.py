"""From a sweep to its jobs, and the list of jobs as a file.

Naming 20,000 jobs takes seconds and needs every method imported; `status` must not wait for that. The list is
therefore kept in plan.jsonl, under a key made from the sweep file and the code that names jobs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import longshift
from longshift.data import holds_vectors
from longshift.errors import LongshiftError, UsageError
from longshift.files import file_hash, replacing
from longshift.sweep.sweep_folder import SweepFolder, absolute, job_id
from longshift.sweep.trial_seeds import hparam_seed
from longshift.toml import read_toml

if TYPE_CHECKING:
    from longshift.sweep.sweep_file import Sweep


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
    from longshift.sweep.sweep_file import run_config
    from longshift.training import choose_size

    methods = sweep.compared()
    places = [
        (dataset, {"data": dataset.data, "setting": setting, "target": target})
        for dataset in sweep.datasets
        for setting in sweep.settings
        for target in dataset.targets
    ]
    for trial, draw in product(sweep.trials, range(sweep.draws)):
        seeds = {"split_seed": trial, "train_seed": trial, "hparam_seed": hparam_seed(trial, draw)}
        for (dataset, place), (method, values) in product(places, methods):
            benchmark = dataset.benchmark_of(values.get("ratio"))
            config = choose_size(run_config({**values, **place, **seeds, "benchmark": benchmark}))
            yield Job(config.fingerprint(), dataset.name, method, trial, draw, config.model_dump())


def make_plan(directory: Path) -> tuple[Sweep, Plan]:
    """Check the sweep file, name all jobs, and write plan.jsonl."""
    from longshift.sweep.sweep_file import read_sweep

    sweep = read_sweep(directory)
    plan = Plan(sweep.folder, tuple(expand(sweep)))
    with replacing(sweep.folder.plan) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.write(_key(sweep.folder) + "\n")
        for job in plan.jobs:
            file.write(json.dumps(asdict(job)) + "\n")
    return sweep, plan


def never_started(plan: Plan) -> list[str]:
    """A warning for every method of which a part begins after the last step, by its first job."""
    from longshift.sweep.sweep_file import run_config

    first: dict[str, Job] = {}
    for job in plan.jobs:
        first.setdefault(job.method, job)
    return [warning for job in first.values() if (warning := run_config(job.run).never_starts())]


def load_plan(directory: Path) -> Plan:
    """The jobs of a sweep: from plan.jsonl while it fits the sweep file, else made anew."""
    folder = SweepFolder(Path(directory))
    if not folder.file.exists():
        raise UsageError(f"no {folder.file}; write one with: longshift sweep init {directory}")
    try:
        with folder.plan.open(encoding="utf-8") as file:
            if file.readline().strip() == _key(folder):
                store = Path(absolute(read_toml(folder.file).get("store", "."), folder.path))
                return Plan(SweepFolder(folder.path, store), tuple(Job(**json.loads(line)) for line in file))
    except (OSError, ValueError, KeyError, TypeError):
        pass  # missing, from an older version or damaged: it is only a cache
    try:
        return make_plan(directory)[1]
    except UsageError:
        raise
    except LongshiftError as error:
        raise LongshiftError(f"cannot list the jobs of {directory}: {error}") from error


def _key(folder: SweepFolder) -> str:
    """Changes whenever the jobs may: the sweep file, this version, the methods' code, files that count by contents."""
    digest = hashlib.sha256(longshift.__version__.encode())
    package = Path(longshift.__file__).parent
    sources = [*sorted((package / "methods").glob("*.py")), *sorted((package / "sweep").glob("*.py"))]
    sources += [package / "training" / "run_config.py", package / "training" / "task.py"]
    sources += [package / "data" / "image_size.py"]
    for source in [folder.file, *sources, *_plugins(folder)]:
        digest.update(hashlib.sha256(source.read_bytes()).digest())
    for file in _contents(folder):
        digest.update(file_hash(file).encode())
    return digest.hexdigest()


def _contents(folder: SweepFolder) -> list[Path]:
    """Weights and vectors that the sweep names: a run's fingerprint has their contents in it."""
    file = read_toml(folder.file)
    tables = [file.get("run"), *_tables(file.get("overrides")), *_listed(file.get("variants"))]
    named = [table.get("weights") for table in tables if isinstance(table, Mapping)]
    named += [table.get("path") for table in _listed(file.get("datasets")) if isinstance(table, Mapping)]
    paths = [Path(absolute(name, folder.path)) for name in named if isinstance(name, str)]
    return [path for path in paths if path.is_file() and (path.suffix == ".safetensors" or holds_vectors(path))]


def _tables(value: object) -> list[object]:
    return list(value.values()) if isinstance(value, Mapping) else []


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else []


def _plugins(folder: SweepFolder) -> list[Path]:
    """The files of methods that the sweep names as path/to/file.py:Class."""
    file = read_toml(folder.file)
    methods, variants = file.get("methods"), file.get("variants")
    listed = list(methods) if isinstance(methods, list) else []
    listed += [v.get("method") for v in variants if isinstance(v, dict)] if isinstance(variants, list) else []
    names = [name for name in listed if isinstance(name, str)]
    paths = [folder.path / Path(name.rpartition(":")[0]).expanduser() for name in names if ".py:" in name]
    return [path for path in paths if path.is_file()]
