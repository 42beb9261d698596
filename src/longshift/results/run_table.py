"""The table of runs: its columns, their types, and its CSV file."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from longshift.errors import LongshiftError
from longshift.files import replacing
from longshift.results.run_summary import BALANCED, GAPS, LAST_MEASURES, MEASURES, ORACLE_MEASURES
from longshift.text import counted

KEYS = ("dataset", "benchmark", "setting", "target", "method", "backbone")
TEXT = ("fingerprint", *KEYS, "status", "hparams", "validation_curve", "commit", "device")
WHOLE = ("trial", "draw", "hparam_seed", "split_seed", "train_seed", "selected_step", "steps", "oracle_step")
# Not in every table: earlier versions did not measure them.
LATER_COLUMNS = (*GAPS, BALANCED, *(f"last_{name}" for name in (*GAPS, BALANCED)), "validation_curve")
MACHINE_COLUMNS = ("seconds_per_step", "seconds_total", "memory_gib", "commit", "device")
COLUMNS = (
    "fingerprint", *KEYS, "ratio", "trial", "draw", "hparam_seed", "split_seed", "train_seed", "status",
    "selected_step", "steps", *MEASURES, *LAST_MEASURES, "oracle_step", *ORACLE_MEASURES,
    "seconds_per_step", "seconds_total", "memory_gib", "hparams", "validation_curve", "commit", "device",
)  # fmt: skip
NUMBERS = tuple(name for name in COLUMNS if name not in TEXT and name not in WHOLE)
ORDER = ["dataset", "setting", "target", "method", "trial", "draw", "fingerprint"]


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
    # As text first: a domain called "NA" or "007" is a name, and floats must come back to the last bit.
    header, *rows = _fields(path)
    frame = pd.DataFrame(rows, columns=header, dtype=object)
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


def unknown_columns(path: Path | str) -> list[str]:
    """Columns of a CSV file that a table of runs does not have: `read_runs_csv` passes over them."""
    return [name for name in _fields(path)[0] if name not in COLUMNS]


def _fields(path: Path | str) -> list[list[str]]:
    """The header and the rows of a CSV file; unlike pandas, a row that was cut short is not filled up."""
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            lines = [line for line in csv.reader(file, strict=True) if line]
    except (OSError, ValueError, csv.Error) as error:
        raise LongshiftError(f"cannot read {path} as a table of runs: {error}") from error
    if not lines:
        raise LongshiftError(f"cannot read {path} as a table of runs: it is empty")
    header = lines[0]
    if len(set(header)) < len(header):
        twice = sorted({name for name in header if header.count(name) > 1})
        raise LongshiftError(f"{path} is no table of runs: it has several columns called {', '.join(twice)}")
    for number, line in enumerate(lines[1:], start=1):
        if len(line) != len(header):
            width = counted(len(header), "field")
            raise LongshiftError(f"{path} is no table of runs: its header has {width}, row {number} has {len(line)}")
    return lines


def drop_machine_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """Without what depends on the machine and the moment: times, memory, commit, device."""
    return frame.drop(columns=list(MACHINE_COLUMNS))
