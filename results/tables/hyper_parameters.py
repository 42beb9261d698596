"""docs/reference/methods.md: the hyper-parameters of every method, and those of style mixing."""

from __future__ import annotations

from longshift.methods import MethodConfig, StyleConfig
from results.methods_pages import hyper_parameters


def table() -> str:
    """Two lists."""
    style = "Style mixing (`--style.mix` and so on, or the table `[style]` of a file):"
    return f"\n{hyper_parameters(MethodConfig)}\n\n{style}\n\n{hyper_parameters(StyleConfig)}\n"
