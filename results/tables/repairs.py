"""docs/reference/methods.md: where our code and the published code differ on purpose."""

from __future__ import annotations

from longshift.methods import FAMILIES
from results.methods_pages import escape, own_methods
from results.numbers import markdown


def table() -> str:
    """One row per repair."""
    own = [cls for family in FAMILIES for cls in own_methods(family)]
    return markdown(["method", "repair"], [[cls.info.title, escape(text)] for cls in own for text in cls.repairs])
