"""Manifests made by hand."""

from __future__ import annotations

from collections.abc import Mapping

from longshift.data.manifest import Manifest, Row


def manifest(counts: Mapping[str, Mapping[str, int]], name: str = "made") -> Manifest:
    """A dataset without files that has these counts."""
    rows = [
        Row(domain, label, f"{domain}/{label}/{i:04d}.png")
        for domain, row in counts.items()
        for label, n in row.items()
        for i in range(n)
    ]
    return Manifest.from_rows(name, None, rows)


def even(domains: int, classes: int, n: int) -> dict[str, dict[str, int]]:
    """The same number everywhere."""
    return {f"d{d}": {f"c{k}": n for k in range(classes)} for d in range(domains)}
