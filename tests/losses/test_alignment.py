"""Prototypes and their alignment: every value and gradient of the fixtures."""

from __future__ import annotations

import torch

from longshift.losses.alignment import align, align_released, prototype_alignment, prototypes
from tests.methods.oracle import close, load, tensor


def test_paper_fixtures() -> None:
    for case in load("ndcl_paper")["cases"]:
        if "domains" not in case:
            continue
        y, d = tensor(case["labels"], torch.int64), tensor(case["domains"], torch.int64)
        expected = case["losses"]["const"]
        p = tensor(case["predictions"]).requires_grad_()
        value = prototype_alignment(p, y, d, reduction="sum")
        close(value, expected["value"], case["name"])
        close(torch.autograd.grad(value, p)[0], expected["grad"], f"{case['name']} gradient")
        mean = expected["value"] / max(expected["n_anchors"], 1)
        close(prototype_alignment(p, y, d), mean, f"{case['name']} mean")

        table = prototypes(p, y, d)
        terms = prototype_alignment(p, y, d, reduction="none")
        rows = table.present.nonzero()[:, 0].tolist()
        assert len(rows) == len(expected["prototypes"])
        by_group = {(int(d[i]), int(y[i])): i for i in rows}
        for given, term in zip(expected["prototypes"], expected["terms"], strict=True):
            row = by_group[given["domain"], given["class"]]
            close(table.mean[row], given["mean"], f"{case['name']} prototype")
            close(terms[row], term or 0.0, f"{case['name']} term")


def test_released_fixtures() -> None:
    for case in load("ndcl_released_losses")["cases"]:
        given = case["align"]
        means = tensor(given["prototypes"]).requires_grad_()
        value = align_released(means, tensor(given["class"], torch.int64))
        close(value, given["value"], case["name"])
        close(torch.autograd.grad(value, means)[0], given["grad"], f"{case['name']} gradient")


def test_rows_that_are_not_present_do_not_matter() -> None:
    g = torch.Generator().manual_seed(0)
    means = torch.rand(6, 4, generator=g, dtype=torch.float64)
    labels = torch.tensor([0, 0, 1, 1, 2, 2])
    present = torch.tensor([True, True, True, True, False, True])
    for function in (align, align_released):
        whole = function(means[present], labels[present])
        torch.testing.assert_close(function(means, labels, present), whole)


def test_alignment_pulls_the_domains_of_a_class_together() -> None:
    y, d = torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1])
    apart = tensor([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7], [0.6, 0.4]])
    together = tensor([[0.9, 0.1], [0.1, 0.9], [0.9, 0.1], [0.1, 0.9]])
    assert prototype_alignment(together, y, d) < prototype_alignment(apart, y, d)
