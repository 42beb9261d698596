"""Maximum square loss: confidence whose gradient grows only linearly (Chen, Xue and Cai, ICCV 2019)."""

from __future__ import annotations

from torch import Tensor

from longshift.losses.precision import full_precision


@full_precision
def maximum_square_loss(logits: Tensor) -> Tensor:
    """-(1 / 2n) sum of squared probabilities over n rows of logits (n, classes).

    In a probability the gradient is -p / n: unlike entropy's, it does not let the sure samples of frequent
    classes outweigh all others.
    """
    return -logits.softmax(1).square().sum(1).mean() / 2
