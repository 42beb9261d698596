"""Where recipes work: one dataset, how much of it is run, one folder of results, one store of runs for all recipes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from longshift.data import DIGITS, Manifest, holds_vectors
from longshift.errors import UsageError
from longshift.io import content_hash, write_text
from longshift.methods import get_method, methods_without_presets
from longshift.report import order_methods
from longshift.settings import find_target, usable_counts
from longshift.sweep import Job, StoreFolder, common_values, hparam_seed
from longshift.training import OpenDataset


@dataclass(frozen=True)
class Scale:
    """Steps, repetitions and grids. `targets` = 0 means all of them."""

    name: str
    steps: int = 5000
    eval_every: int = 300
    trials: int = 3
    draws: int = 10
    targets: int = 0
    study_trials: int = 3  # of the grids over alpha, beta and rho, which have one draw per point
    study_targets: int = 0
    exponents: tuple[int, ...] = (-3, -2, -1, 0, 1, 2)  # of alpha and beta
    rhos: tuple[float, ...] = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
    run: Mapping[str, Any] = field(default_factory=dict)  # further keys of the runs
    shorten: bool = False  # whether schedules are shortened with the steps


FULL_SCALE = Scale("full")
QUICK_STEPS = 100


def quick_scale(data: str) -> Scale:
    """Two targets, two trials, default hyper-parameters, few steps of small batches."""
    run: dict[str, Any] = {"hparams": {"batch_size": 16}}
    if data == DIGITS:
        # Half the size is as readable to the small network and four times as fast; so few steps need a high rate.
        run = {"image_size": 16, "hparams": {"batch_size": 16, "lr": 3e-3}}
    elif not holds_vectors(data):
        run = {"hparams": {"batch_size": 8}}
    return Scale(
        "quick", steps=QUICK_STEPS, eval_every=25, trials=2, draws=1, targets=2, study_trials=1, study_targets=1,
        exponents=(-3, -2, -1, 0, 1), rhos=(0.1, 0.2, 0.5, 1.0, 2.0), run=run, shorten=True,
    )  # fmt: skip


def override_scale(
    scale: Scale, steps: int | None = None, trials: int | None = None, draws: int | None = None
) -> Scale:
    """The scale with some of its numbers replaced."""
    chosen = replace(scale, steps=steps or scale.steps, trials=trials or scale.trials, draws=draws or scale.draws)
    return replace(chosen, study_trials=min(chosen.study_trials, trials or chosen.study_trials))


@dataclass(frozen=True, eq=False)
class Workspace:
    """A dataset and what of it is run. `methods` and `targets` are what the recipes may choose from."""

    dataset: OpenDataset
    benchmark: str | None
    out: Path
    scale: Scale
    methods: tuple[str, ...]
    targets: tuple[str, ...]
    run: Mapping[str, Any] = field(default_factory=dict)  # keys of every run, on top of the scale's
    documents: dict[Path, str] = field(default_factory=dict)  # files of counts that runs name
    named: dict[tuple[Any, ...], Job] = field(default_factory=dict)  # recipes share runs, and naming one takes a while

    @property
    def manifest(self) -> Manifest:
        """The samples of the dataset."""
        return self.dataset.manifest

    @property
    def name(self) -> str:
        """What the dataset is called in tables."""
        return self.benchmark or self.manifest.name

    @property
    def store(self) -> StoreFolder:
        """The runs."""
        return StoreFolder(self.out / "store")

    @property
    def again(self) -> StoreFolder:
        """Chosen runs that were run again because their predictions had not been kept."""
        return StoreFolder(self.out / "predictions")

    @property
    def study_targets(self) -> tuple[str, ...]:
        """Targets of the studies of parameters."""
        return self.targets[: self.scale.study_targets or None]

    @cached_property
    def totals(self) -> dict[str, dict[str, int]]:
        """Samples of each class in each domain that may be trained on."""
        return {domain: dict(row) for domain, row in usable_counts(self.manifest).items()}

    def chosen_methods(self, wanted: Sequence[str]) -> list[str]:
        """Those of the wanted methods that take part."""
        return [name for name in wanted if name in self.methods]

    def job(
        self, method: str, setting: str, target: str, trial: int = 0, draw: int = 0, label: str = "",
        hparams: Mapping[str, Any] | None = None, **keys: Any,
    ) -> Job:  # fmt: skip
        """One run; `label` is the row it stands in where that is not the method's own."""
        asked = (method, setting, target, trial, draw, label, repr(hparams), repr(keys))
        if asked in self.named:
            return self.named[asked]
        schedules = "scaled" if self.scale.shorten else "given"
        # As in DomainBed, a draw gives all methods one learning rate, weight decay, batch size and dropout.
        values = {"schedules": schedules, "shared_draws": True, **self.scale.run, **self.run, **keys}
        steps = int(values.get("steps", self.scale.steps))
        scale, run = common_values(self.scale.run, method), common_values(self.run, method)
        own = {**scale["hparams"], **run["hparams"], **(hparams or {})}
        # Several evaluations, however few the steps.
        every = int(values.get("eval_every", max(1, min(self.scale.eval_every, steps // 2 or 1))))
        request = {
            **values, "benchmark": self.benchmark, "setting": setting, "target": target, "method": method,
            "hparams": own, "steps": steps, "eval_every": every,
            "split_seed": trial, "train_seed": trial, "hparam_seed": hparam_seed(trial, draw),
        }  # fmt: skip
        config = self.dataset.resolve(request, planned=self.documents).config
        job = Job(config.fingerprint(), self.name, label or method, trial, draw, config.model_dump())
        return self.named.setdefault(asked, job)

    def grid(
        self, methods: Sequence[str], settings: Sequence[str], hparams: Mapping[str, Any] | None = None,
        label: str = "", **keys: Any,
    ) -> list[Job]:  # fmt: skip
        """All targets, trials and draws of the scale for some methods and settings, in the order of a sweep."""
        return [
            self.job(method, setting, target, trial, draw, label, hparams, **keys)
            for trial in range(self.scale.trials)
            for draw in range(self.scale.draws)
            for setting in settings
            for target in self.targets
            for method in methods
        ]

    def counts_file(self, name: str, counts: Mapping[str, Mapping[str, int]], validation: int) -> str:
        """The file that a run names for these training counts; written only when something is run."""
        document = {"counts": counts, "validation": validation}
        path = self.out / "settings" / f"{name}-{content_hash(document)[:8]}.json"  # the name tells the content
        self.documents[path] = json.dumps(document, indent=1) + "\n"
        return str(path)

    def write_settings(self) -> None:
        """Write the files of counts that runs have named."""
        for path, text in self.documents.items():
            if not path.exists():
                write_text(path, text)


def open_workspace(
    data: str | OpenDataset,
    scale: Scale,
    out: Path | None = None,
    benchmark: str | None = None,
    methods: Sequence[str] = (),
    targets: Sequence[str] = (),
    run: Mapping[str, Any] | None = None,
) -> Workspace:
    """Load the dataset and resolve names; nothing is written."""
    dataset = OpenDataset(data) if isinstance(data, str) else data
    manifest, known = dataset.manifest, dataset.recognized_as(benchmark)
    if len(manifest.domain_names) < 3:
        raise UsageError(
            f"the recipes compare source domains and need 3 domains at least, found {len(manifest.domain_names)} "
            f"in {manifest.name}"
        )
    place = known or (DIGITS if dataset.data == DIGITS else Path(dataset.data).stem)
    names = order_methods(get_method(name).info.name for name in methods or methods_without_presets())
    wanted = [find_target(manifest, name, known) for name in targets] or list(manifest.domain_names)
    if not targets and scale.targets:
        wanted = wanted[: scale.targets]
    folder = out or Path("reproduce") / place / ("quick" if scale.name == "quick" else "")
    return Workspace(dataset, known, folder, scale, tuple(names), tuple(dict.fromkeys(wanted)), dict(run or {}))
