"""The quantile of a Gaussian kernel density estimate of a few risks (EQRM)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.special import ndtr, ndtri

from longshift.losses.precision import full_precision

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
