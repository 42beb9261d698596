"""From a resolved run to its data: setting, split, store."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from longshift.array_types import IntArray
from longshift.data import Manifest, Store, load_dataset, open_store
from longshift.errors import LongshiftError
from longshift.methods import Problem
from longshift.progress import Tick, silent
from longshift.settings import Split, make_split, setting_for
from longshift.training.resolve_run import ResolvedRun
from longshift.training.run_config import RunConfig

Bar = Callable[[str, int], AbstractContextManager[Tick]]


@dataclass(frozen=True, eq=False)
class Task:
    """Everything a method is trained and judged on."""

    manifest: Manifest
    split: Split
    store: Store

    def labels(self, indices: IntArray) -> IntArray:
        """Class indices of samples."""
        return self.manifest.labels[indices]

    def source_domains(self, indices: IntArray) -> IntArray:
        """Positions in `split.sources` of samples of the source domains."""
        place = {self.manifest.domain_names.index(name): i for i, name in enumerate(self.split.sources)}
        return np.array([place[int(d)] for d in self.manifest.domains[indices]], dtype=np.int64)

    def problem(self, steps: int, pooled: bool = False) -> Problem:
        """What the method may know; `pooled`: all sources are one domain to it."""
        table = self.split.counts.sum(axis=0, keepdims=True) if pooled else self.split.counts
        counts = tuple(tuple(int(n) for n in row) for row in table)
        return Problem(len(self.split.classes), len(counts), counts, steps)

    def training_domains(self, indices: IntArray, pooled: bool = False) -> IntArray:
        """The domain that each training sample counts to."""
        return np.zeros(len(indices), dtype=np.int64) if pooled else self.source_domains(indices)


def make_task(
    run: RunConfig | ResolvedRun, cache: Path | None = None, bar: Bar | None = None, known: Task | None = None
) -> Task:
    """Make the split and open (or build) the store.

    Args:
        run: The run; its configuration alone only where it was resolved before (as in a run's folder).
        cache: Folder of decoded images.
        bar: Shows the progress of decoding.
        known: A task on the same data and image size, whose manifest and store are used.
    """
    if isinstance(run, RunConfig):
        run = ResolvedRun(run, known.manifest if known else load_dataset(run.data))
    config, manifest = run.config, run.manifest
    third = config.validation is not None
    setting = setting_for(
        manifest, config.setting, config.target,
        benchmark=config.benchmark, ratio=config.ratio, validation=config.validation, third=third,
    )  # fmt: skip
    split = make_split(manifest, setting, config.split_seed, shrink=config.shrink, third=third)
    _check_trainable(split)
    if known:
        return Task(manifest, split, known.store)
    with (bar or no_bar)(f"decoding {manifest.name}", len(manifest)) as tick:
        store = open_store(manifest, config.size, cache, tick)
    return Task(manifest, split, store)


class TaskCache:
    """The most recent tasks: a dataset is read once per worker, a split once for the methods that share it."""

    def __init__(self, cache: Path | None = None, most: int = 8) -> None:
        self._cache, self._most = cache, most
        self._tasks: OrderedDict[tuple[Any, ...], Task] = OrderedDict()

    def get(self, config: RunConfig) -> Task:
        """The task of a run."""
        data = (config.data, config.size)
        key = (
            *data, config.benchmark, config.setting, config.target, config.ratio, config.shrink, config.split_seed,
            config.validation,
        )  # fmt: skip
        if key not in self._tasks:
            known = next((task for other, task in self._tasks.items() if other[:2] == data), None)
            self._tasks[key] = make_task(config, self._cache, known=known)
            while len(self._tasks) > self._most:
                self._tasks.popitem(last=False)
        self._tasks.move_to_end(key)
        return self._tasks[key]


def _check_trainable(split: Split) -> None:
    """Every source gives training samples, and there is something to select on."""
    empty = [source for source, row in zip(split.sources, split.counts, strict=True) if not row.sum()]
    if empty:
        raise LongshiftError(
            f"{split.setting} leaves no training sample in {', '.join(empty)}; every source domain needs at least one"
        )
    if not len(split.validation):
        raise LongshiftError(
            f"{split.setting} leaves no validation sample, which selecting weights needs; ask for at least 1 per class "
            "and domain"
        )


def no_bar(label: str, total: int) -> AbstractContextManager[Tick]:
    """Shows nothing."""
    return nullcontext(silent)
