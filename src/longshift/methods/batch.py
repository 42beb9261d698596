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

    Example:
        >>> import torch
        >>> batch = Batch(torch.rand(6, 4), torch.arange(6) % 3, torch.tensor([0, 0, 0, 1, 1, 1]), domains=2)
        >>> batch.by_domain(batch.y).tolist()
        [[0, 1, 2], [0, 1, 2]]
    """

    x: Tensor
    y: Tensor
    d: Tensor
    domains: int
    # (B,) int64: the domain whose style a sample has, d where its style is its own; None without a style stage
    style_d: Tensor | None = None

    @classmethod
    def from_samples(cls, x: Tensor, y: Tensor, d: Tensor, domains: int) -> Batch:
        """Sort samples by domain.

        Args:
            x: Inputs (B, ...).
            y: Classes (B,), int64.
            d: Domains (B,), int64, in any order; each domain has the same number of samples.
            domains: Number of domains.

        Returns:
            The batch.

        Raises:
            ValueError: If the domains have different numbers of samples. The check reads `d` on the host.

        Example:
            >>> import torch
            >>> x, y, d = torch.arange(4), torch.tensor([0, 0, 1, 1]), torch.tensor([1, 0, 1, 0])
            >>> batch = Batch.from_samples(x, y, d, domains=2)
            >>> batch.x.tolist(), batch.d.tolist()
            ([1, 3, 0, 2], [0, 0, 1, 1])
        """
        sizes = [int((d == domain).sum()) for domain in range(domains)]
        if len(set(sizes)) != 1 or sum(sizes) != len(d):
            raise ValueError(
                f"Expected the same number of samples from each of the {domains} domains, got {sizes} of {len(d)}."
            )
        order = d.argsort(stable=True)
        return cls(x[order], y[order], d[order], domains)

    def __len__(self) -> int:
        return int(self.y.shape[0])

    @property
    def per_domain(self) -> int:
        """Samples per domain."""
        return len(self) // self.domains

    def by_domain(self, values: Tensor) -> Tensor:
        """View values per sample (B, ...) as (domains, per_domain, ...)."""
        return values.reshape(self.domains, self.per_domain, *values.shape[1:])
