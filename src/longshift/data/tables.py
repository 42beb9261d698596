"""Reads datasets given as a table (CSV or Parquet) with columns path, label, domain and optionally split and group.

Columns of other names are chosen behind the path of the table: `scans.csv#path=file,label=diagnosis,site=hospital`.
"""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, Any

from longshift.data.manifest import Manifest, Row
from longshift.errors import LongshiftError, UsageError, unknown_name
from longshift.io import require_regular
from longshift.text import agree, counted, some

if TYPE_CHECKING:  # takes long to import; most datasets are folders
    import pyarrow as pa

UNPACKED_LIMIT = 1 << 30  # bytes; smaller files may be packed as tightly as they like
PACKING_LIMIT = 100
REQUIRED = ("path", "label", "domain")
COLUMNS = (*REQUIRED, "split", "group")
ALSO_CALLED = {"path": "image", "domain": "site"}
CONFIG = "config"  # of a Hugging Face dataset

Choices = Mapping[str, str]  # from one of COLUMNS (or CONFIG) to the name that it has in the table


def split_choices(data: str | os.PathLike[str]) -> tuple[str, dict[str, str]]:
    """The path of a dataset and the columns that are chosen behind it.

    >>> split_choices("scans.csv#label=diagnosis,site=hospital")
    ('scans.csv', {'label': 'diagnosis', 'domain': 'hospital'})
    """
    text = os.fspath(data)
    place, mark, chosen = text.rpartition("#")
    if not mark or "=" not in chosen or os.path.lexists(Path(text).expanduser()):
        return text, {}
    pairs = (part.partition("=") for part in chosen.split(","))
    usual = {other: column for column, other in ALSO_CALLED.items()}
    choices = {usual.get(key.strip(), key.strip()): value.strip() for key, _, value in pairs}
    for key in choices:
        if key not in (*COLUMNS, CONFIG):
            raise UsageError(f"{text}: {unknown_name('column', key, (*COLUMNS, *ALSO_CALLED.values(), CONFIG))}")
    return place, choices


def find_columns(source: Path, header: Sequence[str], choices: Choices, needed: Sequence[str]) -> dict[str, int]:
    """Where the columns of a table are in its header; optional ones only if they are there.

    Raises:
        LongshiftError: A needed or chosen column is missing, or is there twice.
    """
    known, found, missing = [column.strip().lower() for column in header], {}, []
    for column in COLUMNS:
        names = [choices[column]] if column in choices else [column, ALSO_CALLED.get(column, column)]
        name = next((name for name in names if name.lower() in known), None)
        if name is not None:
            found[column] = known.index(name.lower())
            if known.count(name.lower()) > 1:
                raise LongshiftError(f"{source} has the column {name} more than once. Remove or rename one.")
        elif column in choices or column in needed:
            missing.append(names[0])
    if missing:
        raise LongshiftError(
            f"{source} lacks the column{'s' * (len(missing) > 1)} {', '.join(missing)}: it has "
            f"{', '.join(header) or 'none'}. Choose by name, such as {source.name}#label=diagnosis,site=hospital"
        )
    return found


def find_values(source: Path, choices: Choices, needed: Sequence[str]) -> dict[str, list[str]]:
    """The columns of a .csv or .parquet table as texts.

    Args:
        source: The table.
        choices: Columns of other names.
        needed: Columns that must be there; the others are left out where they are not.

    Raises:
        LongshiftError: The table cannot be read, or lacks a column.
    """
    try:
        header, columns = _read_parquet(source) if source.suffix.lower() == ".parquet" else _read_csv(source)
    except UnicodeDecodeError as error:
        raise LongshiftError(f"{source} is not UTF-8 ({error}). Save it as UTF-8.") from error
    except (OSError, ValueError, csv.Error) as error:  # a damaged Parquet file is a ValueError
        raise LongshiftError(f"cannot read the table {source}: {error}") from error
    return {column: columns[place] for column, place in find_columns(source, header, choices, needed).items()}


def refuse_blank(source: Path, *columns: Sequence[str]) -> None:
    """Raise if a row of a table lacks a value."""
    blank = [row for row, cells in enumerate(zip(*columns, strict=True), start=1) if not all(cells)]
    if blank:
        rows = f"{agree(len(blank), 'row', 'rows')} {some(map(str, blank))}"
        raise LongshiftError(f"{source} has {counted(len(blank), 'row')} with an empty path, label or domain: {rows}")


def text_of(value: object) -> str:
    """A cell as text; "" where it is missing."""
    return "" if value is None or value != value else str(value)


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

    schema = parquet_schema(path)
    nested = [field.name for field in schema if types.is_nested(field.type) and not _is_list_of_numbers(field.type)]
    if refused := [name for name in nested if needed is None or name in needed]:
        kind = schema.field(refused[0]).type
        raise LongshiftError(
            f"{path}: expected texts, numbers or lists of numbers, got {kind} in the column {refused[0]}. Remove it."
        )
    columns = [name for name in schema.names if name not in nested] if nested else None
    return parquet.read_table(path, columns=columns, partitioning=None)


def parquet_schema(path: Path) -> pa.Schema:
    """The schema of a file; a small one that would take a lot of memory is refused."""
    from pyarrow import parquet

    require_regular(path)
    about = parquet.read_metadata(path)
    packed = sum(about.row_group(number).total_byte_size for number in range(about.num_row_groups))
    refuse_bomb(path, max(packed, 8 * about.num_rows * about.num_columns))
    return parquet.read_schema(path)


def image_columns(schema: pa.Schema) -> list[str]:
    """The columns of a table that hold image bytes."""
    from pyarrow import types

    def is_bytes(kind: Any) -> bool:
        return bool(types.is_binary(kind) or types.is_large_binary(kind))

    def is_image(kind: Any) -> bool:
        struct = types.is_struct(kind) and kind.get_field_index("bytes") >= 0
        return is_bytes(kind) or bool(struct and is_bytes(kind.field("bytes").type))

    return [field.name for field in schema if is_image(field.type)]


def _is_list_of_numbers(kind: Any) -> bool:
    from pyarrow import types

    lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(lists and types.is_primitive(kind.value_type))


def read_table(
    source: Path, name: str, choices: Choices | None = None, needs: Sequence[str] = ("label", "domain")
) -> Manifest:
    """The manifest of a table; relative paths start from its folder and stay inside it."""
    found = find_values(source, choices or {}, ("path", *needs))
    paths = found["path"]
    if not paths:
        raise LongshiftError(f"{source} has no rows below its header")
    refuse_blank(source, *(found[column] for column in ("path", *needs)))
    labels, domains, splits, groups = (found.get(column) or [""] * len(paths) for column in COLUMNS[1:])
    paths = _inside(source, paths)
    repeated = sorted(path for path, times in Counter(paths).items() if times > 1)
    if repeated:
        raise LongshiftError(f"{source} lists {counted(len(repeated), 'path')} more than once: {some(repeated)}")
    return Manifest.from_rows(name, source.parent, map(Row, domains, labels, paths, splits, groups))


def _read_parquet(source: Path) -> tuple[list[str], list[list[str]]]:
    table = read_parquet(source, needed=())  # other columns may be anything, such as lists of tags
    columns = (column.to_pylist() for column in table.columns)
    return table.column_names, [list(map(text_of, values)) for values in columns]


def _read_csv(source: Path) -> tuple[list[str], list[list[str]]]:
    """Header and columns. Texts stay texts: a class may be called "NA", "007" or "1.0"."""
    require_regular(source)
    csv.field_size_limit(1 << 28)  # a column that is not needed may hold anything
    with source.open(encoding="utf-8-sig", newline="") as file:
        first = file.readline()
        file.seek(0)
        # Spreadsheets write semicolons where the comma is a decimal point.
        mark = max(",;\t", key=first.count)
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
    """Normalize paths to be relative to the table's folder. Outside it, only those that are absolute are taken."""
    folder = os.path.abspath(source.parent)
    result, outside = [], []
    for path in paths:
        if "\\" in path and not os.path.lexists(os.path.join(folder, path)):
            path = PureWindowsPath(path).as_posix()  # written on Windows, read elsewhere
        full = os.path.normpath(os.path.join(folder, path))
        if Path(full).is_relative_to(folder):
            result.append(Path(full).relative_to(folder).as_posix())
        elif os.path.isabs(path):
            result.append(Path(full).as_posix())
        else:
            outside.append(path)
    if outside:
        raise LongshiftError(
            f"{counted(len(outside), 'path')} in {source} {agree(len(outside), 'lies', 'lie')} outside its folder "
            f"{folder}: {some(outside, 3)}. Put the table into a folder that contains all its images, or list "
            "absolute paths."
        )
    return result
