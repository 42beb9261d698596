"""Finished runs as a table: from a sweep, a folder of runs, or a file (Parquet; CSV is for other programs).

Also the best runs as TOML.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import pandas as pd

from longshift.data import read_parquet
from longshift.errors import LongshiftError, UsageError
from longshift.io import content_hash, read_json, read_toml, replacing
from longshift.sweep.columns import (
    ColumnType,
    column_names,
    read_row,
    run_columns,
    unfinished_row,
    with_average,
)
from longshift.sweep.jobs import Plan, draw_of, load_plan
from longshift.sweep.selection import best_runs
from longshift.sweep.state import FINISHED, read_states, table_rows
from longshift.sweep.sweep_folder import SweepFolder, store_of
from longshift.text import csv_cell
from longshift.training import RunConfig, RunFolder

if TYPE_CHECKING:
    import pyarrow as pa

PLACE = ("dataset", "method", "trial", "draw")  # columns that describe the job, not the run
ORDER = ["dataset", "setting", "target", "method", "trial", "draw", "fingerprint"]
KEYS = (*ORDER, "status")  # what every table must have; other columns may be newer than the table
_ARROW = {"text": "string", "json": "string", "integer": "int64", "number": "float64"}
_ZSTD_LEVEL = 19


def as_frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Rows as a table with the columns, types and order of the schema."""
    listed = list(rows)
    return _typed({name: [row.get(name) for row in listed] for name in column_names()})


def _typed(values: Mapping[str, Iterable[Any]]) -> pd.DataFrame:
    columns = {c.name: _column(c.type, pd.Series(list(values[c.name]), dtype=object)) for c in run_columns()}
    return pd.DataFrame(columns).sort_values(ORDER, kind="stable", ignore_index=True)


def _column(type_: ColumnType, values: pd.Series[Any]) -> pd.Series[Any]:
    if type_ in ("text", "json"):
        return values.where(values.notna(), "").astype(str)
    numbers = pd.to_numeric(values.replace("", None))
    return numbers.astype("Int64" if type_ == "integer" else "float64")


def write_runs(frame: pd.DataFrame, path: Path | str) -> None:
    """Write runs as Parquet or, to a file called *.csv, as CSV.

    The same runs give the same bytes with the same version of pyarrow, and `read_runs` gives the same numbers. In CSV,
    texts that a spreadsheet would run as formulas get a quote in front.

    Args:
        frame: Runs, as `collect` or `read_runs` returns them.
        path: File to write; it must end in .parquet or .csv.

    Raises:
        UsageError: The name of the file has another ending.

    Example:
        >>> write_runs(read_runs("runs.parquet"), "runs.csv")  # doctest: +SKIP
    """
    ordered = frame.sort_values([name for name in ORDER if name in frame], kind="stable", ignore_index=True)
    suffix = Path(path).suffix
    if suffix not in (".parquet", ".csv"):
        raise UsageError(f"Expected a file called *.parquet or *.csv, got {path}.")
    with replacing(Path(path)) as temporary:
        if suffix == ".parquet":
            _write_parquet(ordered, temporary)
        else:
            texts = [name for name in ordered.columns if not pd.api.types.is_numeric_dtype(ordered[name])]
            plain = ordered.copy()
            plain[texts] = plain[texts].map(csv_cell)
            plain.to_csv(temporary, index=False, lineterminator="\n")


def _write_parquet(frame: pd.DataFrame, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {column.name: pa.type_for_alias(_ARROW[column.type]) for column in run_columns()}
    values = frame.astype(object).replace("", None)  # an empty text is a missing value
    table = pa.table({name: pa.array(values[name], type=types.get(name), from_pandas=True) for name in frame.columns})
    # Dictionaries save space where values repeat, which measured numbers do not.
    repeated = [field.name for field in table.schema if not pa.types.is_floating(field.type)]
    pq.write_table(
        table, path, compression="zstd", compression_level=_ZSTD_LEVEL, use_dictionary=repeated, write_statistics=False
    )


def read_runs(path: Path | str) -> pd.DataFrame:
    """Read a table of runs.

    Args:
        path: Parquet file that `write_runs` wrote. Columns that are not in the schema are ignored; values of columns
            that the file lacks, because it is older, are missing.

    Returns:
        One row per run, with the columns, types and order of the schema.

    Raises:
        LongshiftError: The file is damaged or is not a table of runs.

    Example:
        >>> runs = read_runs("results/pacs/runs.parquet")  # doctest: +SKIP
        >>> runs.groupby("method")["target_accuracy"].mean()  # doctest: +SKIP
    """
    table = _open(Path(path))
    lacking = [name for name in KEYS if name not in table.column_names]
    if lacking:
        raise LongshiftError(f"Expected a table of runs, got {path} without the columns {', '.join(lacking)}.")
    columns, none = table.to_pydict(), [None] * len(table)
    try:
        return _typed({name: columns.get(name, none) for name in column_names()})
    except (ValueError, TypeError) as error:
        raise LongshiftError(f"Expected a table of runs, got {path}: {error}") from error


def unknown_columns(path: Path | str) -> list[str]:
    """Columns of a file that are not in the schema; `read_runs` ignores them."""
    return [name for name in _open(Path(path)).column_names if name not in column_names()]


def _open(path: Path) -> pa.Table:
    import pyarrow as pa

    if path.suffix != ".parquet":
        raise UsageError(f"Expected a table of runs called *.parquet, got {path}.")
    try:
        return read_parquet(path)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise LongshiftError(f"Cannot read {path} as a table of runs: {error}") from error


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
    states, rows = read_states(plan), list[dict[str, Any]]()
    for job in plan.jobs:
        found, place = states[job.fingerprint], {name: getattr(job, name) for name in PLACE}
        if found.state in FINISHED:
            rows += with_average({**found.row(), **place})
        elif missing:
            rows.append({**unfinished_row(job.run, job.fingerprint, found.state), **place})
    if others and plan.folder.table.exists():
        planned = {tuple(row[name] for name in ("fingerprint", *PLACE)) for row in rows}
        made = (row for run in table_rows(plan.folder).values() for row in run)
        rows += [row for row in made if tuple(row[name] for name in ("fingerprint", *PLACE)) not in planned]
    return as_frame(rows)


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
    """The run with the best validation accuracy of a method on one dataset, setting and target."""

    file: PurePosixPath  # DATASET/SETTING/TARGET/METHOD.toml, with what a file name can hold of these names
    accuracy: float  # its accuracy on the balanced validation set
    trial: int
    draw: int
    toml: str  # its configuration, with its seeds and all hyper-parameters, for `longshift train --config`


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
