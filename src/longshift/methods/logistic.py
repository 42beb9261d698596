"""Logistic regression on fixed features, in which each class of each domain weighs the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from longshift.methods.base import Batch, Method
from longshift.methods.config import MethodConfig, fixed, hp, unused
from longshift.methods.registry import register

STRENGTHS = (0.3, 0.1, 0.03, 0.01)  # strong first; results/head-vs-logistic
USUAL = 0.1  # where no domain can be held out
ENOUGH = 200  # samples of a class of a domain are enough to choose the strength
ITERATIONS = 100


class LinearHead(NamedTuple):
    """A linear layer: logits = x @ weight.T + bias."""

    weight: Tensor  # (classes, columns)
    bias: Tensor

    def logits(self, x: Tensor) -> Tensor:
        """Compute (N, classes)."""
        return x @ self.weight.T + self.bias


def cell_weights(y: Tensor, d: Tensor) -> Tensor:
    """Weights of samples that sum to 1: each domain weighs the same, and so does each of its classes."""
    classes = int(y.max()) + 1
    counts = torch.bincount(d * classes + y, minlength=(int(d.max()) + 1) * classes).reshape(-1, classes)
    weights = 1.0 / (counts[d, y] * (counts > 0).sum(1)[d])
    return weights / weights.sum()


def thin_cells(y: Tensor, d: Tensor, most: int) -> Tensor:
    """Indices of at most `most` samples of each class of each domain, evenly spaced."""
    cells = d * (int(y.max()) + 1) + y
    parts = [(cells == cell).nonzero().flatten() for cell in cells.unique()]
    return torch.cat([part[:: -(-len(part) // most)] for part in parts])


def fit_logistic(x: Tensor, y: Tensor, weights: Tensor, classes: int, strengths: Sequence[float]) -> list[LinearHead]:
    """Minimize the weighted cross-entropy plus strength / 2 times the squared weights, on standardized columns.

    Args:
        x: Features (N, columns).
        y: Classes (N,).
        weights: Weights of the samples, which sum to 1.
        classes: Number of classes.
        strengths: Strengths of the penalty; each solution starts at the one before, so strong ones come first.

    Returns:
        A head for features as they are, for each strength.
    """
    mean, std = x.mean(0), x.std(0, correction=0)
    std = torch.where(std > 1e-6 * mean.abs().clamp_min(1e-6), std, torch.ones_like(std))
    z, weights = (x - mean) / std, weights.to(x)
    weight = x.new_zeros(classes, x.shape[1], requires_grad=True)
    bias = x.new_zeros(classes, requires_grad=True)
    found = []
    for strength in strengths:
        optimizer = torch.optim.LBFGS(
            [weight, bias], max_iter=ITERATIONS, tolerance_grad=1e-6, tolerance_change=1e-6,
            line_search_fn="strong_wolfe",
        )  # fmt: skip

        def closure(optimizer: torch.optim.Optimizer = optimizer, strength: float = strength) -> Tensor:
            optimizer.zero_grad()
            risk = (weights * cross_entropy(z @ weight.T + bias, y, reduction="none")).sum()
            total = risk + strength / 2 * weight.square().sum()
            total.backward()
            return total

        with torch.enable_grad():
            optimizer.step(closure)
        scaled = weight.detach() / std
        found.append(LinearHead(scaled, bias.detach() - scaled @ mean))
    return found


def choose_strength(x: Tensor, y: Tensor, d: Tensor, classes: int) -> float:
    """The strength that is best at each domain in turn, held out: by accuracy plus accuracy averaged over classes."""
    rows = thin_cells(y, d, ENOUGH)
    x, y, d = x[rows], y[rows], d[rows]
    domains = d.unique().tolist()
    if len(domains) < 2:
        return USUAL
    total = torch.zeros(len(STRENGTHS))
    for domain in domains:
        held, rest = d == domain, d != domain
        heads = fit_logistic(x[rest], y[rest], cell_weights(y[rest], d[rest]), classes, STRENGTHS)
        right = [(head.logits(x[held]).argmax(1) == y[held]).double() for head in heads]
        balanced = cell_weights(y[held], torch.zeros_like(y[held])).double()
        total += torch.stack([hits.mean() + (balanced * hits).sum() for hits in right]).cpu()
    return STRENGTHS[int(total.argmax())]


class LogisticConfig(MethodConfig):
    """The strength of the penalty."""

    strength: float = hp(
        0.0, fixed(), "penalty of squared weights; 0: chosen by holding out each domain in turn", at_least=0.0
    )
    lr: float = unused("lr", "strength")
    weight_decay: float = unused("weight_decay", "strength")
    dropout: float = unused("dropout", "strength")


@register(
    "logistic",
    title="Logistic",
    family="idg",
    paper="logistic regression; the penalty is chosen by leaving out each domain in turn",
    idea="logistic regression on fixed features, in which each class of each domain weighs the same",
    formula=r"\sum_i w_i \ell_i + \frac{\lambda}{2} \lVert W \rVert^2 , \qquad w_i \propto \frac{1}{n_{d_i, y_i}}",
    use="For vectors and for a head on a frozen network: `fit` tries it there.",
    card="fit a linear layer to fixed features; each class of each site weighs the same, and the strength of the "
    "penalty is the one that works best at a held-out site",
)
class Logistic(Method):
    """The classifier is solved at the first step, by L-BFGS on the features of the whole training set.

    The network below the classifier is not trained. A head on vectors or features is linear.
    """

    Config = LogisticConfig
    config: LogisticConfig
    by_steps: ClassVar[bool] = False

    def make_optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """Return none."""
        return {}

    def wants_features(self, index: int) -> bool:
        """Only the first step needs them."""
        return index == 0

    def receive_features(self, features: Tensor, y: Tensor, d: Tensor) -> None:
        """Solve."""
        classes = self.problem.classes
        strength = self.config.strength or choose_strength(features, y, d, classes)
        (head,) = fit_logistic(features, y, cell_weights(y, d), classes, [strength])
        with torch.no_grad():
            self.network.classifier.weight.copy_(head.weight)
            self.network.classifier.bias.copy_(head.bias)

    @torch.no_grad()
    def step(self, batch: Batch) -> dict[str, Tensor]:
        """Only measure the loss."""
        return {"loss": cross_entropy(self.network(batch.x), batch.y)}
