"""Penalties on differences between domains (CORAL, MMD, IRM, Fishr, VREx) and the quantile of their risks (EQRM).

Batches of the modules may mix the domains in any order and number.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.special import ndtr, ndtri

from longshift.losses.common import (
    domain_means,
    full_precision,
    indicator,
    mean_of_present,
    mean_over_pairs,
    membership,
    squared_gaps,
    upcast,
)
from longshift.losses.kernels import MMD_GAMMAS, pairwise_mmd


@full_precision
def pairwise_coral(features: Tensor, d: Tensor, domains: int) -> Tensor:
    """Compute the mean CORAL distance over pairs of domains.

    The distance of two domains is the mean squared difference of their feature means plus the mean squared
    difference of their covariances (divisor n - 1). Covariances are never formed: with centered rows X_i,
    <C_i, C_j> = |X_i X_j^T|^2 / ((n_i - 1) (n_j - 1)), so inner products of samples are enough (96 x 96 numbers
    instead of 3 x 2048 x 2048 for ResNet-50).

    Args:
        features: Features (B, F).
        d: Domains (B,).
        domains: Number of domains.

    Returns:
        A scalar; 0 for one domain.

    Example:
        >>> import torch
        >>> x, y = torch.randn(8, 4), torch.arange(8) % 2
        >>> d = torch.arange(2).repeat_interleave(4)

        >>> bool(pairwise_coral(x + 3 * d[:, None], d, domains=2) > pairwise_coral(x, d, domains=2))
        True
    """
    member = membership(d, domains)
    sizes, rows, width = member.sum(1), member.to(features.dtype), features.shape[1]
    means = (rows / sizes.clamp_min(1)[:, None]) @ features
    centered = features - rows.T @ means
    freedom = rows / (sizes - 1).clamp_min(1)[:, None]
    covariance = squared_gaps(freedom @ (centered @ centered.T).square() @ freedom.T) / width**2
    mean = (means[:, None] - means[None, :]).square().sum(2) / width
    return mean_over_pairs(mean + covariance, sizes > 0)


_BITS, _ROUNDS = 8, 4  # 4 rounds over 256 cells equal the published 32 bisections


def bandwidth(risks: Tensor) -> Tensor:
    """Compute the rule-of-thumb bandwidth 1.06 * std * n^(-1/5) of risks (n,); it is never 0."""
    n = risks.shape[0]
    # Differences from one of the risks are exact. Around the rounded mean, the deviation of risks that differ only in
    # the last digits would have a gradient that does not sum to 0.
    deviation = (risks - risks.detach()[0]).std() if n > 1 else torch.zeros_like(risks[0])
    h: Tensor = 1.06 * n**-0.2 * deviation
    return h.clamp_min(torch.finfo(risks.dtype).tiny)


@full_precision
def kde_quantile(risks: Tensor, alpha: float, implicit: bool = False) -> Tensor:
    """Compute a quantile of a Gaussian kernel density estimate, differentiably.

    It lies between the alpha-quantiles of the kernels at the smallest and the largest risk and is found by 32
    bisections. The published gradient treats the relative position between these two ends as constant.

    Args:
        risks: Risks (n,).
        alpha: Level of the quantile, between 0 and 1.
        implicit: Whether to use the gradient of the quantile, sum_d w_d (r_d + z_d h), with w_d the share of kernel d
            in the
            density there.

    Returns:
        A scalar.

    Example:
        >>> import torch
        >>> risks = torch.tensor([0.2, 0.4, 0.9])
        >>> bool(kde_quantile(risks, 0.9) > kde_quantile(risks, 0.5))
        True
    """
    h = bandwidth(risks)
    z_alpha = ndtri(torch.full_like(h, alpha))
    low = risks.amin() + h * z_alpha
    high = risks.amax() + h * z_alpha
    with torch.no_grad():
        place = _search(risks, h, low, high, alpha)
    published: Tensor = low + place * (high - low)
    if not implicit:
        return published
    with torch.no_grad():
        z = (published - risks) / h
        share = torch.softmax(-0.5 * z.square(), 0)
    itself: Tensor = (share * (risks + z * h)).sum()
    return itself


def _search(risks: Tensor, h: Tensor, low: Tensor, high: Tensor, alpha: float) -> Tensor:
    """Find where between low (0) and high (1) the distribution function passes alpha."""
    cells = 2**_BITS
    inner = torch.arange(1, cells, device=risks.device, dtype=risks.dtype) / cells
    start, width = torch.zeros_like(h), 1.0
    for _ in range(_ROUNDS):
        points = low + (start + width * inner) * (high - low)
        cdf = ndtr((points[:, None] - risks) / h).mean(1)
        # The function increases, so the number of points not above alpha is the cell that 8 bisections would reach.
        width /= cells
        start = start + width * (cdf <= alpha).sum().to(risks.dtype)
    return start + 0.5 * width


@full_precision
def scale_gradients(logits: Tensor, y: Tensor) -> Tensor:
    """Compute the derivative of cross-entropy with respect to a factor on the logits, at 1; (..., K) -> (...).

    The closed form sum_k p_k z_k - z_y avoids a second backward pass.
    """
    expected = (logits.softmax(-1) * logits).sum(-1)
    return expected - logits.gather(-1, y.unsqueeze(-1)).squeeze(-1)


@full_precision
def irm_penalty(logits: Tensor, y: Tensor, d: Tensor, domains: int) -> Tensor:
    """Compute the IRM penalty of each domain.

    It is the product of the mean derivatives over even and odd samples of the domain: an unbiased estimate of the
    squared
    derivative, which can be negative.

    Args:
        logits: Logits (B, K).
        y: Classes (B,).
        d: Domains (B,).
        domains: Number of domains.

    Returns:
        Penalties (domains,); 0 for a domain with fewer than two samples.

    Example:
        >>> import torch
        >>> x, y = torch.randn(8, 2), torch.arange(8) % 2
        >>> d = torch.arange(2).repeat_interleave(4)

        >>> irm_penalty(x, y, d, domains=2).shape
        torch.Size([2])
    """
    member = membership(d, domains)
    even = member.cumsum(1) % 2 == 1  # the first sample of a domain is number 0
    gradients = scale_gradients(logits, y)
    return domain_means(gradients, member & even) * domain_means(gradients, member & ~even)


@full_precision
def head_gradient_variance(features: Tensor, logits: Tensor, y: Tensor, member: Tensor | None = None) -> Tensor:
    """Compute per domain the variance over samples of the gradient of cross-entropy for a linear head.

    A sample's gradient is the outer product of e = softmax - onehot and f, so both moments are matrix products,
    sum e f^T and sum e^2 (f^2)^T, and no gradient per sample is stored.

    Args:
        features: Features (D, n, F); with `member`, one batch (B, F) for all domains.
        logits: Logits (D, n, K); with `member`, (B, K).
        y: Classes (D, n); with `member`, (B,).
        member: Marks the samples of each domain (D, B), where domains have different numbers of samples.

    Returns:
        Variances (D, K * F + K): of the weights (row by row), then of the biases.

    Example:
        >>> import torch
        >>> head_gradient_variance(torch.randn(2, 5, 4), torch.randn(2, 5, 3), torch.randint(3, (2, 5))).shape
        torch.Size([2, 15])
    """
    error = (logits.softmax(-1) - indicator(y, logits.shape[-1], logits.dtype)).mT  # (D, K, n)
    ones = torch.ones_like(features[..., :1])
    n: int | Tensor = features.shape[-2]
    if member is not None:
        error = error * member[:, None]
        n = member.sum(1).clamp_min(1)[:, None, None]

    def moments(f: Tensor) -> Tensor:
        mean = error @ f / n
        return (error.square() @ f.square() / n - mean.square()).flatten(1)

    # The bias is the weight of a constant feature.
    return torch.cat([moments(features), moments(ones)], 1)


@full_precision
def spread(values: Tensor, present: Tensor | None = None) -> Tensor:
    """Compute the population variance over domains, averaged over columns.

    Args:
        values: A number or a row per domain: (D,) or (D, M).
        present: Marks the domains to use (D,); by default all.

    Returns:
        A scalar.

    Example:
        >>> import torch
        >>> float(spread(torch.tensor([1.0, 3.0])))
        1.0
    """
    if present is None:
        return (values - values.mean(0, keepdim=True)).square().mean()
    return mean_of_present((values - mean_of_present(values, present)).square(), present).mean()


class DomainPenalty(nn.Module):
    """The base of penalties: the number of domains is given, so that shapes never depend on the data.

    Args:
        domains: Number of source domains. A domain without samples in a batch is left out.

    Raises:
        ValueError: If an option is invalid.
    """

    def __init__(self, domains: int) -> None:
        super().__init__()
        if domains < 1:
            raise ValueError(f"Expected `domains` of at least 1, but got {domains}.")
        self.domains = domains


class CORALLoss(DomainPenalty):
    """Deep CORAL (Sun and Saenko 2016, arXiv:1607.01719): differences of feature means and covariances.

    Args:
        domains: Number of source domains. A domain without samples in a batch is left out.

    Raises:
        ValueError: If an option is invalid.

    Example:
        >>> coral = CORALLoss(domains=2)
        >>> features = torch.tensor([[1.0], [1.0], [3.0], [3.0]])
        >>> coral(features, torch.tensor([0, 0, 1, 1])).item()  # (1 - 3)^2, equal covariances
        4.0
    """

    def forward(self, features: Tensor, d: Tensor) -> Tensor:
        """Compute the mean distance over pairs of domains, from features (B, F) and domains d (B,)."""
        return pairwise_coral(features, d, self.domains)


class MMDLoss(DomainPenalty):
    """Maximum mean discrepancy between domains (Li et al. 2018), with a sum of Gaussian kernels.

    Args:
        domains: Number of source domains. A domain without samples in a batch is left out.
        gammas: Factors on the squared distances, one per kernel.

    Raises:
        ValueError: If an option is invalid.

    Example:
        >>> mmd = MMDLoss(domains=2, gammas=(1.0,))
        >>> mmd(torch.tensor([[0.0], [1.0]]), torch.tensor([0, 1])).item()  # 1 + 1 - 2/e
        1.2642...
    """

    def __init__(self, domains: int, gammas: tuple[float, ...] = MMD_GAMMAS) -> None:
        super().__init__(domains)
        if not gammas or min(gammas) <= 0:
            raise ValueError(f"Expected one or more `gammas` above 0, but got {gammas}.")
        self.gammas = tuple(gammas)

    def forward(self, features: Tensor, d: Tensor) -> Tensor:
        """Compute the mean squared discrepancy over pairs of domains, from features (B, F) and domains d (B,)."""
        return pairwise_mmd(features, d, self.domains, self.gammas)


class IRMPenalty(DomainPenalty):
    """Invariant risk minimization (Arjovsky et al. 2019, arXiv:1907.02893): squared slope of each domain's risk.

    Args:
        domains: Number of source domains. A domain without samples in a batch is left out.

    Raises:
        ValueError: If an option is invalid.

    Example:
        >>> irm = IRMPenalty(domains=1)
        >>> logits = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
        >>> irm(logits, torch.tensor([0, 0]), torch.tensor([0, 0])).item()  # (1 / (1 + e^-1) - 1)^2
        0.0723...
    """

    def forward(self, logits: Tensor, y: Tensor, d: Tensor) -> Tensor:
        """Compute the mean penalty over domains, from logits (B, K), classes y (B,) and domains d (B,)."""
        present = membership(d, self.domains).any(1)
        return mean_of_present(irm_penalty(logits, y, d, self.domains), present)


class VRExPenalty(DomainPenalty):
    """Risk extrapolation (Krueger et al. 2021, arXiv:2003.00688): the variance of the domains' risks.

    Args:
        domains: Number of source domains. A domain without samples in a batch is left out.

    Raises:
        ValueError: If an option is invalid.

    Example:
        >>> vrex = VRExPenalty(domains=2)
        >>> vrex(torch.tensor([1.0, 1.0, 3.0]), torch.tensor([0, 0, 1])).item()
        1.0
    """

    def forward(self, losses: Tensor, d: Tensor) -> Tensor:
        """Compute the variance over domains of the mean of any losses (B,), from domains d (B,)."""
        member = membership(d, self.domains)
        return spread(domain_means(upcast(losses), member), member.any(1))


class FishrPenalty(DomainPenalty):
    """Fishr (Rame et al. 2022, arXiv:2109.02934): differences of the variance of gradients between domains.

    Gradients are those of cross-entropy for a linear head, in closed form. Their variances are smoothed over steps by
    a moving average, which is part of the module's state.

    Args:
        domains: Number of source domains. A domain without samples in a batch is left out.
        classes: Number of classes.
        feature_dim: Length of a feature vector.
        ema: Decay of the moving average, at least 0 and below 1.

    Raises:
        ValueError: If an option is invalid.

    Example:
        >>> head = nn.Linear(4, 3)
        >>> features, y, d = torch.randn(6, 4), torch.tensor([0, 1, 2, 0, 1, 2]), torch.tensor([0, 0, 0, 1, 1, 1])
        >>> fishr = FishrPenalty(domains=2, classes=3, feature_dim=4)
        >>> fishr(features, head(features), y, d).shape
        torch.Size([])
    """

    average: Tensor  # (domains, classes * feature_dim + classes) moving average of gradient variances

    def __init__(self, domains: int, classes: int, feature_dim: int, ema: float = 0.95) -> None:
        super().__init__(domains)
        if not 0 <= ema < 1:
            raise ValueError(f"Expected `ema` of at least 0 and below 1, but got {ema}.")
        self.ema = ema
        self.register_buffer("average", torch.zeros(domains, classes * (feature_dim + 1)))

    def smoothed(self, variance: Tensor, present: Tensor | None = None) -> Tensor:
        """Update the moving average with variances (domains, M), and compute the penalty from it.

        In evaluation mode, the new average is not stored.
        """
        average = self.ema * self.average + (1 - self.ema) * variance
        if present is not None:
            average = torch.where(present[:, None], average, self.average)
        if self.training:
            self.average.copy_(average.detach())
        return spread(average / (1 - self.ema), present)

    def forward(self, features: Tensor, logits: Tensor, y: Tensor, d: Tensor) -> Tensor:
        """Compute the penalty from features (B, F), logits (B, K), classes y (B,) and domains d (B,)."""
        member = membership(d, self.domains)
        variance = head_gradient_variance(features, logits, y, member)
        return self.smoothed(variance, member.any(1))
