"""Reads datasets given as a table (CSV or Parquet) with columns path, label, domain and optionally split."""

from __future__ import annotations

import csv
import os
from collections import Counter
from pathlib import Path, PurePosixPath, PureWindowsPath

from longshift.data.manifest import Manifest, Row
from longshift.data.parquet_file import read_parquet
from longshift.errors import LongshiftError
from longshift.io import require_regular
from longshift.text import agree, counted, some

REQUIRED = ("path", "label", "domain")
COLUMNS = (*REQUIRED, "split")


def read_table(source: Path, name: str) -> Manifest:
    """The manifest of a table; its paths are relative to the folder of the table and stay inside it."""
    try:
        header, columns = _read_parquet(source) if source.suffix.lower() == ".parquet" else _read_csv(source)
    except UnicodeDecodeError as error:
        raise LongshiftError(f"{source} is not UTF-8 ({error}). Save it as UTF-8.") from error
    except (OSError, ValueError, csv.Error) as error:  # a damaged Parquet file is a ValueError
        raise LongshiftError(f"cannot read the table {source}: {error}") from error
    known = [column.strip().lower() for column in header]  # also Path and LABEL
    twice = [column for column in COLUMNS if known.count(column) > 1]
    missing = [column for column in REQUIRED if column not in known]
    if twice:
        raise LongshiftError(f"{source} has the column {twice[0]} more than once. Remove or rename one.")
    if missing:
        raise LongshiftError(
            f"{source} lacks the column{'s' * (len(missing) > 1)} {', '.join(missing)}: expected "
            f"{', '.join(REQUIRED)} and optionally split, got {', '.join(header) or 'none'}"
        )
    values = [columns[known.index(column)] if column in known else [""] * len(columns[0]) for column in COLUMNS]
    paths, labels, domains, splits = values
    if not paths:
        raise LongshiftError(f"{source} has no rows below its header")
    blank = [i for i, cells in enumerate(zip(paths, labels, domains, strict=True)) if not all(cells)]
    if blank:
        rows = f"{agree(len(blank), 'row', 'rows')} {some([str(i + 1) for i in blank])}"
        raise LongshiftError(f"{source} has {counted(len(blank), 'row')} with an empty path, label or domain: {rows}")
    paths = _inside(source, paths)
    repeated = sorted(path for path, times in Counter(paths).items() if times > 1)
    if repeated:
        raise LongshiftError(f"{source} lists {counted(len(repeated), 'path')} more than once: {some(repeated)}")
    return Manifest.from_rows(name, source.parent, map(Row, domains, labels, paths, splits))


def _read_parquet(source: Path) -> tuple[list[str], list[list[str]]]:
    table = read_parquet(source, needed=())  # other columns may be anything, such as lists of tags
    columns = (column.to_pylist() for column in table.columns)
    return table.column_names, [["" if v is None or v != v else str(v) for v in values] for values in columns]


def _read_csv(source: Path) -> tuple[list[str], list[list[str]]]:
    """Header and columns. Texts stay texts: a class may be called "NA", "007" or "1.0"."""
    require_regular(source)
    csv.field_size_limit(1 << 28)  # a column that is not needed may hold anything
    with source.open(encoding="utf-8-sig", newline="") as file:
        first = file.readline()
        file.seek(0)
        # Spreadsheets write semicolons where the comma is a decimal point.
        mark = next((mark for mark in ",;\t" if first.count(mark) >= len(REQUIRED) - 1), ",")
        reader = csv.reader(file, delimiter=mark, skipinitialspace=True, strict=True)
        header, rows = next(reader, []), []
        for row in reader:
            if len(row) > len(header):
                raise LongshiftError(
                    f"{source}, line {reader.line_num}: expected {counted(len(header), 'field')}, got {len(row)}. "
                    "Quote a text that contains the separator."
                )
            if row:
                rows.append(row + [""] * (len(header) - len(row)))
    return header, [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in header]


def _inside(source: Path, paths: list[str]) -> list[str]:
    """Normalize paths to be relative to the table's folder; refuse those that leave it."""
    folder = os.path.abspath(source.parent)
    result, outside = [], []
    for path in paths:
        if "\\" in path and not os.path.lexists(os.path.join(folder, path)):
            path = PureWindowsPath(path).as_posix()  # written on Windows, read elsewhere
        relative = os.path.relpath(os.path.join(folder, path), folder)
        if relative == os.pardir or relative.startswith(os.pardir + os.sep):
            outside.append(path)
        result.append(str(PurePosixPath(relative)))
    if outside:
        raise LongshiftError(
            f"{counted(len(outside), 'path')} in {source} {agree(len(outside), 'lies', 'lie')} outside its folder "
            f"{folder}: {some(outside, 3)}. Put the table into a folder that contains all its images."
        )
    return result
