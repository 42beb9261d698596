"""Tables of docs/results/ndcl-variants.md: changes of NDCL, one at a time and together."""

from __future__ import annotations

from longshift.report import method_title, order_methods
from results import numbers as n


def variants(folder: str) -> str:
    """NDCL's options, minus NDCL as published, by the gain on validation."""
    names = [name for name in n.methods(folder) if name != "ndcl"]
    names.sort(key=lambda name: -n.gaps(folder, name, "ndcl", "validation_accuracy").mean())
    rows = []
    for name in names:
        title = method_title(name)
        title = title.removeprefix("NDCL, ") if title.startswith("NDCL, ") else f"**{title}**"
        count = len(n.gaps(folder, name, "ndcl", "target_accuracy"))
        rows.append([title, str(count), *(n.gap(folder, name, "ndcl", measure) for measure in n.SELECTING)])
    return n.markdown(["minus NDCL as published", "n", "validation", "target", "few"], rows)


def variants_by_setting(folder: str) -> str:
    """The gain on validation, setting by setting."""
    names = [name for name in n.methods(folder) if name.startswith("NDCL, ")]
    names.sort(key=lambda name: -n.gaps(folder, name, "ndcl", "validation_accuracy").mean())
    rows = [
        [name.removeprefix("NDCL, "), *(n.gap(folder, name, "ndcl", "validation_accuracy", (s,)) for s in n.BOTH)]
        for name in names
    ]
    return n.markdown(["validation, minus NDCL as published", *n.BOTH], rows)


def frozen_changes() -> str:
    """Selected pairs of variants on frozen features."""
    folder = f"{n.FROZEN}/study"
    pairs = [("ndcl", "erm"), ("NDCL, no con", "ndcl"), ("NDCL, no weight", "ndcl")]
    pairs += [("NDCL, equal weights in a class", "ndcl"), ("NDCL, no const", "ndcl"), ("NDCL, no aug", "ndcl")]
    pairs += [("NDCL, domain prior", "ndcl"), (n.NO_CON, "bsoftmax"), (n.UNSTYLED, "bsoftmax")]
    rows = [[n.pair_title(*pair), *(n.gap(folder, *pair, m, digits=2) for m in n.SELECTING)] for pair in pairs]
    return n.markdown(["points, n = 12", "validation", "target", "few"], rows)


def candidates() -> str:
    """The variants nearest to BSoftmax on all four targets."""
    folder = f"{n.FROZEN}/candidates"
    names = [name for name in order_methods(n.methods(folder)) if name != "bsoftmax"]
    rows = [
        [method_title(name), *(n.gap(folder, name, "bsoftmax", measure) for measure in n.SELECTING)] for name in names
    ]
    return n.markdown(["minus BSoftmax, n = 24", "validation", "target", "few"], rows)


def two_changes() -> str:
    """Two changes to NDCL with twenty trials."""
    folder = f"{n.FROZEN}/defaults"
    names = [name for name in n.methods(folder) if name != "ndcl"]
    rows = []
    for name in names:
        for settings in ((n.TAIL,), (n.DUALITY,), n.BOTH):
            where = settings[0] if len(settings) == 1 else "both"
            cells = [n.gap(folder, name, "ndcl", measure, settings, digits=2) for measure in n.FOUR]
            rows.append([f"{name.removeprefix('NDCL, ')}: {where}", *cells])
    return n.markdown(["minus NDCL, 80 pairs per setting", "validation", "target", "many", "few"], rows)
