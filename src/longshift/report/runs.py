"""The runs of a report: filters of their table, those that are missing, and the folders that figures read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from longshift.analysis import DomainOutputs, by_domain
from longshift.data import short_version
from longshift.errors import LongshiftError, UsageError, unknown_name
from longshift.io import read_json
from longshift.metrics import fit_temperature
from longshift.report.titles import is_averaged, method_title, order_datasets, order_methods, order_settings, words
from longshift.sweep import SweepFolder, load_plan, runs_file
from longshift.training import RunFolder, read_metrics, read_predictions, read_result

UNKNOWN = "no such run"
COLUMNS = ("dataset", "setting", "target", "method", "trial", "draw", "status", "fingerprint")  # of missing runs


def filter_runs(frame: pd.DataFrame, settings: Sequence[str] = (), draws: int | None = None) -> pd.DataFrame:
    """Return the runs of these settings and of the first `draws` draws (1: only the defaults); by default of all."""
    if draws is not None:
        frame = frame[frame["draw"] < draws]
    if settings:
        known = order_settings(frame["setting"])
        for setting in settings:
            if setting not in known:
                raise UsageError(f"--setting: {unknown_name('setting', setting, known)}")
        frame = frame[frame["setting"].isin(list(settings))]
    return frame.reset_index(drop=True)


def mixed_versions(frame: pd.DataFrame) -> dict[str, dict[str, list[str]]]:
    """Return the benchmarks of which the finished runs saw several versions: dataset -> version -> methods.

    Raises:
        LongshiftError: The dataset is not a benchmark: its numbers cannot be compared. Copies of a benchmark may differ
            in the compression of their images.
    """
    done = frame[frame["status"].isin(["done", "diverged"]) & (frame["data_version"] != "")]
    found: dict[str, dict[str, list[str]]] = {}
    for dataset, rows in done.groupby("dataset", observed=True):
        by_version = rows.groupby("data_version", observed=True)["method"].unique()
        if len(by_version) < 2:
            continue
        versions = {short_version(str(name)): sorted(methods) for name, methods in by_version.items()}
        if not (rows["benchmark"] != "").all():
            raise LongshiftError(
                f"{words('mixed_versions', dataset=dataset, versions=versions)} Their numbers cannot be compared: "
                "run all methods on one version."
            )
        found[str(dataset)] = versions
    return found


def run_names(frame: pd.DataFrame) -> list[str]:
    """Return what identifies the run of each row: its fingerprint or, where it has none, the row itself."""
    return [str(name) if isinstance(name, str) and name else f"row {i}" for i, name in enumerate(frame["fingerprint"])]


def each_once(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the first row of each run of a dataset.

    A run has several rows where a variant is the same run as its method; rows of averaged weights have no runs
    of their own.
    """
    own = frame[~frame["method"].map(lambda name: is_averaged(str(name))).astype(bool)]
    return own[~own.assign(run=run_names(own)).duplicated(["dataset", "run"])]


def join_runs(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Join the runs of several folders.

    A row that two folders have (the same run under the same name) counts once, and a finished one replaces one
    without a number. The same run under two names keeps both, as two rows of the tables.
    """
    if len(frames) == 1:
        return frames[0]
    joined = pd.concat(frames, ignore_index=True)
    finished_first = (joined["status"] != "done").sort_values(kind="stable").index
    named = joined.assign(run=run_names(joined)).loc[finished_first]
    kept = named.index[~named.duplicated(["dataset", "method", "run"])]
    return joined.loc[sorted(kept)].reset_index(drop=True)


@dataclass(frozen=True)
class MissingRuns:
    """The runs without numbers, one row each with the columns `COLUMNS`."""

    frame: pd.DataFrame
    grids: Mapping[tuple[str, str], int]  # runs that were to be there, by dataset and setting

    @property
    def expected(self) -> int:
        """How many runs were to be there."""
        return sum(self.grids.values())

    @property
    def count(self) -> int:
        """How many."""
        return len(self.frame)

    def of(self, setting: str, datasets: Collection[str]) -> MissingRuns:
        """Those of one setting and some datasets."""
        here = (self.frame["setting"] == setting) & self.frame["dataset"].isin(list(datasets))
        grids = {place: n for place, n in self.grids.items() if place[0] in datasets and place[1] == setting}
        return MissingRuns(self.frame[here], grids)

    def notes(self) -> tuple[str, ...]:
        """What is missing, as a note for under a table; none if nothing is."""
        if not self.count:
            return ()
        # Runs that differ in trial and draw only are named together.
        place = ["method", "dataset", "setting", "target", "status"]
        groups = self.frame.groupby(place, sort=False, observed=True).agg(
            runs=("trial", "size"), trial=("trial", "first"), draw=("draw", "first")
        )
        kinds = self.frame["status"].value_counts().sort_index().to_dict()
        return (words("missing_note", missing=self, groups=groups.reset_index().to_dict("records"), kinds=kinds),)


def find_missing(frame: pd.DataFrame) -> MissingRuns:
    """Runs with a status other than done, and holes in the grid of targets and runs; each run once.

    The grid of a dataset and setting is every target seen there for each method's own trials and draws: a folder of
    runs has no plan that could say what was meant to be run. That a method stops at an earlier trial or draw than
    another is not a hole (the tables mark each such number); a trial that it skips is one.
    """
    grid = ["target", "method", "trial", "draw"]
    # Averaged weights have no runs of their own, unless a table holds nothing else.
    averaged = frame["method"].map(lambda name: is_averaged(str(name))).astype(bool)
    frame = (frame if averaged.all() else frame[~averaged]).reset_index(drop=True)
    shared = frame.assign(run=run_names(frame)).duplicated(["dataset", "run"])
    lost = [frame.loc[(frame["status"] != "done") & ~shared, list(COLUMNS)]]
    grids: dict[tuple[str, str], int] = {}
    for (dataset, setting), part in frame.groupby(["dataset", "setting"], observed=True):
        runs = pd.concat([part[grid[1:]].drop_duplicates(), _skipped(part)], ignore_index=True)
        targets = pd.DataFrame({"target": sorted(part["target"].unique())})
        full = pd.MultiIndex.from_frame(targets.merge(runs, how="cross")[grid])
        grids[str(dataset), str(setting)] = len(full) - int(shared[part.index].sum())
        holes = full.difference(pd.MultiIndex.from_frame(part[grid]), sort=False)
        if len(holes):
            named = holes.to_frame(index=False).assign(
                dataset=str(dataset), setting=str(setting), status=UNKNOWN, fingerprint=""
            )
            lost.append(named[list(COLUMNS)])
    found = pd.concat([part for part in lost if len(part)] or lost[:1], ignore_index=True)
    orders = {"dataset": order_datasets, "setting": order_settings, "method": order_methods}
    found = found.sort_values(
        ["dataset", "setting", "target", "method", "trial", "draw"],
        key=lambda column: column.map(orders[column.name](column).index) if column.name in orders else column,
        kind="stable",
        ignore_index=True,
    )
    return MissingRuns(found, grids)


def _skipped(part: pd.DataFrame) -> pd.DataFrame:
    """Trials that others have and a method lacks below its last one, with the draws that its trials share."""
    seen = {int(trial) for trial in part["trial"].unique()}
    found = []
    for method, own in part.groupby("method", observed=True):
        draws = own.groupby("trial")["draw"].agg(set)
        shared = set.intersection(*draws)
        skipped = [trial for trial in seen - set(draws.index) if trial < max(draws.index)]
        found += [(str(method), trial, draw) for trial in skipped for draw in shared]
    return pd.DataFrame(found, columns=["method", "trial", "draw"]).astype(dict(part[["trial", "draw"]].dtypes))


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


def run_folders(path: Path) -> dict[str, Path]:
    """Return the folders of the runs under a report's PATH by fingerprint; a table of runs has none."""
    if path.is_file() or runs_file(path):
        return {}
    if SweepFolder(path).file.exists():
        plan = load_plan(path)
        return {job.fingerprint: plan.folder.store.job(job.fingerprint) for job in plan.jobs}
    found: dict[str, Path] = {}
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
