"""Parquet files, read only if they are not much larger in memory than on the disk."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longshift.data.packing_limit import refuse_bomb
from longshift.errors import LongshiftError
from longshift.io import require_regular

if TYPE_CHECKING:
    import pyarrow as pa


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
    if any(types.is_nested(field.type) for field in schema):  # a row of a list may hold any number of values
        refuse_bomb(path, 8 * _number_of_values(path))
    nested = [field.name for field in schema if types.is_nested(field.type) and not _is_list_of_numbers(field.type)]
    if refused := [name for name in nested if needed is None or name in needed]:
        kind = schema.field(refused[0]).type
        raise LongshiftError(
            f"{path}: expected texts, numbers or lists of numbers, got {kind} in the column {refused[0]}. Remove it."
        )
    columns = [name for name in schema.names if name not in nested] if nested else None
    texts = [field.name for field in schema if _is_text(field.type)]
    # A text that many rows have in common is stored once. It stays so until it is known how long all rows are.
    table = parquet.read_table(path, columns=columns, partitioning=None, read_dictionary=texts)
    refuse_bomb(path, sum(_length(table.column(name)) for name in texts))
    for name in texts:
        place = table.column_names.index(name)
        table = table.set_column(place, schema.field(name), table.column(name).cast(schema.field(name).type))
    return table


COUNT_VALUES = """
import sys
sys.path[:] = sys.argv[2:]
from pyarrow import parquet
about = parquet.read_metadata(sys.argv[1])
groups = [about.row_group(i) for i in range(about.num_row_groups)]
print(sum(group.column(i).num_values for group in groups for i in range(group.num_columns)))
"""


def _number_of_values(path: Path) -> int:
    """The number of values in all columns, as stated in the file.

    It is asked for in a child process (0.1 s): pyarrow aborts the process if the statistics of a column do not fit its
    type (as of 26.0: the C++ method behind `RowGroupMetaData.column` is declared as one that raises nothing).
    """
    command = [sys.executable, "-I", "-c", COUNT_VALUES, os.path.abspath(path), *sys.path]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1].strip()
        raise LongshiftError(f"cannot read {path}, its metadata are damaged: {reason}")
    return int(done.stdout)


def _length(column: pa.ChunkedArray) -> int:
    """How many bytes the texts of all rows have."""
    from pyarrow import compute, types

    total = 0
    for chunk in column.chunks:
        if types.is_dictionary(chunk.type):
            lengths = compute.binary_length(chunk.dictionary).take(chunk.indices)
            total += compute.sum(lengths.cast("int64")).as_py() or 0
    return total


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind) or types.is_large_binary(kind)
    )


def _is_list_of_numbers(kind: Any) -> bool:
    from pyarrow import types

    lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(lists and types.is_primitive(kind.value_type))
