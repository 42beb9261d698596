"""Tables as LaTeX, Markdown, HTML, CSV and JSON, on the terminal, and as files in a folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pandas as pd
import rich.table
from markupsafe import Markup
from rich import box
from rich.console import Console, Group
from rich.text import Text

from longshift.io import write_text
from longshift.report.runs import MissingRuns
from longshift.report.table import DASH, Cell, Table
from longshift.sweep import write_runs
from longshift.templates import render
from longshift.text import csv_cell, printable

CSV_COLUMNS = (
    "table", "dataset", "setting", "target", "measure", "column", "method", "title", "family", "mean", "stderr",
    "place", "trials", "runs", "selection", "note",
)  # fmt: skip
PREAMBLE = r"""\documentclass{article}
\usepackage[utf8]{inputenc}
\usepackage[margin=15mm]{geometry}
\usepackage{booktabs}
\usepackage{graphicx}
\usepackage[normalem]{ulem}
"""
LATEX_PACKAGES = "% needs \\usepackage{booktabs}, \\usepackage{graphicx} and \\usepackage[normalem]{ulem}\n"
LATEX_LEGEND = (
    r" The \textbf{bold}, \underline{underlined} and \dashuline{dashed} numbers are the best, second and third."
)
LATEX_PLACES = {1: r"\textbf", 2: r"\underline", 3: r"\dashuline"}
LATEX_WIDE = 8  # columns; beyond, the table is scaled to the width of the text
_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': "''", "`": r"\textquoteleft{}",
    "\u2013": "--", "\u2014": "---", "…": r"\dots{}", "±": r"$\pm$", "·": r"$\cdot$", "\u00d7": r"$\times$",
}  # fmt: skip
TERMINAL_STYLES = {1: "bold", 2: "underline", 3: "italic"}  # of the first three places


def cell_texts(table: Table, show: Callable[[Cell, str], str]) -> list[list[str]]:
    """The cells of each row as text; `show` takes a cell and the mark of its footnote."""
    marks = table.marks
    return [[show(cell, marks.get(cell.note, "")) for cell in row.cells] for row in table.rows]


# LaTeX, in the paper's look: booktabs, one block per family.


def latex_table(table: Table) -> str:
    """A `table` environment."""
    groups = table.groups()
    frame = pd.DataFrame(cell_texts(table, _latex_cell), columns=[latex_escape(c.title) for c in table.columns])
    # A rule stands above each family but the first.
    first = {rows[0].name for _, rows in table.families()[1:]}
    titles = [("\\midrule\n" if row.name in first else "") + latex_escape(row.title) for row in table.rows]
    frame.insert(0, latex_escape(table.head), titles, allow_duplicates=True)
    if any(name for name, _ in groups):
        heads = ["", *(latex_escape(column.group) for column in table.columns)]
        frame.columns = pd.MultiIndex.from_arrays([heads, frame.columns])
    spec = "l" + "".join("|" + "c" * span for _, span in groups)
    body = frame.style.hide(axis="index").to_latex(column_format=spec, hrules=True, multicol_align="c")
    if len(table.columns) > LATEX_WIDE:
        body = f"\\resizebox{{\\textwidth}}{{!}}{{%\n{body}}}\n"
    legend = LATEX_LEGEND if table.has_places else ""
    caption = f"{latex_escape(table.title)}. {latex_escape(table.caption)}{legend}"
    notes = [rf"$^{{\mathrm{{{mark}}}}}$ {latex_escape(text)}." for mark, text in table.footnotes.items()]
    notes += [latex_escape(note) for note in table.notes]
    lines = [r"\begin{table}[tp]", r"\centering", r"\small", rf"\caption{{{caption}}}", rf"\label{{tab:{table.name}}}"]
    lines.append(body.rstrip())
    if notes:
        lines += ["", r"\smallskip", r"\begin{minipage}{\textwidth}\footnotesize\raggedright"]
        lines += [r"\\ ".join(notes), r"\end{minipage}"]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def latex_document(tables: Iterable[Table]) -> str:
    """A document that compiles as it is."""
    body = "\n\\clearpage\n".join(latex_table(table) for table in tables)
    return f"{PREAMBLE}\\begin{{document}}\n{body}\\end{{document}}\n"


def latex_escape(text: str) -> str:
    """Names as they are written."""
    return "".join(_SPECIAL.get(c, c) for c in " ".join(text.split()))


def _latex_cell(cell: Cell, mark: str) -> str:
    text = latex_escape(DASH)
    if cell.value is not None:
        text = re.sub("[-+<]", r"$\g<0>$", cell.text).replace("±", r"$\pm$")
    if cell.place in LATEX_PLACES:
        text = f"{LATEX_PLACES[cell.place]}{{{text}}}"
    return rf"{text}$^{{\mathrm{{{mark}}}}}$" if mark else text


# Markdown. Third place is dashed where the viewer keeps styles, and italic as well where it does not.


def markdown_table(table: Table) -> str:
    """A heading, the table, and its notes."""
    grouped = len({column.group for column in table.columns}) > 1
    heads = [f"{column.group} {column.title}".strip() if grouped else column.title for column in table.columns]
    rows = zip(table.rows, cell_texts(table, _markdown_cell), strict=True)
    return render("longshift.report", "table.md.j2", table=table, heads=heads, rows=rows, escape=escape)


def escape(text: str) -> str:
    """A name for Markdown: it must not become markup, nor end a cell or a line."""
    text = " ".join(text.split())
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|#~$])", r"\\\1", text)


def _markdown_cell(cell: Cell, mark: str) -> str:
    text = cell.text.replace("<", "&lt;")
    dashed = f'*<u style="text-decoration-style:dashed">{text}</u>*'
    text = {1: f"**{text}**", 2: f"<u>{text}</u>", 3: dashed}.get(cell.place or 0, text)
    return f"{text}<sup>{mark}</sup>" if mark else text


# HTML


def table_html(table: Table) -> Markup:
    """Return one table that sorts when a heading is clicked."""
    starts, breaks = (
        {sum(sizes[:i]) for i in range(len(sizes))}
        for sizes in ([span for _, span in table.groups()], [len(rows) for _, rows in table.families()])
    )
    return Markup(render("longshift.report", "table.html.j2", table=table, starts=starts, breaks=breaks - {0}))


# The terminal. Places are also written as raised digits, since a pipe keeps no styles.


def print_report(table: Table, console: Console) -> None:
    """Print one table; a table that is too wide is cut between its columns and continues below."""
    console.print(Text(printable(table.title), style="bold"))
    if table.caption:
        console.print(Text(printable(table.caption), style="dim"))
    marks = table.marks
    cells = [
        [
            Text(cell.text, style=TERMINAL_STYLES.get(cell.place or 0, ""))
            .append(" ¹²³"[cell.place or 0].strip())
            .append(f" {marks[cell.note]}" if cell.note else "", style="dim")
            for cell in row.cells
        ]
        for row in table.rows
    ]
    for columns in _fitting(table, cells, console.width):
        console.print(_terminal_part(table, cells, columns))
    lines = ["¹ first, ² second, ³ third of each column"] if table.has_places else []
    lines += [*(f"{mark}: {text}" for mark, text in table.footnotes.items()), *table.notes, ""]
    console.print(Group(*(Text(printable(line)) for line in lines)))


def _fitting(table: Table, cells: Sequence[Sequence[Text]], width: int) -> Iterator[list[int]]:
    """The columns of each part."""
    names = max([len(table.head), *(len(row.title) for row in table.rows)]) + 4
    used, columns = names, list[int]()
    for j, column in enumerate(table.columns):
        own = max(len(text) for text in [*(row[j].plain for row in cells), column.title, column.group]) + 3
        if columns and used + own > width:
            yield columns
            used, columns = names, []
        used, columns = used + own, [*columns, j]
    yield columns


def _terminal_part(table: Table, cells: Sequence[Sequence[Text]], columns: Sequence[int]) -> rich.table.Table:
    part = rich.table.Table(box=box.SIMPLE_HEAD, pad_edge=False)
    part.add_column(Text(table.head), justify="left", no_wrap=True)
    previous, grouped = None, any(column.group for column in table.columns)
    for j in columns:
        column = table.columns[j]
        group = column.group if column.group != previous else ""  # a group is named above its first column
        previous = column.group
        part.add_column(Text(printable(f"{group}\n{column.title}" if grouped else column.title)), justify="right")
    families = [row.family for row in table.rows]
    for i, (row, texts) in enumerate(zip(table.rows, cells, strict=True)):
        last = i + 1 < len(families) and families[i + 1] != families[i]
        part.add_row(Text(printable(row.title)), *(texts[j] for j in columns), end_section=last)
    return part


# For machines


def as_json(table: Table) -> dict[str, object]:
    """A table for machines: full precision, names next to numbers."""
    cells = [
        {**column.key, "method": row.name, "mean": cell.value}
        | {name: getattr(cell, name) for name in ("stderr", "place", "trials", "runs", "note")}
        for row in table.rows
        for column, cell in zip(table.columns, row.cells, strict=True)
    ]
    head = {"name": table.name, "kind": table.kind, "title": table.title, "selection": table.rule}
    return {**head, "notes": list(table.notes), "cells": cells}


def csv_tables(tables: Iterable[Table]) -> str:
    """Accuracies in percent, unrounded; the same runs give the same bytes."""
    lines = [
        (
            table.kind, *(column.key.get(name, "") for name in ("dataset", "setting", "target", "measure")),
            f"{column.group} {column.title}".strip(), row.name, row.title, row.family, _number(cell.value),
            _number(cell.stderr), cell.place or "", cell.trials or "", cell.runs, table.rule, cell.note,
        )
        for table in tables
        for row in table.rows
        for column, cell in zip(table.columns, row.cells, strict=True)
    ]  # fmt: skip
    return _csv(pd.DataFrame(lines, columns=list(CSV_COLUMNS), dtype=object))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.10g}"


def _csv(frame: pd.DataFrame) -> str:
    return frame.map(csv_cell).to_csv(index=False, lineterminator="\n")


def save_tables(tables: Sequence[Table], runs: pd.DataFrame, missing: MissingRuns, folder: Path) -> list[Path]:
    """tables.md, tables.tex (a document), latex/NAME.tex (to include), KIND.csv, runs.csv, missing.csv."""
    texts = {"tables.md": "\n".join(map(markdown_table, tables)), "tables.tex": latex_document(tables)}
    texts |= {f"latex/{table.name}.tex": LATEX_PACKAGES + latex_table(table) for table in tables}
    for kind in dict.fromkeys(table.kind for table in tables):
        texts[f"{kind}.csv"] = csv_tables(table for table in tables if table.kind == kind)
    texts["missing.csv"] = _csv(missing.frame)
    for name, text in texts.items():
        write_text(folder / name, text)
    write_runs(runs[runs["status"].isin(["done", "diverged"])], folder / "runs.csv")
    return [folder / name for name in (*texts, "runs.csv")]
