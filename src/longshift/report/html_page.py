"""One self-contained HTML page: a title, the first screen, sections. Needs no network.

Text is escaped by the template; only `Markup` (made by this package's figures and templates) goes in as it is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from markupsafe import Markup, escape

import longshift
from longshift.io import write_text
from longshift.report.formats import table_html
from longshift.report.table import Table, slug
from longshift.report.titles import words
from longshift.templates import render
from longshift.text import counted

if TYPE_CHECKING:
    from longshift.report.drawing import Drawing  # matplotlib takes a second to import
    from longshift.report.runs import Record

OPENED = 4  # tables of one kind


@dataclass(frozen=True)
class Section:
    """A part of the page; `body` is HTML, `intro` text that says what to look at.

    A section may hold others: they stand side by side where there is room, `wide` ones alone.
    """

    title: str
    body: Markup = field(default_factory=Markup)
    intro: str = ""
    name: str = ""  # anchor; by default made from the title
    parts: Sequence[Section] = ()
    wide: bool = False
    folded: bool = False  # its parts can be opened and are closed at first

    @property
    def anchor(self) -> str:
        """The id of the section."""
        return self.name or slug(self.title)


@dataclass(frozen=True)
class Tile:
    """A number of the first screen; `text` says what it rests on."""

    title: str
    value: str
    text: str = ""


@dataclass(frozen=True)
class Page:
    """Everything that is shown. `facts` is a short list of (what, value) under the title."""

    title: str
    summary: Sequence[str]
    sections: Sequence[Section]
    facts: Sequence[tuple[str, str]] = field(default_factory=tuple)
    command: str = ""  # how to make it again
    lead: Markup = field(default_factory=Markup)  # HTML above the summary
    verdict: str = ""  # the one line to read
    tiles: Sequence[Tile] = ()  # beside `lead`
    warnings: Sequence[str] = ()
    heading: str = "In short"  # of the summary


def fragment(template: str, **values: object) -> Markup:
    """A template as HTML; it escapes what is not marked as HTML."""
    return Markup(render("longshift.report", template, code=inline_code, breakable=breakable, **values))


def inline_code(text: str) -> Markup:
    """Text in which `commands` are marked. Lines break after a slash, never before a percent sign.

    >>> inline_code("run `a --b` <i> in a/b: 5 %")
    Markup('run <code>a</code> <code>--b</code> &lt;i&gt; in a/<wbr>b: 5&nbsp;%')
    """
    text = re.sub(r"(?<=\w)/(?=\w)", "/<wbr>", str(escape(text)).replace(" %", "&nbsp;%"))
    marked = lambda found: " ".join(f"<code>{word}</code>" for word in found[1].split())  # noqa: E731
    return Markup(re.sub("`([^`]+)`", marked, text))


def breakable(name: str) -> Markup:
    """A file name that may go on in the next line after a slash or between its words.

    >>> breakable("a/b_1.png")
    Markup('a/<wbr>b_<wbr>1.png')
    """
    return Markup(re.sub("([/_ -])", r"\1<wbr>", str(escape(name))))


def render_page(page: Page) -> str:
    """The page as one text."""
    folder = resources.files("longshift.report") / "templates"
    style = (folder / "page.css").read_text(encoding="utf-8")
    script = (folder / "page.js").read_text(encoding="utf-8")
    values = {"page": page, "style": Markup(style), "script": Markup(script), "version": longshift.__version__}
    return str(fragment("page.html.j2", **values))


def write_page(page: Page, path: Path) -> None:
    """Write the page to a file."""
    write_text(path, render_page(page))


def figure(drawing: Drawing, caption: str = "") -> Markup:
    """Return a drawing with a caption, in a frame that scrolls sideways on narrow screens."""
    return fragment("figure.html.j2", svg=drawing.svg(caption), caption=caption)


def paragraphs(*texts: str) -> Markup:
    """Plain text as paragraphs."""
    return Markup("").join(Markup("<p>{}</p>").format(inline_code(text)) for text in texts)


def warning_list(texts: Sequence[str]) -> Markup:
    """Warnings, which look unlike other text; nothing where there are none."""
    return fragment("warnings.html.j2", warnings=texts)


def fact_list(facts: Sequence[tuple[str, str]]) -> Markup:
    """Names and values."""
    return fragment("facts.html.j2", facts=facts)


def bar_table(columns: Sequence[str], rows: Sequence[Sequence[str | int | float | None]]) -> Markup:
    """A table that can be sorted; the first cell of a row is its name, a share of one (float) has a bar."""
    return fragment("bars.html.j2", columns=columns, rows=rows)


def join_html(*parts: Markup) -> Markup:
    """One after the other."""
    return Markup("").join(parts)


def side_by_side(*parts: Markup) -> Markup:
    """In columns, where there is room."""
    return Markup('<div class="grid">{}</div>').format(join_html(*(Markup("<div>{}</div>").format(p) for p in parts)))


def fold(title: str, body: Markup) -> Markup:
    """A part that can be opened and closed."""
    return fragment("fold.html.j2", title=title, body=body)


def table_section(title: str, tables: Sequence[Table], intro: str = "", name: str = "") -> Section:
    """Return all tables of one kind; those after the first `OPENED` are folded away. A caption is said once."""
    said = [table.caption for table in tables]
    tables = [replace(table, caption="") if table.caption in said[:k] else table for k, table in enumerate(tables)]
    shown = Markup('<div class="tables">{}</div>').format(join_html(*map(table_html, tables[:OPENED])))
    return Section(title, join_html(shown, *(fold(t.title, table_html(t)) for t in tables[OPENED:])), intro, name)


def run_section(records: Sequence[Record], page: Path, total: int) -> Section:
    """Return a table of the runs behind the figures; links are relative to the page, so that both can move together."""
    links = [os.path.relpath(record.folder / "result.json", page.parent) for record in records]
    rows = [(record, quote(Path(link).as_posix())) for record, link in zip(records, links, strict=True)]
    shown = len({record.folder for record in records})  # two rows may share a run
    intro = words("runs_intro", shown=shown, total=total)
    return Section("Run records", fold(counted(shown, "run"), fragment("runs.html.j2", rows=rows)), intro, "runs")
