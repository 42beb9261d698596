"""Re-weighted cross-entropy: every value and gradient of the fixtures, and its switches."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy

from longshift.losses.reweighted_ce import Weights, class_mean, intra_class_weights, reweighted_cross_entropy
from tests.methods.oracle import close, load, tensor

READINGS: dict[str, dict[str, Any]] = {
    "ce_div_all_classes_detached": {"divisor": "all"},
    "ce_div_all_classes_full": {"divisor": "all", "detach": False},
    "ce_div_present_classes_detached": {},
}


def test_paper_fixtures() -> None:
    for case in load("ndcl_paper")["cases"]:
        if "logits" not in case:
            continue
        y = tensor(case["labels"], torch.int64)
        for name, options in READINGS.items():
            expected, where = case["losses"][name], f"{case['name']}: {name}"
            logits = tensor(case["logits"]).requires_grad_()
            value = reweighted_cross_entropy(logits, y, **options)
            close(value, expected["value"], where)
            close(torch.autograd.grad(value, logits)[0], expected["grad_logits"], f"{where} gradient of logits")
            p = tensor(case["predictions"]).requires_grad_()
            losses = -p.gather(1, y[:, None])[:, 0].log()
            value = class_mean(losses, y, case["n_classes"], **options)
            close(torch.autograd.grad(value, p)[0], expected["grad"], f"{where} gradient of predictions")


def test_weights_are_a_softmax_within_each_class() -> None:
    losses, y = torch.tensor([1.0, 2.0, 0.5, 3.0, 200.0]), torch.tensor([4, 1, 4, 4, 0])
    weights = intra_class_weights(losses, y)
    torch.testing.assert_close(weights[[0, 2, 3]], losses[[0, 2, 3]].softmax(0))
    torch.testing.assert_close(weights[[1, 4]], torch.ones(2))


def test_other_weights() -> None:
    g = torch.Generator().manual_seed(1)
    logits, y = torch.randn(7, 4, generator=g), torch.tensor([0, 0, 0, 1, 1, 3, 0])
    losses = cross_entropy(logits, y, reduction="none")
    plain = reweighted_cross_entropy(logits, y, weights="none")
    torch.testing.assert_close(plain, cross_entropy(logits, y))
    by_class = torch.stack([losses[y == k].mean() for k in (0, 1, 3)])
    torch.testing.assert_close(reweighted_cross_entropy(logits, y, weights="class"), by_class.mean())
    torch.testing.assert_close(reweighted_cross_entropy(logits, y, weights="class", divisor="all"), by_class.sum() / 4)


@pytest.mark.parametrize("weights", ["adaptive", "class", "none"])
def test_weights_are_computed_in_the_precision_of_the_losses(weights: Weights) -> None:
    logits = torch.randn(7, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    y = torch.tensor([0, 0, 0, 1, 2, 2, 2])
    losses = [(row.logsumexp(0) - row[k]).item() for row, k in zip(logits, y.tolist(), strict=True)]
    total = 0.0
    for k in (0, 1, 2):
        own = [value for value, label in zip(losses, y.tolist(), strict=True) if label == k]
        grown = [math.exp(value) if weights == "adaptive" else 1.0 for value in own]
        total += sum(w * value for w, value in zip(grown, own, strict=True)) / sum(grown) / 3
    expected = sum(losses) / 7 if weights == "none" else total
    assert reweighted_cross_entropy(logits, y, weights=weights).item() == pytest.approx(expected, rel=1e-14)
