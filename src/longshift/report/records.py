"""What figures need of single runs: read from their folders, only for the few methods that are drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from longshift.engine.record import RunFolder, read_metrics
from longshift.errors import LongshiftError
from longshift.files import read_json
from longshift.report.names import method_title
from longshift.sweep.layout import SweepFolder
from longshift.sweep.plan import load_plan

Folders = dict[str, Path]  # fingerprint -> folder


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

    def predictions(self) -> dict[str, npt.NDArray[Any]] | None:
        """The arrays of predictions.npz, if they were kept."""
        path = RunFolder(self.folder).predictions
        if not path.exists():
            return None
        try:
            with np.load(path, allow_pickle=False) as found:
                return {name: found[name] for name in found.files}
        except Exception as error:  # zipfile, zlib and numpy raise nearly anything on damaged files
            raise LongshiftError(f"cannot read {path}: {error}. Remove it to do without.") from error


def run_folders(path: Path) -> Folders:
    """Where the runs under a report's PATH lie; a CSV file has none."""
    if path.is_file():
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


def read_records(chosen: pd.DataFrame, folders: Folders, methods: Sequence[str]) -> list[Record]:
    """The chosen runs of some methods, in the order of the frame; a folder that is gone is left out."""
    records = []
    for row in chosen[chosen["method"].isin(list(methods))].to_dict("records"):
        folder = folders.get(str(row["fingerprint"]))
        if folder is None or not RunFolder(folder).result.exists():
            continue
        result = read_json(RunFolder(folder).result)
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


def mean_per_class(records: Sequence[Record], part: str = "target") -> list[float | None]:
    """Accuracy of each class, averaged over runs; None where no run has a sample of it."""
    classes = records[0].classes
    sums: list[list[float]] = [[] for _ in classes]
    for record in records:
        found = record.chosen[part]["per_class"]
        for k, name in enumerate(classes):
            if found.get(name) is not None:
                sums[k].append(float(found[name]))
    return [sum(values) / len(values) if values else None for values in sums]
