"""Refit the last layer of a model on frozen features, with labeled samples of a new site as one more domain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import binomtest

from longshift.array_types import FloatArray, IntArray

STRENGTH = 0.1  # of the pull toward the old head, per sample of the new site
MEMORY = 0.5  # weight of all known samples together, relative to those of the new site
FOLDS = 5
CLEAR = 0.05  # p-value below which a gain is claimed


@dataclass(frozen=True, eq=False)
class Head:
    """A linear layer: logits = features @ weight.T + bias."""

    weight: FloatArray  # (classes, D)
    bias: FloatArray

    def logits(self, features: FloatArray) -> FloatArray:
        """Compute (N, classes)."""
        return np.asarray(features @ self.weight.T + self.bias, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Samples:
    """Features (N, D) and labels (N,)."""

    features: FloatArray
    labels: IntArray

    def __len__(self) -> int:
        return len(self.labels)

    def part(self, chosen: IntArray) -> Samples:
        """Some of them."""
        return Samples(self.features[chosen], self.labels[chosen])


def recover_head(features: FloatArray, logits: FloatArray) -> Head:
    """The linear layer behind features and logits, of the smallest norm where the features leave it open."""
    rows = np.hstack([features, np.ones((len(features), 1))]).astype(np.float64)
    found = np.asarray(np.linalg.lstsq(rows, logits.astype(np.float64), rcond=1e-6)[0], dtype=np.float64)
    return Head(found[:-1].T, found[-1])


def refit_head(old: Head, new: Samples, known: Samples | None = None) -> Head:
    """Fit the head to the new site's samples and the known ones, pulled toward the old head.

    Minimizes the mean cross-entropy of the new samples plus `MEMORY` times that of the known ones plus the squared
    change of the head, in units of the features' spread, divided by the number of new samples: with few labels the
    head hardly changes.
    """
    scale = float(np.sqrt(np.square(new.features - new.features.mean(axis=0)).sum(axis=1).mean())) or 1.0
    center = new.features.mean(axis=0)
    tensors = [_tensors(old, part, center, scale) for part in (new, known) if part is not None and len(part)]
    weights = (1.0, MEMORY)
    change = torch.zeros(old.weight.shape[1] + 1, len(old.bias), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([change], max_iter=60, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = STRENGTH / len(new) * change.square().sum() / 2
        for share, (x, base, y) in zip(weights, tensors, strict=False):
            loss = loss + share * torch.nn.functional.cross_entropy(base + x @ change, y)
        loss.backward()
        return loss

    optimizer.step(closure)
    found = change.detach().numpy()
    weight = found[:-1].T / scale
    return Head(old.weight + weight, old.bias + found[-1] - weight @ center)


def _tensors(old: Head, part: Samples, center: FloatArray, scale: float) -> tuple[torch.Tensor, ...]:
    x = np.hstack([(part.features - center) / scale, np.ones((len(part), 1))])
    return torch.from_numpy(x), torch.from_numpy(old.logits(part.features)), torch.from_numpy(part.labels)


@dataclass(frozen=True, eq=False)
class HeadComparison:
    """The old and the refitted head on the same labeled samples, each of which the refitted one had not seen."""

    before: int  # correct
    after: int
    gained: int  # wrong before, correct after
    lost: int
    n: int
    logits: FloatArray  # of the refitted heads, out of fold

    @property
    def p_value(self) -> float:
        """Two-sided exact McNemar test."""
        changed = self.gained + self.lost
        return float(binomtest(self.gained, changed, 0.5).pvalue) if changed else 1.0

    @property
    def clear(self) -> bool:
        """Whether the labels show a gain."""
        return self.gained > self.lost and self.p_value < CLEAR

    @property
    def worse(self) -> bool:
        """Whether the labels show a loss."""
        return self.lost > self.gained and self.p_value < CLEAR


def compare_heads(old: Head, new: Samples, known: Samples | None = None) -> HeadComparison:
    """Cross-validate the refit on the new site's labels."""
    logits = np.empty((len(new), len(old.bias)))
    for fold in folds(new.labels):
        rest = np.setdiff1d(np.arange(len(new)), fold)
        logits[fold] = refit_head(old, new.part(rest), known).logits(new.features[fold])
    was = old.logits(new.features).argmax(axis=1) == new.labels
    now = logits.argmax(axis=1) == new.labels
    return HeadComparison(
        int(was.sum()), int(now.sum()), int((~was & now).sum()), int((was & ~now).sum()), len(new), logits
    )  # fmt: skip


def folds(labels: IntArray) -> list[IntArray]:
    """Up to five parts with about the same share of each class."""
    rng = np.random.default_rng(0)
    order = np.lexsort((rng.random(len(labels)), labels))
    number = min(FOLDS, len(labels))
    return [np.sort(order[start::number]) for start in range(number)]
