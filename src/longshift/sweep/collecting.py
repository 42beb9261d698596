"""Collect finished runs as a table: from a sweep, a folder of runs, or a table written earlier."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from longshift.data import DIGITS, EMBEDDED
from longshift.errors import LongshiftError, UsageError
from longshift.io import read_json, read_toml
from longshift.results import as_frame, read_runs, read_summary, unfinished_row, with_average
from longshift.sweep.job_status import PLACE, job_entries, read_run_table
from longshift.sweep.job_store import FINISHED, Entry
from longshift.sweep.jobs import Job, Plan, draw_of, load_plan
from longshift.sweep.sweep_folder import SweepFolder, absolute
from longshift.training import RunFolder


def collect(path: Path | str, missing: bool = False) -> pd.DataFrame:
    """Collect the finished runs under a path.

    Args:
        path: A sweep's folder, a folder of runs, a table of runs (*.parquet or *.csv), or a folder with a
            runs.parquet or runs.csv and no runs.
        missing: Also return jobs of a sweep that have no result, with the status failed, corrupt, running or waiting
            and without numbers.

    Returns:
        One row per run, sorted, with the columns of docs/reference/run-table.md. A run that averaged its weights
        has a second row, as the method "ndcl+ema".

    Raises:
        UsageError: There is nothing to collect at `path`.
        LongshiftError: The runs or the table cannot be read.

    Example:
        >>> from longshift.sweep import collect
        >>> runs = collect("results/pacs-frozen")  # doctest: +SKIP
    """
    path = Path(path)
    file = runs_file(path)
    if file is not None:
        return read_runs(file)
    if not path.is_dir():
        raise UsageError(f"Expected a sweep, a folder of runs or a table of runs, got nothing at {path}.")
    return collect_plan(load_plan(path), missing) if SweepFolder(path).file.exists() else as_frame(_folder_rows(path))


def runs_file(path: Path) -> Path | None:
    """The table that stands for `path`: the file itself, or the table in a folder that has no runs.

    Published results are such a folder; it may also hold the sweep file that made them.
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
    """Whether a dataset of a sweep is not where its file says; its jobs cannot be listed then."""
    file = SweepFolder(path).file
    datasets = read_toml(file).get("datasets") if file.exists() else None
    tables = [table for table in datasets if isinstance(table, dict)] if isinstance(datasets, list) else []
    places = [str(table["path"]) for table in tables if table.get("path", DIGITS) not in EMBEDDED]
    return any(not Path(absolute(place, path)).exists() for place in places)


def collect_plan(plan: Plan, missing: bool = False) -> pd.DataFrame:
    """The finished jobs of a plan, from its store and from the table next to its sweep file; see `collect`."""
    return as_frame(_plan_rows(plan, job_entries(plan), missing))


def collect_union(plan: Plan) -> pd.DataFrame:
    """The finished jobs of a plan, and the rows of the table next to its sweep file that left the plan."""
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
            yield {**unfinished_row(job.run, job.fingerprint, entry.state), **_place(job)}


def _place(job: Job) -> dict[str, Any]:
    return {name: getattr(job, name) for name in PLACE}


def _folder_rows(path: Path) -> Iterable[dict[str, Any]]:
    found = False
    for file in sorted(path.glob("*/result.json")):
        found = True
        config = read_json(RunFolder(file.parent).config)
        row = read_summary(file.parent, config.get("fingerprint", ""))
        dataset = row["benchmark"] or Path(config["run"]["data"]).stem
        place = {"dataset": dataset, "trial": row["split_seed"], "draw": draw_of(row["hparam_seed"])}
        yield from with_average({**row, **place})
    if not found:
        raise LongshiftError(
            f"Expected a sweep.toml, a runs.parquet or folders with a finished run (result.json) in {path}, got none."
        )
