"""Penalties on differences between domains as modules. Batches may mix the domains in any order and number."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from longshift.losses.domain_groups import domain_means, mean_of_present, membership
from longshift.losses.invariance import head_gradient_variance, irm_penalty, spread
from longshift.losses.kernels import MMD_GAMMAS, pairwise_mmd
from longshift.losses.moments import pairwise_coral
from longshift.losses.precision import upcast


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
