"""The input of the analysis: the outputs of a trained model on each domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from longshift.array_types import FloatArray, IntArray
from longshift.errors import LongshiftError
from longshift.metrics import Array, finite_rows, indices


@dataclass(frozen=True, eq=False)
class DomainOutputs:
    """Outputs on one domain: logits (N, K), labels (N,) and optionally embeddings (N, M)."""

    name: str
    logits: FloatArray
    labels: IntArray
    embeddings: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def classes(self) -> int:
        """Number of classes of the model."""
        return int(self.logits.shape[1])

    def features(self) -> FloatArray:
        """Return the embeddings, or raise an error that names the domain."""
        if self.embeddings is None:
            raise LongshiftError(f"domain {self.name!r} has no embeddings, which this quantity needs")
        return self.embeddings


def domain_outputs(
    name: str, logits: Array, labels: Array, embeddings: Array | None = None, source: str | None = None
) -> DomainOutputs:
    """Check and convert NumPy or torch outputs; errors (such as NaN) name the run (`source`) and the domain."""
    owner = f"{source}, domain {name!r}" if source else f"domain {name!r}"
    rows = finite_rows(logits, "logits", owner)
    features = finite_rows(embeddings, "embeddings", owner) if embeddings is not None else None
    if features is not None and len(features) != len(rows):
        raise LongshiftError(f"{owner}: expected {len(rows)} embeddings (one per row of logits), found {len(features)}")
    return DomainOutputs(name, rows, indices(labels, len(rows), rows.shape[1], "labels", owner), features)


def by_domain(
    logits: Array,
    labels: Array,
    domains: Array,
    names: Sequence[str],
    embeddings: Array | None = None,
    source: str | None = None,
) -> tuple[DomainOutputs, ...]:
    """Separate outputs by domain; `domains[i]` is an index into `names`. Domains without samples are left out."""
    whole = domain_outputs("all", logits, labels, embeddings, source)
    where = indices(domains, len(whole), len(names), "domains", source)
    features = whole.embeddings
    parts = [(name, where == d) for d, name in enumerate(names)]
    return tuple(
        DomainOutputs(name, whole.logits[own], whole.labels[own], None if features is None else features[own])
        for name, own in parts
        if own.any()
    )


def check_domains(sources: Sequence[DomainOutputs], target: DomainOutputs) -> None:
    """Require at least one source, and logits of the same classes everywhere."""
    if not sources:
        raise LongshiftError("expected at least one source domain, found none")
    found = {d.classes for d in (*sources, target)}
    if len(found) > 1:
        raise LongshiftError(f"expected the outputs of one model, found logits of {sorted(found)} classes")


def subsample(n: int, limit: int, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Return at most `limit` of the indices 0..n-1, drawn without replacement and sorted."""
    return np.arange(n) if n <= limit else np.sort(rng.choice(n, limit, replace=False))
