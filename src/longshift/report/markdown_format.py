"""Tables as Markdown. Third place is dashed where the viewer keeps styles, and italic as well where it does not."""

from __future__ import annotations

import re

from longshift.report.table import Cell, Table

LEGEND = '**First**, <u>second</u>, *<u style="text-decoration-style:dashed">third</u>* of each column.'


def markdown_table(table: Table) -> str:
    """A heading, the table, and its notes."""
    heads = [table.head, *(" ".join(filter(None, (column.group, column.title))) for column in table.columns)]
    if len({column.group for column in table.columns}) == 1:
        heads = [table.head, *(column.title for column in table.columns)]
    lines = [f"### {escape(table.title)}", ""]
    if table.caption:
        lines += [escape(table.caption), ""]
    lines.append("| " + " | ".join(map(escape, heads)) + " |")
    lines.append("|---|" + "---:|" * len(table.columns))
    marks = table.marks
    for row in table.rows:
        cells = [_cell(cell, marks.get(cell.note, "")) for cell in row.cells]
        lines.append("| " + " | ".join([escape(row.title), *cells]) + " |")
    lines.append("")
    notes = [LEGEND] if table.has_places else []
    notes += [f"<sup>{mark}</sup> {escape(text)}." for mark, text in table.footnotes.items()]
    notes += [escape(note) for note in table.notes]
    for note in notes:
        lines += [note, ""]
    return "\n".join(lines)


def escape(text: str) -> str:
    """Names must not become markup, nor end a cell or a line."""
    text = " ".join(text.split())
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|#~$])", r"\\\1", text)


def _cell(cell: Cell, mark: str) -> str:
    text = cell.text.replace("<", "&lt;")
    if cell.place == 1:
        text = f"**{text}**"
    elif cell.place == 2:
        text = f"<u>{text}</u>"
    elif cell.place == 3:
        text = f'*<u style="text-decoration-style:dashed">{text}</u>*'
    return f"{text}<sup>{mark}</sup>" if mark else text
