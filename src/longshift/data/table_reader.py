"""Reads datasets given as a table (CSV or Parquet) with columns path, label, domain and optionally split."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING

from longshift.data.manifest import Manifest, Row
from longshift.data.parquet_file import read_parquet
from longshift.errors import LongshiftError
from longshift.files import require_regular
from longshift.text import agree, counted, some

if TYPE_CHECKING:  # takes a fifth of a second to import; only tables need it
    import pandas as pd

REQUIRED = ("path", "label", "domain")


def read_table(source: Path, name: str) -> Manifest:
    """The manifest of a table; its paths are relative to the folder of the table and stay inside it."""
    frame = _small_letters(_read(source))
    missing = [column for column in REQUIRED if column not in frame.columns]
    if missing:
        raise LongshiftError(
            f"{source} lacks the column{'s' * (len(missing) > 1)} {', '.join(missing)}: expected "
            f"{', '.join(REQUIRED)} and optionally split, got {', '.join(map(str, frame.columns)) or 'none'}"
        )
    if frame.empty:
        raise LongshiftError(f"{source} has no rows below its header")
    columns = {column: _texts(frame, column) for column in REQUIRED}
    blank = [i for i in range(len(frame)) if not all(columns[column][i] for column in REQUIRED)]
    if blank:
        rows = f"{agree(len(blank), 'row', 'rows')} {some([str(i + 1) for i in blank])}"
        number = counted(len(blank), "row")
        raise LongshiftError(f"{source} has {number} with an empty path, label or domain: {rows}")
    paths = _inside(source, columns["path"])
    splits = _texts(frame, "split") if "split" in frame.columns else [""] * len(frame)
    twice = sorted(path for path, times in Counter(paths).items() if times > 1)
    if twice:
        raise LongshiftError(f"{source} lists {len(twice)} paths more than once: {some(twice)}")
    every = zip(columns["domain"], columns["label"], paths, splits, strict=True)
    return Manifest.from_rows(name, source.parent, [Row(*values) for values in every])


def _read(source: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        if source.suffix.lower() == ".parquet":
            # Other columns may be anything, such as lists of tags.
            frame: pd.DataFrame = read_parquet(source, needed=()).to_pandas()
            return frame
        require_regular(source)
        # Texts stay texts: a class may be called "NA", "007" or "1.0".
        return pd.read_csv(
            source, dtype=str, keep_default_na=False, encoding="utf-8-sig", skipinitialspace=True,
            sep=_separator(source),
        )  # fmt: skip
    except UnicodeDecodeError as error:
        raise LongshiftError(f"{source} is not UTF-8 ({error}). Save it as UTF-8.") from error
    except (OSError, ValueError) as error:  # the parsers of both formats raise ValueErrors
        raise LongshiftError(f"cannot read the table {source}: {error}") from error


def _separator(source: Path) -> str:
    """What the header is separated by; spreadsheets write semicolons where the comma is a decimal point."""
    with source.open(encoding="utf-8-sig") as file:
        header = file.readline()
    found = (mark for mark in ",;\t" if header.count(mark) >= len(REQUIRED) - 1)
    return next(found, ",")


def _small_letters(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns that are called Path or LABEL are meant too, unless that gives one name twice."""
    plain = [str(column).strip().lower() for column in frame.columns]
    names = {column: name for column, name in zip(frame.columns, plain, strict=True) if plain.count(name) == 1}
    return frame.rename(columns=names)


def _texts(frame: pd.DataFrame, column: str) -> list[str]:
    import pandas as pd

    return ["" if pd.isna(value) else str(value) for value in frame[column].tolist()]


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
