"""What figures need of single runs: read from their folders, only for the few methods that are drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from longshift.analysis import DomainOutputs, by_domain
from longshift.io import read_json
from longshift.metrics import fit_temperature
from longshift.report.titles import method_title
from longshift.sweep import SweepFolder, load_plan, runs_file
from longshift.training import RunFolder, read_metrics, read_predictions, read_result

Folders = dict[str, Path]  # fingerprint -> folder
KEEP_PREDICTIONS = "train with --save-predictions, or set save_predictions = true under [runtime] in the sweep file"


@dataclass(frozen=True, eq=False)
class Record:
    """One chosen run and where it is kept."""

    folder: Path
    method: str
    dataset: str
    setting: str
    target: str
    trial: int
    result: dict[str, Any]
    rule: str

    @property
    def title(self) -> str:
        """The method as printed."""
        return method_title(self.method)

    @property
    def chosen(self) -> dict[str, Any]:
        """The evaluations of the weights that count; those of an oracle are not kept, the selected ones stand in."""
        part: dict[str, Any] = self.result["last" if self.rule == "last" else "selected"]
        return part

    @property
    def classes(self) -> list[str]:
        """Names of the classes."""
        return list(self.result["split"]["classes"])

    def metrics(self) -> list[dict[str, Any]]:
        """The evaluations along the way."""
        return read_metrics(RunFolder(self.folder))

    def temperature(self, arrays: dict[str, npt.NDArray[Any]]) -> float:
        """What calibrates the probabilities of the kept predictions: the same number that a kept model would have."""
        if "validation_logits" not in arrays:
            return 1.0
        return fit_temperature(arrays["validation_logits"], arrays["validation_labels"], self.folder.name)

    def predictions(self) -> dict[str, npt.NDArray[Any]] | None:
        """The arrays of predictions.npz, if they were kept."""
        path = RunFolder(self.folder).predictions
        return read_predictions(path) if path.exists() else None


def run_folders(path: Path) -> Folders:
    """Return the folders of the runs under a report's PATH; a table of runs has none."""
    if path.is_file() or runs_file(path):
        return {}
    if SweepFolder(path).file.exists():
        plan = load_plan(path)
        return {job.fingerprint: plan.folder.store.job(job.fingerprint) for job in plan.jobs}
    found: Folders = {}
    for file in sorted(path.glob("*/config.json")):
        value = read_json(file)
        if isinstance(value, dict):
            found[str(value.get("fingerprint", ""))] = file.parent
    return found


def read_records(chosen: pd.DataFrame, folders: Mapping[str, Path], methods: Sequence[str]) -> list[Record]:
    """The chosen runs of some methods, in the order of the frame; a folder that is gone is left out."""
    records = []
    for row in chosen[chosen["method"].isin(list(methods))].to_dict("records"):
        folder = folders.get(str(row["fingerprint"]))
        if folder is None or not RunFolder(folder).result.exists():
            continue
        result = read_result(RunFolder(folder), str(row["fingerprint"]))
        records.append(
            Record(
                folder, str(row["method"]), str(row["dataset"]), str(row["setting"]), str(row["target"]),
                int(row["trial"]), result, str(row["rule"]),
            )
        )  # fmt: skip
    return records


def by_method(records: Iterable[Record], methods: Sequence[str]) -> dict[str, list[Record]]:
    """Runs by method, in the order given, without methods that have none."""
    listed = list(records)
    found = {name: [record for record in listed if record.method == name] for name in methods}
    return {name: runs for name, runs in found.items() if runs}


def class_accuracy(records: Sequence[Record]) -> list[float | None]:
    """Target accuracy of each class over the samples of all runs together; None where no run has a sample of it.

    Every sample counts once: three images at one site do not weigh as much as eighty at another, and the numbers are
    the diagonal of the confusion matrix next to them.
    """
    total = sum_confusion(records)
    return [float(total[k, k] / n) if (n := total[k].sum()) else None for k in range(len(total))]


def sum_confusion(records: Sequence[Record]) -> npt.NDArray[np.int64]:
    """The confusion matrices of all runs on their targets, added up: row = true class, column = predicted class."""
    matrices = [np.asarray(record.chosen["target"]["confusion"], dtype=np.int64) for record in records]
    return np.asarray(np.sum(matrices, axis=0), dtype=np.int64)


def domain_predictions(
    arrays: Mapping[str, npt.NDArray[Any]], name: str, names: Sequence[str] = (),
    parts: Sequence[str] = ("validation", "test"),
) -> tuple[tuple[DomainOutputs, ...], DomainOutputs]:  # fmt: skip
    """Return a model's outputs on the held-out samples of each source, and on the target, from kept predictions."""
    parts = [part for part in parts if f"{part}_logits" in arrays]
    domains = [arrays[f"{part}_domains"] for part in (*parts, "target")]
    labels = names or [f"domain {d}" for d in range(1 + max(int(found.max()) for found in domains))]

    def outputs(*parts: str) -> tuple[DomainOutputs, ...]:
        logits, truth, where, features = (
            np.concatenate([arrays[f"{part}_{what}"] for part in parts])
            for what in ("logits", "labels", "domains", "features")
        )
        return by_domain(logits, truth, where, labels, features, name)

    return outputs(*parts), outputs("target")[0]
