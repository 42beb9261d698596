"""Finished runs as a table: one row per run, from a sweep, a folder of runs, or a CSV file written earlier."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from longshift.data import DIGITS
from longshift.errors import LongshiftError, UsageError
from longshift.files import read_json
from longshift.results import COLUMNS, as_frame, read_runs_csv, read_summary, with_average
from longshift.sweep.job_status import PLACE, job_entries, read_run_table
from longshift.sweep.job_store import FINISHED, Entry
from longshift.sweep.jobs import Job, Plan, load_plan
from longshift.sweep.sweep_folder import SweepFolder, absolute
from longshift.sweep.trial_seeds import draw_of
from longshift.toml import read_toml
from longshift.training import RunFolder


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
    return collect_plan(load_plan(path), missing) if SweepFolder(path).file.exists() else as_frame(_folder_rows(path))


def runs_file(path: Path) -> Path | None:
    """The CSV file that stands for `path`: itself, or DIR/runs.csv where the runs themselves are not at hand.

    Published results are such a folder, also with the sweep file that made them beside the table.
    """
    if path.is_file():
        return path
    sweep = SweepFolder(path)
    if not sweep.table.is_file():
        return None
    if sweep.file.exists():
        store = read_toml(sweep.file).get("store", ".")
        return None if SweepFolder(path, Path(absolute(str(store), path))).store.jobs.is_dir() else sweep.table
    return None if any(path.glob("*/result.json")) else sweep.table


def data_elsewhere(path: Path) -> bool:
    """Whether a dataset of a sweep is not where its file says: then the jobs of the sweep cannot be listed."""
    file = SweepFolder(path).file
    datasets = read_toml(file).get("datasets") if file.exists() else None
    tables = [table for table in datasets if isinstance(table, dict)] if isinstance(datasets, list) else []
    places = [str(table["path"]) for table in tables if table.get("path", DIGITS) != DIGITS]
    return any(not Path(absolute(place, path)).exists() for place in places)


def collect_plan(plan: Plan, missing: bool = False) -> pd.DataFrame:
    """The finished jobs of a plan, from its store and from the table beside its sweep file; see `collect`."""
    return as_frame(_plan_rows(plan, job_entries(plan), missing))


def collect_union(plan: Plan) -> pd.DataFrame:
    """The finished jobs of a plan, and the rows of the table beside its sweep file that are no longer in the plan."""
    table = read_run_table(plan.folder)
    entries = job_entries(plan, table)
    rows = list(_plan_rows(plan, entries))
    planned = {(job.fingerprint, *_place(job).values()) for job in plan.jobs}
    for fingerprint, place in table.places:
        if (fingerprint, *place.values()) not in planned:
            entry = entries.get(fingerprint) or table.entries[fingerprint]
            rows += with_average({**entry.row(), **place})
    return as_frame(rows)


def _plan_rows(plan: Plan, entries: Mapping[str, Entry], missing: bool = False) -> Iterable[dict[str, Any]]:
    for job in plan.jobs:
        entry = entries[job.fingerprint]
        if entry.state in FINISHED:
            yield from with_average({**entry.row(), **_place(job)})
        elif missing:
            run = {name: job.run[name] for name in job.run if name in COLUMNS and name != "hparams"}
            yield {**run, **_place(job), "fingerprint": job.fingerprint, "status": entry.state}


def _place(job: Job) -> dict[str, Any]:
    return {name: getattr(job, name) for name in PLACE}


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
