"""Refit the last layer of a model on frozen features: known samples of the training sites, and labels of a new one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import binomtest

from longshift.array_types import FloatArray, IntArray
from longshift.methods import LinearHead, cell_weights, fit_logistic

STRENGTH = 0.1  # of the penalty
NEW = 0.5  # weight of all labels of the new site together; that of the known samples is the rest
PRIOR = 10  # labels with which half of the shift of a site is used
FOLDS = 5
CLEAR = 0.05  # p-value below which a gain is claimed


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


def refit_head(new: Samples, known: Samples, classes: int) -> LinearHead:
    """Fit logistic regression to the labels of a new site, which count equally, and to known samples by class.

    First the features of the site are moved by `site_shift`: labels then need not teach what all classes share there.
    """
    shift = site_shift(new, known)
    y = torch.from_numpy(np.concatenate([new.labels, known.labels]))
    old = y[len(new) :]
    weights = torch.cat([
        torch.full((len(new),), NEW / len(new)), (1 - NEW) * cell_weights(old, torch.zeros_like(old))
    ])  # fmt: skip
    x = torch.from_numpy(np.concatenate([new.features - shift, known.features]).astype(np.float32))
    head = fit_logistic(x, y, weights, classes, [STRENGTH])[0]
    return head._replace(bias=head.bias - head.weight @ torch.from_numpy(shift.astype(np.float32)))


def site_shift(new: Samples, known: Samples) -> FloatArray:
    """How far the samples of a site are from the known ones of their classes on average, shrunk if they are few."""
    apart = [
        new.features[new.labels == k] - known.features[known.labels == k].mean(axis=0)
        for k in np.intersect1d(new.labels, known.labels)
    ]
    found = np.concatenate([np.zeros((0, new.features.shape[1])), *apart])
    return np.asarray(found.sum(axis=0) / (len(found) + PRIOR), dtype=np.float64)


def head_logits(head: LinearHead, features: FloatArray) -> FloatArray:
    """Compute logits (N, classes)."""
    return head.logits(torch.from_numpy(features.astype(np.float32))).double().numpy()


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


def compare_heads(old: FloatArray, new: Samples, known: Samples) -> HeadComparison:
    """Cross-validate the refit on the new site's labels; `old` are the logits of the old head there."""
    logits = np.empty_like(old)
    for fold in folds(new.labels):
        rest = np.setdiff1d(np.arange(len(new)), fold)
        logits[fold] = head_logits(refit_head(new.part(rest), known, old.shape[1]), new.features[fold])
    was, now = (values.argmax(axis=1) == new.labels for values in (old, logits))
    return HeadComparison(
        int(was.sum()), int(now.sum()), int((~was & now).sum()), int((was & ~now).sum()), len(new), logits
    )  # fmt: skip


def folds(labels: IntArray) -> list[IntArray]:
    """Up to five parts with about the same share of each class."""
    rng = np.random.default_rng(0)
    order = np.lexsort((rng.random(len(labels)), labels))
    number = min(FOLDS, len(labels))
    return [np.sort(order[start::number]) for start in range(number)]
