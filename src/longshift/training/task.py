"""From a resolved run to its data: setting, split, store."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from longshift.array_types import IntArray
from longshift.data import Manifest, Store, load_dataset, open_store
from longshift.errors import LongshiftError
from longshift.methods import Problem
from longshift.progress import Bar, no_bar
from longshift.settings import Split, make_split, samples_kept_together
from longshift.training.features import CopyRecipe, FeatureRequest, FrozenNetwork, open_features, require_readable
from longshift.training.resolve_run import ResolvedRun, find_setting, require_version
from longshift.training.run_config import RunConfig, Runtime


@dataclass(frozen=True, eq=False)
class Task:
    """Everything a method is trained and judged on."""

    manifest: Manifest
    split: Split
    store: Store
    network: FrozenNetwork | None = None  # which computed the features in the store; None for pixels and vectors

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

    def training_rows(self) -> tuple[IntArray, IntArray]:
        """The rows of the store to train on, and the sample that each shows.

        Copies with the style of an image that is not trained on are left out: training must see neither the target
        nor images for validation and tests, and with partners of the same class it would also use their labels.
        """
        train, store = self.split.train, self.store
        samples = np.tile(train, store.views)
        rows = samples + len(self.manifest) * np.repeat(np.arange(store.views), len(train))
        styles = samples if store.style_samples is None else store.style_samples[rows]
        kept = np.isin(styles, train)
        return rows[kept], samples[kept]


def split_of(run: ResolvedRun, cache: Path | None = None) -> Split:
    """The split of a run; raise where the data have too few samples for it."""
    config, manifest = run.config, run.manifest
    setting, third = run.setting or find_setting(manifest, config), config.validation is not None
    groups = samples_kept_together(manifest, cache)
    split = make_split(manifest, setting, config.split_seed, shrink=config.shrink, third=third, groups=groups)
    _check_trainable(split)
    return split


def make_task(
    run: RunConfig | ResolvedRun, runtime: Runtime | None = None, bar: Bar | None = None, known: Task | None = None
) -> Task:
    """Make the split and open (or build) the store.

    Args:
        run: The run; its configuration alone only where it was resolved before (as in a run's folder).
        runtime: The cache and, for features, the device that computes them.
        bar: Shows the progress of decoding.
        known: A task with the same `inputs_key`, whose manifest and store are used.
    """
    if isinstance(run, RunConfig):
        run = ResolvedRun(run, known.manifest if known else load_dataset(run.data))
    config, manifest, cache = run.config, run.manifest, runtime.cache if runtime else None
    split = split_of(run, cache)
    if known:
        return Task(manifest, split, known.store, known.network)
    network = FrozenNetwork.of(config) if config.frozen else None
    store = open_inputs(config, manifest, network, runtime, bar)
    require_version(config.data_version, store.version, f"the data of this run, {config.data}, have changed", cache)
    return Task(manifest, split, store, network)


def open_inputs(
    config: RunConfig,
    manifest: Manifest,
    network: FrozenNetwork | None,
    runtime: Runtime | None = None,
    bar: Bar | None = None,
) -> Store:
    """The inputs of a run's training: pixels, vectors, or features of a frozen network."""
    runtime, show = runtime or Runtime(), bar or no_bar
    if network is None:
        with show(f"decoding {manifest.name}", len(manifest)) as tick:
            return open_store(manifest, config.size, runtime.cache, tick)
    with show(f"computing features of {manifest.name}", config.views * len(manifest)) as tick:
        store = open_features(manifest, network, FeatureRequest.of(config), runtime=runtime, tick=tick)
    require_readable(store)
    return store


def inputs_key(config: RunConfig) -> tuple[Any, ...]:
    """What decides the store of a run: runs with equal keys can share it."""
    if not config.frozen:
        return (config.data, config.data_version, config.size)
    recipe = CopyRecipe.of(config) if config.views > 1 else None
    return (
        config.data, config.data_version, config.size, config.backbone_name, config.pretrained, config.weights,
        config.views, recipe, config.preprocessing,
    )  # fmt: skip


class TaskCache:
    """The most recent tasks: a dataset is read once per worker, a split once for the methods that share it."""

    def __init__(self, runtime: Runtime | None = None, most: int = 8) -> None:
        self._runtime, self._most = runtime, most
        self._tasks: OrderedDict[tuple[Any, ...], Task] = OrderedDict()

    def get(self, config: RunConfig, bar: Bar | None = None) -> Task:
        """The task of a run."""
        data = inputs_key(config)
        key = (
            data, config.benchmark, config.setting, config.target, config.ratio, config.shrink, config.split_seed,
            config.validation,
        )  # fmt: skip
        if key not in self._tasks:
            known = next((task for other, task in self._tasks.items() if other[0] == data), None)
            self._tasks[key] = make_task(config, self._runtime, bar, known)
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
