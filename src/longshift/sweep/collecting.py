"""Finished runs as a table, from a sweep, a folder of runs, or a table written earlier; the best ones as TOML."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd

from longshift.errors import LongshiftError, UsageError
from longshift.io import content_hash, read_json, read_toml
from longshift.sweep.columns import read_row, unfinished_row, with_average
from longshift.sweep.jobs import Job, Plan, draw_of, load_plan
from longshift.sweep.run_table import as_frame, read_runs
from longshift.sweep.selection import best_runs
from longshift.sweep.state import FINISHED, JobState, read_states, table_rows
from longshift.sweep.sweep_folder import SweepFolder, store_of
from longshift.training import RunConfig, RunFolder

PLACE = ("dataset", "method", "trial", "draw")  # columns that describe the job, not the run


def collect(path: Path | str, missing: bool = False) -> pd.DataFrame:
    """Collect the finished runs under a path.

    Args:
        path: A sweep's folder, a folder of runs, a table of runs (*.parquet), or a folder with a
            runs.parquet and no runs.
        missing: Also return jobs of a sweep that have no result, with the status failed, running or waiting
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
        store = store_of(read_toml(sweep.file), path)
        return None if SweepFolder(path, store).store.jobs.is_dir() else sweep.table
    return None if any(path.glob("*/result.json")) else sweep.table


def collect_plan(plan: Plan, missing: bool = False, others: bool = False) -> pd.DataFrame:
    """The finished jobs of a plan, from its store and from the table next to its sweep file; see `collect`.

    With `others`, also the rows of that table that left the plan.
    """
    states = read_states(plan)
    rows = [row for job in plan.jobs for row in _job_rows(job, states[job.fingerprint], missing)]
    if others and plan.folder.table.exists():
        planned = {tuple(row[name] for name in ("fingerprint", *PLACE)) for row in rows}
        made = (row for run in table_rows(plan.folder).values() for row in run)
        rows += [row for row in made if tuple(row[name] for name in ("fingerprint", *PLACE)) not in planned]
    return as_frame(rows)


def _job_rows(job: Job, found: JobState, missing: bool) -> Iterable[dict[str, Any]]:
    place = {name: getattr(job, name) for name in PLACE}
    if found.state in FINISHED:
        yield from with_average({**found.row(), **place})
    elif missing:
        yield {**unfinished_row(job.run, job.fingerprint, found.state), **place}


def _folder_rows(path: Path) -> Iterable[dict[str, Any]]:
    found = False
    for file in sorted(path.glob("*/result.json")):
        found = True
        config = read_json(RunFolder(file.parent).config)
        row = read_row(file.parent, config.get("fingerprint", ""))
        dataset = row["benchmark"] or Path(config["run"]["data"]).stem
        place = {"dataset": dataset, "trial": row["split_seed"], "draw": draw_of(row["hparam_seed"])}
        yield from with_average({**row, **place})
    if not found:
        raise LongshiftError(
            f"Expected a sweep.toml, a runs.parquet or folders with a finished run (result.json) in {path}, got none."
        )


@dataclass(frozen=True)
class BestConfig:
    """The run with the best validation accuracy of a method on one dataset, setting and target.

    Attributes:
        file: DATASET/SETTING/TARGET/METHOD.toml, with what a file name can hold of these names.
        accuracy: Its accuracy on the balanced validation set.
        trial: Its trial.
        draw: Its draw of hyper-parameters.
        toml: Its configuration, with its seeds and all hyper-parameters, for `longshift train --config`.
    """

    file: PurePosixPath
    accuracy: float
    trial: int
    draw: int
    toml: str


def best_configs(plan: Plan, frame: pd.DataFrame) -> list[BestConfig]:
    """The best configuration of each dataset, setting, target and method, chosen by validation."""
    runs = {job.fingerprint: job.run for job in plan.jobs}
    return [
        BestConfig(
            PurePosixPath(*(_file_name(str(row[key])) for key in ("dataset", "setting", "target")))
            / f"{_file_name(str(row['method']))}.toml",
            row["validation_accuracy"], row["trial"], row["draw"], run_toml(runs[str(row["fingerprint"])]),
        )
        for row in best_runs(frame).to_dict("records")
    ]  # fmt: skip


def run_toml(run: dict[str, Any]) -> str:
    """A run as TOML: values that differ from the defaults, and the tables of hyper-parameters and style."""
    defaults = {name: field.default for name, field in RunConfig.model_fields.items()}
    config = RunConfig.model_validate(run)
    style = config.style_config()
    tables = {"hparams": config.method_config().to_dict(), "style": style.to_dict() if style else {"mix": "none"}}
    kept = {
        name: value
        for name, value in run.items()
        if name not in tables
        and value is not None
        and (value != defaults[name] or name in ("data", "method", "setting"))
    }
    lines = [f"{name} = {_toml(value)}" for name, value in kept.items()]
    for table, values in tables.items():
        lines += ["", f"[{table}]", *(f"{name} = {_toml(value)}" for name, value in values.items())]
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    # TOML writes strings, integers and booleans as JSON does; repr keeps every digit of a float.
    return repr(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


def _file_name(name: str) -> str:
    """The name for a file; a hash keeps names apart that differ only in what a file cannot have ("a b", "a_b")."""
    plain = "".join(c if c.isalnum() or c in "-_." else "_" for c in name).lstrip(".")
    return plain if plain == name else f"{plain}-{content_hash(name)[:6]}"
