"""Tables of docs/results/ndcl-variants.md: changes of NDCL, one at a time and together."""

from __future__ import annotations

from collections.abc import Callable

from longshift.report import method_title, order_methods
from results.numbers import (
    BOTH,
    DUALITY,
    FOUR,
    FROZEN,
    NO_CON,
    SELECTING,
    TAIL,
    UNSTYLED,
    gap,
    gaps,
    markdown,
    methods,
    pair_title,
)


def variants(folder: str) -> Callable[[], str]:
    """NDCL's options, minus NDCL as published, by the gain on validation."""

    def build() -> str:
        names = [name for name in methods(folder) if name != "ndcl"]
        names.sort(key=lambda name: -gaps(folder, name, "ndcl", "validation_accuracy").mean())
        rows = []
        for name in names:
            title = method_title(name)
            title = title.removeprefix("NDCL, ") if title.startswith("NDCL, ") else f"**{title}**"
            count = len(gaps(folder, name, "ndcl", "target_accuracy"))
            rows.append([title, str(count), *(gap(folder, name, "ndcl", measure) for measure in SELECTING)])
        return markdown(["minus NDCL as published", "n", "validation", "target", "few"], rows)

    return build


def variants_by_setting(folder: str) -> Callable[[], str]:
    """The gain on validation, setting by setting."""

    def build() -> str:
        names = [name for name in methods(folder) if name.startswith("NDCL, ")]
        names.sort(key=lambda name: -gaps(folder, name, "ndcl", "validation_accuracy").mean())
        rows = [
            [name.removeprefix("NDCL, "), *(gap(folder, name, "ndcl", "validation_accuracy", (s,)) for s in BOTH)]
            for name in names
        ]
        return markdown(["validation, minus NDCL as published", *BOTH], rows)

    return build


def frozen_changes() -> str:
    """Selected pairs of variants on frozen features."""
    folder = f"{FROZEN}/study"
    pairs = [("ndcl", "erm"), ("NDCL, no con", "ndcl"), ("NDCL, no weight", "ndcl")]
    pairs += [("NDCL, equal weights in a class", "ndcl"), ("NDCL, no const", "ndcl"), ("NDCL, no aug", "ndcl")]
    pairs += [("NDCL, domain prior", "ndcl"), (NO_CON, "bsoftmax"), (UNSTYLED, "bsoftmax")]
    rows = [[pair_title(*pair), *(gap(folder, *pair, m, digits=2) for m in SELECTING)] for pair in pairs]
    return markdown(["points, n = 12", "validation", "target", "few"], rows)


def candidates() -> str:
    """The variants nearest to BSoftmax on all four targets."""
    folder = f"{FROZEN}/candidates"
    names = [name for name in order_methods(methods(folder)) if name != "bsoftmax"]
    rows = [[method_title(name), *(gap(folder, name, "bsoftmax", measure) for measure in SELECTING)] for name in names]
    return markdown(["minus BSoftmax, n = 24", "validation", "target", "few"], rows)


def two_changes() -> str:
    """Two changes to NDCL with twenty trials."""
    folder = f"{FROZEN}/defaults"
    names = [name for name in methods(folder) if name != "ndcl"]
    rows = []
    for name in names:
        for settings in ((TAIL,), (DUALITY,), BOTH):
            where = settings[0] if len(settings) == 1 else "both"
            cells = [gap(folder, name, "ndcl", measure, settings, digits=2) for measure in FOUR]
            rows.append([f"{name.removeprefix('NDCL, ')}: {where}", *cells])
    return markdown(["minus NDCL, 80 pairs per setting", "validation", "target", "many", "few"], rows)
