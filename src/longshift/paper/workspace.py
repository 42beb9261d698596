"""Where recipes work: one dataset, one folder of results, one store of runs that all recipes share."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from longshift.data import DIGITS, Manifest
from longshift.errors import UsageError
from longshift.files import content_hash, write_text
from longshift.methods import get_method, methods_without_presets
from longshift.paper.protocol_size import Scale, evaluations
from longshift.report import order_methods
from longshift.settings import find_target, usable_counts
from longshift.sweep import Job, StoreFolder, common_values, hparam_seed
from longshift.training import OpenDataset


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
    def data(self) -> str:
        """The dataset as it was named."""
        return self.dataset.data

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
        values = {"schedules": schedules, **self.scale.run, **self.run, **keys}
        steps = int(values.get("steps", self.scale.steps))
        scale, run = common_values(self.scale.run, method), common_values(self.run, method)
        own = {**scale["hparams"], **run["hparams"], **(hparams or {})}
        every = int(values.get("eval_every", evaluations(steps, self.scale.eval_every)))
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
