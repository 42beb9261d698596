"""Tables on the terminal. Places are also written as raised digits, since a pipe keeps no styles."""

from __future__ import annotations

from collections.abc import Iterator

import rich.table
from rich import box
from rich.console import Console, Group
from rich.text import Text

from longshift.report.table import Cell, Table
from longshift.text import printable

STYLES = {1: "bold", 2: "underline", 3: "italic"}
RAISED = {1: "¹", 2: "²", 3: "³"}


def print_report(table: Table, console: Console) -> None:
    """Print one table; a table that is too wide is cut between its columns and continues below."""
    console.print(Text(printable(table.title), style="bold"))
    if table.caption:
        console.print(Text(printable(table.caption), style="dim"))
    for columns in _fitting(table, console.width):
        console.print(_part(table, columns))
    lines = [Text("¹ first, ² second, ³ third of each column")] if table.has_places else []
    lines += [Text(printable(f"{mark}: {text}")) for mark, text in table.footnotes.items()]
    lines += [Text(printable(note)) for note in table.notes]
    console.print(Group(*lines, Text("")))


def _fitting(table: Table, width: int) -> Iterator[list[int]]:
    names = max([len(table.head), *(len(row.title) for row in table.rows)]) + 4
    widths = [
        max(len(text) for text in [*(_text(row.cells[j], table.marks).plain for row in table.rows), c.title, c.group])
        + 3
        for j, c in enumerate(table.columns)
    ]
    used, columns, start = names, list[int](), 0
    for _, span in table.groups():
        group = list(range(start, start + span))
        start += span
        if columns and used + sum(widths[j] for j in group) > width:  # keep a group together if it fits
            yield columns
            used, columns = names, []
        for j in group:
            if columns and used + widths[j] > width:
                yield columns
                used, columns = names, []
            used, columns = used + widths[j], [*columns, j]
    yield columns


def _part(table: Table, columns: list[int]) -> rich.table.Table:
    part = rich.table.Table(box=box.SIMPLE_HEAD, pad_edge=False)
    part.add_column(Text(table.head), justify="left", no_wrap=True)
    previous, grouped = None, any(column.group for column in table.columns)
    for j in columns:
        column = table.columns[j]
        group = column.group if column.group != previous else ""  # a group is named above its first column
        previous = column.group
        part.add_column(Text(printable(f"{group}\n{column.title}" if grouped else column.title)), justify="right")
    blocks = table.families()
    for i, (_, rows) in enumerate(blocks):
        for k, row in enumerate(rows):
            cells = [_text(row.cells[j], table.marks) for j in columns]
            part.add_row(Text(printable(row.title)), *cells, end_section=k == len(rows) - 1 and i < len(blocks) - 1)
    return part


def _text(cell: Cell, marks: dict[str, str]) -> Text:
    text = Text(cell.text, style=STYLES.get(cell.place or 0, ""))
    text.append(RAISED.get(cell.place or 0, ""))
    if cell.note:
        text.append(f" {marks[cell.note]}", style="dim")
    return text
