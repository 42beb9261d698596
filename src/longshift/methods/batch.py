"""A training batch: flat, domain-major, the same number of samples from each domain."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """`domains * per_domain` samples; rows `d * per_domain ... (d + 1) * per_domain - 1` belong to domain d.

    Attributes:
        x: Inputs (B, ...).
        y: Classes (B,), int64.
        d: Domains (B,), int64: 0 0 0 1 1 1 2 2 2.
        domains: Number of domains.
        style_d: The domain (B,) whose style a sample has; None if no styles are mixed.
    """

    x: Tensor  # (B, ...) inputs
    y: Tensor  # (B,) int64 class indices
    d: Tensor  # (B,) int64 domain indices, 0 0 0 1 1 1 2 2 2
    domains: int
    # (B,) int64: the domain whose style a sample has, d where its style is its own; None without a style stage
    style_d: Tensor | None = None

    def __len__(self) -> int:
        return int(self.y.shape[0])

    @property
    def per_domain(self) -> int:
        """Samples per domain."""
        return len(self) // self.domains

    def by_domain(self, values: Tensor) -> Tensor:
        """View values per sample (B, ...) as (domains, per_domain, ...)."""
        return values.reshape(self.domains, self.per_domain, *values.shape[1:])
