"""Samples grouped by domain with masks: any order, any number per domain, static shapes, no host reads."""

from __future__ import annotations

import torch
from torch import Tensor


def membership(d: Tensor, domains: int) -> Tensor:
    """Return a mask (domains, B) of the samples of each domain; d (B,) are int64 indices below `domains`."""
    return d == torch.arange(domains, device=d.device)[:, None]


def domain_means(values: Tensor, member: Tensor) -> Tensor:
    """Compute the mean of values (B,) in each domain, (domains,); 0 for a domain without samples."""
    return (values * member).sum(1) / member.sum(1).clamp_min(1)


def mean_of_present(values: Tensor, present: Tensor) -> Tensor:
    """Compute the mean over the rows of values (domains,) or (domains, M) that `present` (domains,) marks."""
    shape = (-1, *(1,) * (values.dim() - 1))
    return (values * present.view(shape)).sum(0) / present.sum().clamp_min(1)


def weighted_domain_mean(losses: Tensor, weights: Tensor, member: Tensor) -> Tensor:
    """Compute the mean over domains of the weighted mean of losses (B,); absent domains are left out."""
    total = (weights * member).sum(1)
    present = total > 0
    means = (losses * weights * member).sum(1) / torch.where(present, total, 1)
    return mean_of_present(means, present)


def squared_gaps(inner: Tensor) -> Tensor:
    """Turn inner products (domains, domains) into squared distances, |a|^2 + |b|^2 - 2 <a, b>."""
    own = inner.diagonal()
    return own[:, None] + own[None, :] - 2 * inner


def mean_over_pairs(table: Tensor, present: Tensor) -> Tensor:
    """Compute the mean of a symmetric table (domains, domains) over pairs of present domains; 0 if there is no pair."""
    count = present.sum()
    pairs = (present[:, None] & present[None, :]).tril(-1)
    return (table * pairs).sum() / (count * (count - 1) / 2).clamp_min(1).to(table.dtype)
