"""BoDA: pull samples toward the centroids of their class in other domains (Yang, Wang and Katabi 2022)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from longshift.losses.common import full_precision
from longshift.losses.imbalance import Counts, count_rows


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
    centroid and are ignored.

    Args:
        features: Features (B, F).
        y: Classes (B,).
        d: Domains (B,).
        centroids: Mean features of each group (D, K, F).
        counts: Training samples of each group (D, K).
        nu: Exponent of the ratio of group sizes.
        temperature: Divisor of the distances.

    Returns:
        A scalar; 0 if there is no positive.

    Example:
        >>> import torch
        >>> x, y = torch.randn(8, 4), torch.arange(8) % 2
        >>> d = torch.arange(2).repeat_interleave(4)

        >>> boda_loss(x, y, d, torch.randn(2, 2, 4), torch.full((2, 2), 9.0), nu=1.0, temperature=1.0).shape
        torch.Size([])
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


class BoDALoss(nn.Module):
    """BoDA (Yang, Wang and Katabi 2022): distances to class centroids of other domains, balanced by group size.

    Call `update` with features of the whole training set every 100 steps or so. As published, centroids are zero
    before the first update, so that all are equally far. Centroids are part of the module's state.

    Args:
        class_counts: Training samples, (domains, classes). A group without samples has no centroid.
        feature_dim: Length of a feature vector.
        nu: Exponent of the ratio of group sizes.
        temperature: Temperature of the distances.
        momentum: Share of the old centroid that an update keeps.

    Raises:
        ValueError: If an option or a shape is invalid.

    Example:
        >>> boda = BoDALoss([[50, 5], [5, 50]], feature_dim=3)
        >>> features, y, d = torch.randn(8, 3), torch.arange(8) % 2, torch.arange(8) // 4
        >>> boda.update(features, y, d)
        >>> boda(features, y, d).shape
        torch.Size([])
    """

    class_counts: Tensor  # (domains, classes)
    centroids: Tensor  # (domains, classes, feature_dim)
    seen: Tensor  # (domains, classes) groups whose centroid was updated

    def __init__(
        self,
        class_counts: Counts,
        feature_dim: int,
        *,
        nu: float = 0.5,
        temperature: float = 1.0,
        momentum: float = 0.2,
    ) -> None:
        super().__init__()
        if nu < 0 or not temperature > 0 or not 0 <= momentum <= 1:
            raise ValueError(
                "Expected `nu` of at least 0, `temperature` above 0 and `momentum` from 0 to 1, "
                f"but got {nu}, {temperature} and {momentum}."
            )
        counts = count_rows(class_counts)
        self.nu, self.temperature, self.momentum = nu, temperature, momentum
        self.register_buffer("class_counts", counts, persistent=False)
        self.register_buffer("centroids", torch.zeros(*counts.shape, feature_dim))
        self.register_buffer("seen", torch.zeros(counts.shape, dtype=torch.bool))

    @torch.no_grad()
    def update(self, features: Tensor, y: Tensor, d: Tensor) -> None:
        """Update the centroids: replace them the first time, then use a moving average. Reads sizes on the host."""
        domains, classes = self.class_counts.shape
        means, sizes = group_means(features, y, d, domains, classes)
        kept = self.momentum * self.seen.to(means.dtype)[..., None]
        moved = (1 - kept) * means + kept * self.centroids
        self.centroids.copy_(torch.where((sizes > 0)[..., None], moved, self.centroids))
        self.seen.logical_or_(sizes > 0)

    def forward(self, features: Tensor, y: Tensor, d: Tensor) -> Tensor:
        """Compute the loss from features (B, F), classes y (B,) and domains d (B,)."""
        return boda_loss(features, y, d, self.centroids, self.class_counts, self.nu, self.temperature)
