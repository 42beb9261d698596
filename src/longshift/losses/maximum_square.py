"""Maximum square loss: rewards confidence with a gradient that grows only linearly (Chen, Xue and Cai, ICCV 2019)."""

from __future__ import annotations

from torch import Tensor

from longshift.losses.precision import full_precision


@full_precision
def maximum_square_loss(logits: Tensor) -> Tensor:
    """Compute -(1 / 2n) times the sum of squared probabilities over n rows of logits (n, classes).

    The gradient with respect to a probability is -p / n, so that confident samples of frequent classes do not outweigh
    all others, as they do with entropy.
    """
    return -logits.softmax(1).square().sum(1).mean() / 2
