"""Maximum square loss: rewards confidence with a gradient that grows only linearly (Chen, Xue and Cai, ICCV 2019)."""

from __future__ import annotations

from torch import Tensor

from longshift.losses.precision import full_precision


@full_precision
def maximum_square_loss(logits: Tensor) -> Tensor:
    """Compute -(1 / 2n) times the sum of squared probabilities.

    The gradient with respect to a probability is -p / n, so that confident samples of frequent classes do not outweigh
    all others, as they do with entropy.

    Args:
        logits: Logits (n, classes).

    Returns:
        A scalar.

    Example:
        >>> import torch
        >>> round(float(maximum_square_loss(torch.zeros(3, 2))), 4)
        -0.25
    """
    return -logits.softmax(1).square().sum(1).mean() / 2
