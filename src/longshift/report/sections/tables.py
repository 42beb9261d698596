"""Tables that sort on a click."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from longshift.report.html_page import Section, fold, fragment, stack
from longshift.report.table import Table


def table_html(table: Table) -> Markup:
    """One table."""
    starts, position = {0}, 0
    for _, span in table.groups():
        starts.add(position)
        position += span
    breaks, row = set(), 0
    for _, rows in table.families()[:-1]:
        row += len(rows)
        breaks.add(row)
    grouped = any(name for name, _ in table.groups())
    return fragment("table.html.j2", table=table, starts=starts, breaks=breaks, grouped=grouped)


def table_section(title: str, tables: Sequence[Table], intro: str = "", name: str = "", opened: int = 4) -> Section:
    """All tables of one kind; those after the first `opened` are folded away."""
    shown = Markup('<div class="tables">{}</div>').format(stack(*map(table_html, tables[:opened])))
    return Section(title, stack(shown, *(fold(t.title, table_html(t)) for t in tables[opened:])), intro, name)
