"""The table of runs as a data frame and as a file: Parquet, or CSV for other programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from longshift.data import read_parquet
from longshift.errors import LongshiftError, UsageError
from longshift.io import replacing
from longshift.sweep.columns import ColumnType, column_names, machine_columns, run_columns
from longshift.text import csv_cell

if TYPE_CHECKING:
    import pyarrow as pa

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


def drop_machine_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """Leave out what depends on the machine and the moment: times, memory, commit, device."""
    return frame.drop(columns=list(machine_columns()))


def _open(path: Path) -> pa.Table:
    import pyarrow as pa

    if path.suffix != ".parquet":
        raise UsageError(f"Expected a table of runs called *.parquet, got {path}.")
    try:
        return read_parquet(path)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise LongshiftError(f"Cannot read {path} as a table of runs: {error}") from error
