"""Reads datasets given as a table (CSV or Parquet) with columns path, label, domain and optionally split and group."""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Collection
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any

from longshift.data.manifest import Manifest, Row
from longshift.errors import LongshiftError
from longshift.io import require_regular
from longshift.text import agree, counted, some

if TYPE_CHECKING:  # takes long to import; most datasets are folders
    import pyarrow as pa

UNPACKED_LIMIT = 1 << 30  # bytes; smaller files may be packed as tightly as they like
PACKING_LIMIT = 100
REQUIRED = ("path", "label", "domain")
COLUMNS = (*REQUIRED, "split", "group")


def refuse_bomb(path: Path, unpacked: int) -> None:
    """Raise if a small file would take a lot of memory; real vectors hardly get smaller when they are packed."""
    if unpacked > UNPACKED_LIMIT and unpacked > PACKING_LIMIT * path.stat().st_size:
        raise LongshiftError(
            f"{path} has {path.stat().st_size / 2**20:.1f} MiB but {unpacked / 2**30:.1f} GiB when unpacked. It was "
            "not read."
        )


def read_parquet(path: Path, needed: Collection[str] | None = None) -> pa.Table:
    """The columns of a file, but for structures and lists of other things than numbers that are not needed.

    Args:
        path: The file.
        needed: Columns that are refused if they hold such things; by default all.

    Raises:
        LongshiftError: A small file would take a lot of memory, or it has such a column.
        Exception: Nearly any other, if the file is damaged.
    """
    from pyarrow import parquet, types

    require_regular(path)
    about, schema = parquet.read_metadata(path), parquet.read_schema(path)
    packed = sum(about.row_group(number).total_byte_size for number in range(about.num_row_groups))
    refuse_bomb(path, max(packed, 8 * about.num_rows * about.num_columns))
    nested = [field.name for field in schema if types.is_nested(field.type) and not _is_list_of_numbers(field.type)]
    if refused := [name for name in nested if needed is None or name in needed]:
        kind = schema.field(refused[0]).type
        raise LongshiftError(
            f"{path}: expected texts, numbers or lists of numbers, got {kind} in the column {refused[0]}. Remove it."
        )
    columns = [name for name in schema.names if name not in nested] if nested else None
    return parquet.read_table(path, columns=columns, partitioning=None)


def _is_list_of_numbers(kind: Any) -> bool:
    from pyarrow import types

    lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(lists and types.is_primitive(kind.value_type))


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
            f"{', '.join(REQUIRED)} and optionally split and group, got {', '.join(header) or 'none'}"
        )
    values = [columns[known.index(column)] if column in known else [""] * len(columns[0]) for column in COLUMNS]
    paths, labels, domains, splits, groups = values
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
    return Manifest.from_rows(name, source.parent, map(Row, domains, labels, paths, splits, groups))


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
