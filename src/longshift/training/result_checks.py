"""Whether the numbers of an evaluation can all be true. Plain Python: reading results must not wait for NumPy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

SHOTS = ("many", "medium", "few")
CLOSE = 1e-9


def contradiction(part: Mapping[str, Any], shots: Sequence[str | None]) -> str:
    """The first number that the confusion matrix (or another number) refutes, in words; "" if there is none.

    Args:
        part: An evaluation as `Evaluation.to_dict` gives it.
        shots: The group of each class.
    """
    confusion: list[list[int]] = part["confusion"]
    rows, columns = [sum(row) for row in confusion], [sum(column) for column in zip(*confusion, strict=True)]
    hits, n = [row[k] for k, row in enumerate(confusion)], sum(rows)
    recalls = [hit / row if row else None for hit, row in zip(hits, rows, strict=True)]
    means = {shot: _mean([r for r, own in zip(recalls, shots, strict=True) if own == shot]) for shot in SHOTS}
    seen = [(hit, row + column) for hit, row, column in zip(hits, rows, columns, strict=True) if row + column]
    domains = [value for value in part["per_domain"].values() if value is not None]
    expected: dict[str, float | None] = {
        "n": n,
        "accuracy": sum(hits) / n,
        **means,
        "macro_f1": sum(2 * hit / size for hit, size in seen) / len(seen),
        "worst_domain": min(domains) if domains else None,
    }
    for name, value in expected.items():
        if not _same(part[name], value):
            return f"{name} is {part[name]!r}, but the other numbers give {value!r}"
    for (name, found), value in zip(part["per_class"].items(), recalls, strict=True):
        if not _same(found, value):
            return f"accuracy of the class {name} is {found!r}, but the confusion matrix gives {value!r}"
    if domains and part["per_domain"].get(part["worst_domain_name"]) != part["worst_domain"]:
        return f"worst_domain_name is {part['worst_domain_name']!r}, but that domain is not the worst"
    return ""


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _same(found: object, expected: float | None) -> bool:
    if expected is None or found is None:
        return found is expected
    return isinstance(found, (int, float)) and math.isclose(found, expected, rel_tol=CLOSE, abs_tol=CLOSE)
