"""Tables as LaTeX, in the paper's look: booktabs, one block per family, bold / underline / dashed underline."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from longshift.report.table import DASH, Cell, Table

PREAMBLE = r"""\documentclass{article}
\usepackage[utf8]{inputenc}
\usepackage[margin=15mm]{geometry}
\usepackage{booktabs}
\usepackage{graphicx}
\usepackage[normalem]{ulem}
"""
LATEX_PACKAGES = "% needs \\usepackage{booktabs}, \\usepackage{graphicx} and \\usepackage[normalem]{ulem}\n"
_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': "''", "`": r"\textquoteleft{}",
    "\u2013": "--", "\u2014": "---", "…": r"\dots{}", "±": r"$\pm$", "·": r"$\cdot$", "\u00d7": r"$\times$",
}  # fmt: skip
_STYLES = {1: r"\textbf", 2: r"\underline", 3: r"\dashuline"}
ACCENTS = "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327"
LETTERS = "ÆæØøŒœŁłß"
WIDE = 8  # columns; beyond, the table is scaled to the width of the text


def latex_table(table: Table) -> str:
    """A `table` environment."""
    groups = table.groups()
    spec = "l" + "".join("|" + "c" * span for _, span in groups)
    body = [rf"\begin{{tabular}}{{{spec}}}", r"\toprule"]
    if any(name for name, _ in groups):
        heads = [
            rf"\multicolumn{{{span}}}{{|c{'|' if i < len(groups) - 1 else ''}}}{{{escape(name)}}}"
            for i, (name, span) in enumerate(groups)
        ]
        body.append(" & ".join(["", *heads]) + r" \\")
    body.append(" & ".join([escape(table.head), *(escape(column.title) for column in table.columns)]) + r" \\")
    marks = table.marks
    for _, rows in table.families():
        body.append(r"\midrule")
        for row in rows:
            cells = [_cell(cell, marks.get(cell.note, "")) for cell in row.cells]
            body.append(" & ".join([escape(row.title), *cells]) + r" \\")
    body += [r"\bottomrule", r"\end{tabular}"]
    legend = (
        r" The \textbf{bold}, \underline{underlined} and \dashuline{dashed} numbers are the best, second and third."
        if table.has_places
        else ""
    )
    caption = f"{escape(table.title)}. {escape(table.caption)}{legend}"
    notes = [rf"$^{{\mathrm{{{mark}}}}}$ {escape(text)}." for mark, text in table.footnotes.items()]
    notes += [escape(note) for note in table.notes]
    wide = len(table.columns) > WIDE
    lines = [r"\begin{table}[tp]", r"\centering", r"\small", rf"\caption{{{caption}}}", rf"\label{{tab:{table.name}}}"]
    lines += [r"\resizebox{\textwidth}{!}{%"] if wide else []
    lines += body
    lines += ["}"] if wide else []
    if notes:
        lines += ["", r"\smallskip", r"\begin{minipage}{\textwidth}\footnotesize\raggedright"]
        lines += [r"\\ ".join(notes), r"\end{minipage}"]
    lines += [r"\end{table}"]
    return "\n".join(lines) + "\n"


def latex_document(tables: Iterable[Table]) -> str:
    """A document that compiles as it is."""
    body = "\n\\clearpage\n".join(latex_table(table) for table in tables)
    return f"{PREAMBLE}\\begin{{document}}\n{body}\\end{{document}}\n"


def escape(text: str) -> str:
    """Names as they are written; characters that plain pdflatex has no glyph for become their code in brackets."""
    return "".join(_SPECIAL.get(c) or _character(c) for c in " ".join(text.split()))


def _character(c: str) -> str:
    """Whether TeX's own fonts can make it; another character would stop the compilation."""
    parts = unicodedata.normalize("NFD", c)
    accented = len(parts) == 2 and parts[0].isascii() and parts[1] in ACCENTS
    return c if c.isascii() or c in LETTERS or accented else f"[U+{ord(c):04X}]"


def _cell(cell: Cell, mark: str) -> str:
    if cell.value is None:
        text = escape(DASH)
    else:
        mean, _, stderr = cell.text.partition(" ± ")
        mean = mean.replace("-", "$-$").replace("+", "$+$").replace("<", "$<$")
        text = rf"{mean} $\pm$ {stderr}" if stderr else mean
    if cell.place in _STYLES:
        text = f"{_STYLES[cell.place]}{{{text}}}"
    return rf"{text}$^{{\mathrm{{{mark}}}}}$" if mark else text
