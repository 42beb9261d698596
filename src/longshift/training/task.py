"""From a run's configuration to its data: manifest, setting, split, store."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from longshift.array_types import IntArray
from longshift.data import Manifest, Store, fitting_size, load_dataset, open_store
from longshift.errors import LongshiftError
from longshift.methods import Problem
from longshift.nn import SMALL_CONV
from longshift.progress import Tick, silent
from longshift.settings import Split, find_target, make_split, recognise, setting_for
from longshift.training.run_config import SMALL_IMAGE, RunConfig, parse_run_config

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


def declare_benchmark(config: RunConfig) -> RunConfig:
    """The configuration with its benchmark named, where the data's own names tell which it is.

    A recognised benchmark gets the published counts; naming it makes the hyper-parameters that depend on the benchmark
    and the run's fingerprint those of a run that named it from the start.
    """
    if config.benchmark is not None or config.vectors or config.data == "digits" or config.ratio is not None:
        return config
    name = recognise(load_dataset(config.data))
    return config if name is None else parse_run_config({**config.model_dump(), "benchmark": name})


def name_target(config: RunConfig) -> RunConfig:
    """The configuration with its target by the data's own name: "A" of PACS and "art_painting" are one run."""
    if not config.target:
        return config
    manifest = load_dataset(config.data)
    known = recognise(manifest, config.benchmark) if config.benchmark else None
    return config.model_copy(update={"target": find_target(manifest, config.target, known)})


def choose_size(config: RunConfig) -> RunConfig:
    """The configuration with an image size, where none is stated and the images are smaller than the protocol's.

    Images of 64 pixels or less stay as they are and go, unless a network or weights are named, through the network for
    small images. Digits, vectors, benchmarks and what starts from published weights keep the sizes they have.
    """
    stated = config.image_size or config.benchmark or config.vectors or config.data == "digits"
    if stated or config.pretrained or config.weights or config.backbone not in ("auto", SMALL_CONV):
        return config
    size = _size_of_images(config.data, config.size)
    if size >= config.size or (config.backbone == "auto" and size > SMALL_IMAGE):
        return config
    return config.model_copy(update={"image_size": size})


@functools.lru_cache(maxsize=16)
def _size_of_images(data: str, most: int) -> int:
    """Looked up once per process: a sweep asks for each of its jobs."""
    return fitting_size(load_dataset(data), most)


def say_network(config: RunConfig) -> str:
    """Network, start and image size in a line."""
    if config.vectors:
        return f"{config.backbone_name} on vectors"
    start = Path(config.weights).name if config.weights else "pretrained" if config.pretrained else "random"
    return f"{config.backbone_name} from {start} weights, on {config.size}x{config.size} pixels"


def make_task(config: RunConfig, cache: Path | None = None, bar: Bar | None = None, known: Task | None = None) -> Task:
    """Load the data, make the split, open (or build) the store; `known`: a task on the same data and image size."""
    manifest = known.manifest if known else load_dataset(config.data)
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


def _check_trainable(split: Split) -> None:
    """Every source gives training samples, and there is something to select on."""
    empty = [source for source, row in zip(split.sources, split.counts, strict=True) if not row.sum()]
    if empty:
        raise LongshiftError(
            f"{split.setting} leaves no training sample in {', '.join(empty)}; every source domain needs at least one"
        )
    if not len(split.validation):
        raise LongshiftError(
            f"{split.setting} leaves no validation sample, so that no weights could be selected; ask for at least 1 "
            "per class and domain"
        )


def no_bar(label: str, total: int) -> AbstractContextManager[Tick]:
    """Shows nothing."""
    return nullcontext(silent)
