"""Reweighted cross-entropy (NDCL eq. ce): samples of a class are weighted by a softmax of their losses."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from longshift.losses.common import check, full_precision
from longshift.losses.contrastive import same_class

Divisor = Literal["present", "all"]
Weights = Literal["adaptive", "class", "none"]

DIVISORS: tuple[Divisor, ...] = ("present", "all")
WEIGHTS: tuple[Weights, ...] = ("adaptive", "class", "none")


@full_precision
def intra_class_weights(losses: Tensor, labels: Tensor) -> Tensor:
    """Compute the softmax of losses over the samples of the same class (the weights of eq. ce of NDCL).

    Args:
        losses: Losses (B,).
        labels: Classes (B,).

    Returns:
        Weights (B,); those of a class sum to one.

    Example:
        >>> import torch
        >>> intra_class_weights(torch.tensor([1.0, 1.0, 5.0]), torch.tensor([0, 0, 1])).tolist()
        [0.5, 0.5, 1.0]
    """
    own = torch.where(same_class(labels), losses[None, :], -torch.inf)
    return (losses - own.logsumexp(1)).exp()


def classes_present(labels: Tensor) -> Tensor:
    """Count the distinct labels, as a tensor: samples without an earlier sample of their class."""
    return (~same_class(labels).tril(-1).any(1)).sum()


@full_precision
def class_mean(
    losses: Tensor,
    labels: Tensor,
    classes: int,
    *,
    weights: Weights = "adaptive",
    divisor: Divisor = "present",
    detach: bool = True,
    factor: Tensor | None = None,
) -> Tensor:
    """Compute eq. ce from losses per sample (B,).

    Args:
        losses: Losses (B,).
        labels: Classes (B,).
        classes: Number of classes.
        weights: "adaptive" is eq. ce, "class" the plain mean within each class, "none" the mean over all samples.
        divisor: Divide the sum over classes by the classes "present" in the batch or by "all"; not for weights "none".
        detach: Whether the adaptive weights are constants for the gradient.
        factor: Factors (B,) on the weights of the samples.

    Returns:
        The loss as a scalar.
    """
    check("weights", weights, WEIGHTS)
    check("divisor", divisor, DIVISORS)
    weighted = losses if factor is None else losses * factor
    if weights == "none":
        return weighted.mean()
    if weights == "adaptive":
        weight = intra_class_weights(losses.detach() if detach else losses, labels)
    else:
        weight = same_class(labels).sum(1).to(losses.dtype).reciprocal()
    return (weight * weighted).sum() / (classes_present(labels) if divisor == "present" else classes)


@full_precision
def reweighted_cross_entropy(
    logits: Tensor,
    labels: Tensor,
    *,
    weights: Weights = "adaptive",
    divisor: Divisor = "present",
    detach: bool = True,
    factor: Tensor | None = None,
) -> Tensor:
    """Compute eq. ce of NDCL: cross-entropy with samples weighted within, and classes weighted equally.

    Args:
        logits: Logits (B, K).
        labels: Classes (B,).
        weights: "adaptive" is eq. ce, "class" the plain mean within each class, "none" the mean over all samples.
        divisor: Divide the sum over classes by the classes "present" in the batch or by "all"; not for weights "none".
        detach: Whether the adaptive weights are constants for the gradient.
        factor: Factors (B,) on the weights of the samples.

    Returns:
        A scalar.

    Example:
        >>> import torch
        >>> logits, labels = torch.tensor([[2.0, 0.0], [0.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0, 1])
        >>> rare_counts_as_much = reweighted_cross_entropy(logits, labels, weights="class")
        >>> round(rare_counts_as_much.item(), 3)
        0.362
    """
    losses = cross_entropy(logits, labels, reduction="none")
    return class_mean(losses, labels, logits.shape[1], weights=weights, divisor=divisor, detach=detach, factor=factor)


class ReweightedCE(nn.Module):
    """NDCL's cross-entropy (arXiv:2601.21999, eq. ce): samples of a class weighted by a softmax of their losses.

    Args:
        weights: "adaptive" is eq. ce, "class" the plain mean within each class, "none" the mean over all samples.
        divisor: Divide the sum over classes by the classes "present" in the batch or by "all"; not for weights "none".
        detach: Whether the adaptive weights are constants for the gradient.

    Raises:
        ValueError: If an option is invalid.

    Example:
        >>> criterion = ReweightedCE(weights="class")
        >>> criterion(torch.zeros(3, 2), torch.tensor([0, 0, 1])).item()  # ln 2 in both classes
        0.6931...
    """

    def __init__(self, *, weights: Weights = "adaptive", divisor: Divisor = "present", detach: bool = True) -> None:
        super().__init__()
        check("weights", weights, WEIGHTS)
        check("divisor", divisor, DIVISORS)
        self.weights: Weights = weights
        self.divisor: Divisor = divisor
        self.detach = detach

    def forward(self, logits: Tensor, y: Tensor, factor: Tensor | None = None) -> Tensor:
        """Compute the loss of logits (B, K) and classes y (B,); `factor` (B,) are factors on the weights."""
        return reweighted_cross_entropy(
            logits, y, weights=self.weights, divisor=self.divisor, detach=self.detach, factor=factor
        )
