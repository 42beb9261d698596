"""docs/reference/methods.md: all methods with their step cost and gain over ERM on PACS."""

from __future__ import annotations

from longshift.methods import FAMILIES, Method, cost_cell, method_summary
from results import numbers as n
from results.methods_pages import own_methods


def table() -> str:
    """The methods of each family."""
    rows = [_row(cls) for family in FAMILIES for cls in own_methods(family)]
    return n.markdown(["method", "idea", "step cost", "PACS, points over ERM"], rows)


def _row(cls: type[Method]) -> list[str]:
    info = cls.info
    gain = "0"
    if info.name != "erm":
        known = info.name in n.methods(n.TUNED)
        gain = n.gap(n.TUNED, info.name, "erm", settings=n.SETTINGS) if known else "-"
    link = f"[{info.title}](methods/{info.family}.md#{info.title.lower().replace(' ', '-')})"
    return [link, info.idea, cost_cell(method_summary(info)["step_cost"]), gain]
