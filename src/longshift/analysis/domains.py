"""What the analysis reads: a trained model's outputs on each domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from longshift.array_types import IntArray
from longshift.errors import LongshiftError
from longshift.metrics import Array, FloatArray, finite_rows, indices

Seed: TypeAlias = int | Sequence[int]


@dataclass(frozen=True, eq=False)
class DomainOutputs:
    """One domain: logits (N, K), labels (N,), and, where asked for, embeddings (N, M)."""

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
        """The embeddings, or an error that names the domain."""
        if self.embeddings is None:
            raise LongshiftError(f"domain {self.name!r} has no embeddings, and this quantity is measured on them")
        return self.embeddings


def domain_outputs(
    name: str, logits: Array, labels: Array, embeddings: Array | None = None, source: str | None = None
) -> DomainOutputs:
    """Check and convert (NumPy or torch); NaN is refused with the run's name (`source`) and the domain's."""
    owner = f"{source}, domain {name!r}" if source else f"domain {name!r}"
    rows = finite_rows(logits, "logits", owner)
    features = finite_rows(embeddings, "embeddings", owner) if embeddings is not None else None
    if features is not None and len(features) != len(rows):
        raise LongshiftError(f"{owner}: expected {len(rows)} embeddings (one a row of logits), found {len(features)}")
    return DomainOutputs(name, rows, indices(labels, len(rows), rows.shape[1], "labels", owner), features)


def by_domain(
    logits: Array,
    labels: Array,
    domains: Array,
    names: Sequence[str],
    embeddings: Array | None = None,
    source: str | None = None,
) -> tuple[DomainOutputs, ...]:
    """Take the outputs on several domains apart; `domains[i]` indexes `names`. Domains without samples are left out."""
    whole = domain_outputs("all", logits, labels, embeddings, source)
    where = indices(domains, len(whole), len(names), "domains", source)
    return tuple(
        DomainOutputs(
            name,
            whole.logits[where == d],
            whole.labels[where == d],
            whole.embeddings[where == d] if whole.embeddings is not None else None,
        )
        for d, name in enumerate(names)
        if (where == d).any()
    )


def check_domains(sources: Sequence[DomainOutputs], target: DomainOutputs) -> None:
    """At least one source, and one model behind all of them."""
    if not sources:
        raise LongshiftError("expected at least one source domain, found none")
    found = {d.classes for d in (*sources, target)}
    if len(found) > 1:
        raise LongshiftError(f"expected the outputs of one model, found logits of {sorted(found)} classes")


def subsample(n: int, limit: int, rng: np.random.Generator) -> npt.NDArray[Any]:
    """At most `limit` of the indices 0..n-1, without replacement, in order."""
    return np.arange(n) if n <= limit else np.sort(rng.choice(n, limit, replace=False))
