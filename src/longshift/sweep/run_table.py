"""The table of runs as a data frame, and its files: Parquet, or CSV by the name of the file."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from longshift.data import read_parquet
from longshift.errors import LongshiftError, UsageError
from longshift.io import replacing, require_regular
from longshift.sweep.columns import ColumnType, column_names, machine_columns, run_columns
from longshift.text import counted, csv_cell, from_csv_cell

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


def write_runs(frame: pd.DataFrame, path: Path | str, raw: bool = False) -> None:
    """Write runs as Parquet or, to a file called *.csv, as CSV.

    The same runs give the same bytes with the same version of pyarrow, and reading them back gives the same numbers.

    Args:
        frame: Runs, as `collect` or `read_runs` returns them.
        path: File to write; it must end in .parquet or .csv.
        raw: Whether CSV cells are written as they are; by default, texts that a spreadsheet would run as formulas get
            a quote in front.

    Raises:
        UsageError: The name of the file has another ending.

    Example:
        >>> write_runs(read_runs("runs.parquet"), "runs.csv")  # doctest: +SKIP
    """
    ordered = frame.sort_values([name for name in ORDER if name in frame], kind="stable", ignore_index=True)
    parquet = _is_parquet(Path(path))
    with replacing(Path(path)) as temporary:
        if parquet:
            _write_parquet(ordered, temporary)
        else:
            texts = [name for name in ordered.columns if not pd.api.types.is_numeric_dtype(ordered[name])]
            plain = ordered.copy()
            plain[texts] = plain[texts].map(lambda value: csv_cell(value, raw))
            plain.to_csv(temporary, index=False, lineterminator="\n")


def _write_parquet(frame: pd.DataFrame, path: Path) -> None:
    import pyarrow as pa  # a sweep runs without it: only files of Parquet need it
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
        path: File that `write_runs` wrote. Columns that are not in the schema are ignored; values of columns that the
            file lacks, because it is older, are missing.

    Returns:
        One row per run, with the columns, types and order of the schema.

    Raises:
        LongshiftError: The file is damaged or is not a table of runs.

    Example:
        >>> runs = read_runs("results/pacs/runs.parquet")  # doctest: +SKIP
        >>> runs.groupby("method")["target_accuracy"].mean()  # doctest: +SKIP
    """
    header, columns = _contents(Path(path))
    lacking = [name for name in KEYS if name not in header]
    if lacking:
        raise LongshiftError(f"Expected a table of runs, got {path} without the columns {', '.join(lacking)}.")
    rows = len(next(iter(columns.values())))
    try:
        typed = _typed({name: columns.get(name, [None] * rows) for name in column_names()})
    except (ValueError, TypeError) as error:
        raise LongshiftError(f"Expected a table of runs, got {path}: {error}") from error
    unnamed = int(typed[["trial", "draw"]].isna().any(axis=1).sum())
    if unnamed:
        raise LongshiftError(
            f"Expected a table of runs, got {path} with an empty trial or draw in {counted(unnamed, 'row')}."
        )
    return typed


def unknown_columns(path: Path | str) -> list[str]:
    """Columns of a file that are not in the schema; `read_runs` ignores them."""
    header, _ = _contents(Path(path))
    return [name for name in header if name not in column_names()]


def drop_machine_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """Leave out what depends on the machine and the moment: times, memory, commit, device."""
    return frame.drop(columns=list(machine_columns()))


def _is_parquet(path: Path) -> bool:
    if path.suffix not in (".parquet", ".csv"):
        raise UsageError(f"Expected a file called *.parquet or *.csv, got {path}.")
    return path.suffix == ".parquet"


def _contents(path: Path) -> tuple[list[str], dict[str, list[Any]]]:
    """The names of a file's columns, and their values."""
    try:
        if _is_parquet(path):
            return _parquet_contents(path)
        return _csv_contents(path)
    except (OSError, ValueError, csv.Error) as error:
        raise LongshiftError(f"Cannot read {path} as a table of runs: {error}") from error


def _parquet_contents(path: Path) -> tuple[list[str], dict[str, list[Any]]]:
    import pyarrow as pa

    try:
        table = read_parquet(path)
        return table.column_names, table.to_pydict()
    except pa.ArrowException as error:
        raise ValueError(str(error)) from error


def _csv_contents(path: Path) -> tuple[list[str], dict[str, list[Any]]]:
    """Unlike pandas: a domain called "NA" is a name, floats keep every digit, and a short row is an error."""
    require_regular(path)
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = [line for line in csv.reader(file, strict=True) if line]
    if not lines:
        raise ValueError("it is empty")
    header, *rows = lines
    if len(set(header)) < len(header):
        twice = sorted({name for name in header if header.count(name) > 1})
        raise ValueError(f"it has several columns called {', '.join(twice)}")
    for number, line in enumerate(rows, start=1):
        if len(line) != len(header):
            raise ValueError(f"its header has {counted(len(header), 'field')}, row {number} has {len(line)}")
    columns: dict[str, list[Any]] = {name: [row[place] for row in rows] for place, name in enumerate(header)}
    for column in run_columns():
        if column.type == "number" and column.name in columns:
            columns[column.name] = [float(text) if text else None for text in columns[column.name]]
        elif column.type == "text" and column.name in columns:
            columns[column.name] = [from_csv_cell(text) for text in columns[column.name]]
    return header, columns
