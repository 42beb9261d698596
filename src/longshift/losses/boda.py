"""BoDA: pull samples toward the centroids of their class in other domains (Yang, Wang and Katabi 2022)."""

from __future__ import annotations

import torch
from torch import Tensor

from longshift.losses.precision import full_precision


@full_precision
def boda_loss(
    features: Tensor,  # (B, F)
    y: Tensor,  # (B,)
    d: Tensor,  # (B,)
    centroids: Tensor,  # (D, K, F) class centroids of each domain
    counts: Tensor,  # (D, K) training samples
    nu: float,
    temperature: float,
) -> Tensor:
    """Contrast samples with centroids; the positives are the centroids of the same class in other domains.

    The distance of sample j to centroid c is divided by the size n_j of its group and scaled by (n_c / n_j)^nu. The
    denominator contains all centroids except that of the sample's own group. Groups without training samples have no
    centroid and are ignored. Without any positive, the loss is 0.
    """
    classes = counts.shape[1]
    group = d * classes + y  # (B,) the sample's own centroid
    sizes = counts.to(features.dtype).flatten()
    n_c = sizes.clamp_min(1)
    n_j = n_c.index_select(0, group)[:, None]
    flat = centroids.to(features.dtype).flatten(0, 1)
    # Exact distances: the faster form with inner products loses half of the digits for near points.
    distance = torch.cdist(features, flat, compute_mode="donot_use_mm_for_euclid_dist")
    logits = -distance / n_j * (n_c / n_j) ** nu / temperature

    index = torch.arange(len(sizes), device=y.device)
    candidate = (index != group[:, None]) & (sizes > 0)
    positive = candidate & (index % classes == y[:, None])
    # The lowest finite number, not -inf: a row without candidates must have a gradient of zero, not NaN.
    denominator = logits.masked_fill(~candidate, torch.finfo(logits.dtype).min).logsumexp(1, keepdim=True)
    log_prob = torch.where(positive, logits - denominator, 0.0)
    return -log_prob.sum() / positive.sum().clamp_min(1)


@full_precision
def group_means(features: Tensor, y: Tensor, d: Tensor, domains: int, classes: int) -> tuple[Tensor, Tensor]:
    """Compute mean feature (D, K, F) and size (D, K) of each (domain, class) group; both are 0 if it is empty."""
    group = d * classes + y
    sizes = torch.bincount(group, minlength=domains * classes)
    # Summing sorted segments is deterministic; adding by index is not on a GPU.
    in_order = features.index_select(0, group.argsort(stable=True))
    sums: Tensor = torch.segment_reduce(in_order, "sum", lengths=sizes, axis=0)
    means = sums / sizes.clamp_min(1)[:, None]
    return means.view(domains, classes, -1), sizes.view(domains, classes)
