"""One self-contained HTML page: a title, a summary in plain words, sections. Needs no network.

Text is escaped by the template; only `Markup` (made by this package's figures and templates) goes in as it is.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from markupsafe import Markup

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
class Page:
    """Everything that is shown. `facts` is a short list of (what, value) under the title."""

    title: str
    summary: Sequence[str]
    sections: Sequence[Section]
    facts: Sequence[tuple[str, str]] = field(default_factory=tuple)
    command: str = ""  # how to make it again
    lead: Markup = field(default_factory=Markup)  # HTML above the summary


def fragment(template: str, **values: object) -> Markup:
    """A template as HTML; it escapes what is not marked as HTML."""
    return Markup(render("longshift.report", template, **values))


def render_page(page: Page) -> str:
    """The page as one text."""
    folder = resources.files("longshift.report") / "templates"
    style = (folder / "page.css").read_text(encoding="utf-8")
    script = (folder / "page.js").read_text(encoding="utf-8")
    values = {"page": page, "style": Markup(style), "script": Markup(script), "version": longshift.__version__}
    return render("longshift.report", "page.html.j2", **values)


def write_page(page: Page, path: Path) -> None:
    """Write the page to a file."""
    write_text(path, render_page(page))


def figure(drawing: Drawing, caption: str = "") -> Markup:
    """Return a drawing with a caption, in a frame that scrolls sideways on narrow screens."""
    return fragment("figure.html.j2", svg=drawing.svg(caption), caption=caption)


def paragraphs(*texts: str) -> Markup:
    """Plain text as paragraphs."""
    return Markup("").join(Markup("<p>{}</p>").format(text) for text in texts)


def join_html(*parts: Markup) -> Markup:
    """One after the other."""
    return Markup("").join(parts)


def fold(title: str, body: Markup, opened: bool = False) -> Markup:
    """A part that can be opened and closed."""
    return fragment("fold.html.j2", title=title, body=body, opened=opened)


def table_section(title: str, tables: Sequence[Table], intro: str = "", name: str = "") -> Section:
    """Return all tables of one kind; those after the first `OPENED` are folded away."""
    shown = Markup('<div class="tables">{}</div>').format(join_html(*map(table_html, tables[:OPENED])))
    return Section(title, join_html(shown, *(fold(t.title, table_html(t)) for t in tables[OPENED:])), intro, name)


def run_section(records: Sequence[Record], page: Path, total: int) -> Section:
    """Return a table of the runs behind the figures; links are relative to the page, so that both can move together."""
    links = [os.path.relpath(record.folder / "result.json", page.parent) for record in records]
    rows = [(record, quote(Path(link).as_posix())) for record, link in zip(records, links, strict=True)]
    shown = len({record.folder for record in records})  # two rows may share a run
    intro = words("runs_intro", shown=shown, total=total)
    return Section("Run records", fold(counted(shown, "run"), fragment("runs.html.j2", rows=rows)), intro, "runs")
