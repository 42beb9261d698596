"""Finished runs as a table: one row per run, from a sweep, a folder of runs, or a CSV file written earlier."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from longshift.engine.record import RunFolder
from longshift.errors import LongshiftError, UsageError
from longshift.files import read_json, replacing
from longshift.sweep.layout import SweepFolder, absolute
from longshift.sweep.plan import Job, load_plan
from longshift.sweep.seeds import draw_of
from longshift.sweep.store import FINISHED, scan
from longshift.sweep.summary import GAPS, LAST_MEASURES, MEASURES, ORACLE_MEASURES, read_summary, with_average
from longshift.toml import read_toml
from longshift.words import counted

RUNS_FILE = "runs.csv"
KEYS = ("dataset", "benchmark", "setting", "target", "method", "backbone")
TEXT = ("fingerprint", *KEYS, "status", "hparams", "commit", "device")
WHOLE = ("trial", "draw", "hparam_seed", "split_seed", "train_seed", "selected_step", "steps", "oracle_step")
# Not in every table: earlier versions did not measure them.
LATER_COLUMNS = (*GAPS, *(f"last_{name}" for name in GAPS))
MACHINE_COLUMNS = ("seconds_per_step", "seconds_total", "memory_gib", "commit", "device")
COLUMNS = (
    "fingerprint", *KEYS, "ratio", "trial", "draw", "hparam_seed", "split_seed", "train_seed", "status",
    "selected_step", "steps", *MEASURES, *LAST_MEASURES, "oracle_step", *ORACLE_MEASURES,
    "seconds_per_step", "seconds_total", "memory_gib", "hparams", "commit", "device",
)  # fmt: skip
NUMBERS = tuple(name for name in COLUMNS if name not in TEXT and name not in WHOLE)
ORDER = ["dataset", "setting", "target", "method", "trial", "draw", "fingerprint"]


def collect(path: Path | str, missing: bool = False) -> pd.DataFrame:
    """The finished runs under `path`, sorted, with the columns `COLUMNS`.

    `path` is a sweep's folder, a folder of runs, a CSV file by `write_runs_csv`, or a folder with such a runs.csv. With
    `missing`, jobs of a sweep that have no result are there too, with the status failed, corrupt, running or waiting
    and no numbers. A run that averaged its weights has a second row, as the method "ndcl+ema".
    """
    path = Path(path)
    file = runs_file(path)
    if file is not None:
        return read_runs_csv(file)
    if not path.is_dir():
        raise UsageError(f"no sweep, folder of runs or CSV file at {path}")
    rows = _sweep_rows(path, missing) if SweepFolder(path).file.exists() else _folder_rows(path)
    return as_frame(rows)


def runs_file(path: Path) -> Path | None:
    """The CSV file that stands for `path`: itself, or DIR/runs.csv where the runs themselves are not at hand.

    Published results are such a folder, also with the sweep file that made them beside the table.
    """
    if path.is_file():
        return path
    table = path / RUNS_FILE
    if not table.is_file():
        return None
    sweep = SweepFolder(path)
    if sweep.file.exists():
        store = read_toml(sweep.file).get("store", ".")
        return None if SweepFolder(path, Path(absolute(str(store), path))).store.jobs.is_dir() else table
    return None if any(path.glob("*/result.json")) else table


def _sweep_rows(path: Path, missing: bool) -> Iterable[dict[str, Any]]:
    plan = load_plan(path)
    entries = scan(plan.folder.store, [job.fingerprint for job in plan.runs])
    for job in plan.jobs:
        entry = entries[job.fingerprint]
        if entry.state in FINISHED:
            yield from with_average({**entry.row(), **_place(job)})
        elif missing:
            run = {name: job.run[name] for name in job.run if name in COLUMNS and name != "hparams"}
            yield {**run, **_place(job), "fingerprint": job.fingerprint, "status": entry.state}


def _place(job: Job) -> dict[str, Any]:
    return {"dataset": job.dataset, "method": job.method, "trial": job.trial, "draw": job.draw}


def _folder_rows(path: Path) -> Iterable[dict[str, Any]]:
    found = False
    for file in sorted(path.glob("*/result.json")):
        found = True
        fingerprint = read_json(RunFolder(file.parent).config).get("fingerprint", "")
        row = read_summary(file.parent, fingerprint)
        name = row["benchmark"] or Path(row["data"]).stem
        place = {"dataset": name, "trial": row["split_seed"], "draw": draw_of(row["hparam_seed"])}
        yield from with_average({**row, **place})
    if not found:
        raise LongshiftError(
            f"{path} has no sweep.toml, no runs.csv and no folder with a finished run (result.json) in it"
        )


def as_frame(rows: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """Rows as a table with fixed columns, types and order, whatever they were read from."""
    listed = list(rows)
    frame = pd.DataFrame({name: [row.get(name) for row in listed] for name in COLUMNS}, dtype=object)
    return _typed(frame)


def _typed(frame: pd.DataFrame) -> pd.DataFrame:
    columns: dict[str, Any] = {}
    for name in COLUMNS:
        column = frame[name]
        if name in TEXT:
            columns[name] = column.where(column.notna(), "").astype(str)
        elif name in WHOLE:
            columns[name] = pd.to_numeric(column.replace("", None)).astype("Int64")
        else:
            columns[name] = pd.to_numeric(column.replace("", None)).astype("float64")
    return pd.DataFrame(columns).sort_values(ORDER, kind="stable", ignore_index=True)


def write_runs_csv(frame: pd.DataFrame, path: Path | str) -> None:
    """Write runs as CSV: the same runs give the same bytes, and reading them back gives the same numbers."""
    ordered = frame.sort_values([name for name in ORDER if name in frame], kind="stable")
    with replacing(Path(path)) as temporary:
        ordered.to_csv(temporary, index=False, lineterminator="\n")


def read_runs_csv(path: Path | str) -> pd.DataFrame:
    """Read what `write_runs_csv` wrote; columns of other names are passed over."""
    try:
        # As text first: a domain called "NA" or "007" is a name, and floats must come back to the last bit.
        frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise LongshiftError(f"cannot read {path} as a table of runs: {error}") from error
    lacking = [name for name in COLUMNS if name not in frame and name not in (*MACHINE_COLUMNS, *LATER_COLUMNS)]
    if lacking:
        raise LongshiftError(f"{path} is no table of runs: it lacks the columns {', '.join(lacking)}")
    for name in (*MACHINE_COLUMNS, *LATER_COLUMNS):
        if name not in frame:
            frame[name] = ""
    try:
        for name in NUMBERS:
            frame[name] = [float(text) if text else None for text in frame[name]]
        typed = _typed(frame)
    except (ValueError, TypeError) as error:
        raise LongshiftError(f"{path} is no table of runs: {error}") from error
    unnamed = int(typed[["trial", "draw"]].isna().any(axis=1).sum())
    if unnamed:
        raise LongshiftError(f"{path} is no table of runs: trial or draw is empty in {counted(unnamed, 'row')}")
    return typed


def drop_machine_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """Without what depends on the machine and the moment: times, memory, commit, device."""
    return frame.drop(columns=list(MACHINE_COLUMNS))
