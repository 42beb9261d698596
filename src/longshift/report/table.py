"""A table as plain data: what every format is written from."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, product
from string import ascii_lowercase
from typing import SupportsFloat

from longshift.report.titles import family, method_title, order_methods
from longshift.text import decimal

DASH = "\u2013"
FOOTNOTES = [*ascii_lowercase, *map("".join, product(ascii_lowercase, repeat=2))]  # a, ..., z, aa, ab, ...


@dataclass(frozen=True)
class Cell:
    """A number with its standard error; `note` says why it stands on less than its neighbors, or is missing.

    Attributes:
        value: The number; None if it is missing.
        stderr: Its standard error.
        place: 1, 2 or 3 within its column; ties share a place.
        note: Why it is missing, or rests on less than its neighbors.
        digits: Digits after the point.
        signed: Whether "+" is shown.
        trials: Number of trials that it is the mean of; 0 if it is not a mean of trials.
        runs: All runs behind it: the number of a trial is the best of several draws.
        least: A smaller number, such as a p-value, is shown as "<0.001".

    Example:
        >>> Cell(62.14, 0.52).text, Cell(-0.04, signed=True).text, Cell(None, note="no run").text
        ('62.1 ± 0.5', '0.0', '–')
    """

    value: float | None = None
    stderr: float | None = None
    place: int | None = None
    note: str = ""
    digits: int = 1
    signed: bool = False
    trials: int = 0
    runs: int = 0
    least: float = 0.0

    @property
    def text(self) -> str:
        """As printed: "85.7 ± 0.4", "85.7", or a dash."""
        if self.value is None:
            return DASH
        if abs(self.value) < self.least:
            return f"<{self.least:g}"
        shown = decimal(self.value, self.digits, self.signed)
        return shown if self.stderr is None else f"{shown} ± {self.stderr:.{self.digits}f}"


@dataclass(frozen=True)
class Column:
    """A column under a group heading; `key` holds the names that CSV needs (dataset, setting, target, measure).

    Attributes:
        title: Title.
        group: Title above this and the neighboring columns.
        key: Names for CSV: dataset, setting, target, measure.
        higher_is_better: Whether the largest value is the best; None if no value is.

    Example:
        >>> Column("Average", group="PACS", key={"dataset": "PACS", "measure": "target_accuracy"}).title
        'Average'
    """

    title: str
    group: str = ""
    key: Mapping[str, str] = field(default_factory=dict)
    higher_is_better: bool | None = True


@dataclass(frozen=True)
class TableRow:
    """A row, usually a method; rows of one family stand together.

    Attributes:
        name: Name for CSV.
        title: What is shown.
        family: Rows of one family stand together.
        cells: One per column.

    Example:
        >>> TableRow("erm", "ERM", "dg", (Cell(62.1),)).title
        'ERM'
    """

    name: str
    title: str
    family: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """A table with its title, how its numbers were chosen, and what is missing.

    Attributes:
        name: Name for files and anchors: lower-case letters, digits and "-".
        kind: Kind of table, as in `longshift report --table`.
        title: Title.
        columns: Columns, without that of the row titles.
        rows: Rows, with one cell per column.
        caption: How to read it.
        rule: How draws were chosen: validation, oracle or last; "" if nothing was chosen.
        notes: Remarks below the table.
        head: Title of the column of row titles.

    Example:
        >>> row = TableRow("erm", "ERM", "", (Cell(62.14, 0.52),))
        >>> Table("accuracy", "average", "Accuracy (%)", (Column("PACS"),), (row,)).rows[0].cells[0].text
        '62.1 ± 0.5'
    """

    name: str
    kind: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]
    caption: str = ""
    rule: str = ""
    notes: tuple[str, ...] = ()
    head: str = "Method"

    @property
    def footnotes(self) -> dict[str, str]:
        """Mark -> text, in order of first appearance."""
        texts = dict.fromkeys(cell.note for row in self.rows for cell in row.cells if cell.note)
        return dict(zip(FOOTNOTES, texts, strict=False))

    @property
    def marks(self) -> dict[str, str]:
        """Text of a footnote -> its mark."""
        return {text: mark for mark, text in self.footnotes.items()}

    @property
    def has_places(self) -> bool:
        """Whether any number is marked first, second or third."""
        return any(cell.place for row in self.rows for cell in row.cells)

    def groups(self) -> list[tuple[str, int]]:
        """Group headings with the number of columns under each; adjacent equals are one."""
        return [(name, len(list(part))) for name, part in groupby(column.group for column in self.columns)]

    def families(self) -> list[tuple[str, list[TableRow]]]:
        """Rows by family, in order."""
        return [(name, list(rows)) for name, rows in groupby(self.rows, key=lambda row: row.family)]


def method_rows(methods: Iterable[str], cells: Callable[[str], Iterable[Cell]]) -> tuple[TableRow, ...]:
    """One row per method, in the order of the tables."""
    return tuple(TableRow(m, method_title(m), family(m), tuple(cells(m))) for m in order_methods(methods))


def places(values: Sequence[float | None], digits: int = 1, higher_is_better: bool = True) -> list[int | None]:
    """1, 2, 3 for the best three printed values, None below; equal printed values share a place.

    The next value takes the next place (1, 1, 2, 3): this gives the paper's own marks in all of its tables.
    Nothing is marked when there are fewer than two values to compare.
    """
    shown = [None if v is None or math.isnan(v) else float(f"{v:.{digits}f}") for v in values]
    present = sorted({v for v in shown if v is not None}, reverse=higher_is_better)
    if sum(v is not None for v in shown) < 2:
        return [None] * len(shown)
    rank = {v: i + 1 for i, v in enumerate(present[:3])}
    return [None if v is None else rank.get(v) for v in shown]


def with_places(table: Table) -> Table:
    """The table with its best three marked in each column that has a better and a worse."""
    marked = [list(row.cells) for row in table.rows]
    for j, column in enumerate(table.columns):
        if column.higher_is_better is None or not marked:
            continue
        found = places([row[j].value for row in marked], marked[0][j].digits, column.higher_is_better)
        for row, place in zip(marked, found, strict=True):
            row[j] = replace(row[j], place=place)
    rows = tuple(replace(row, cells=tuple(cells)) for row, cells in zip(table.rows, marked, strict=True))
    return replace(table, rows=rows)


def slug(text: str) -> str:
    """For names of files and anchors."""
    return re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-") or "x"


def float_or_none(value: SupportsFloat | None) -> float | None:
    """A plain float, or None where there is none."""
    return None if value is None or math.isnan(float(value)) else float(value)
