"""Contrastive terms: every value and gradient of the fixtures, the closed-form gradient, plain loops, edge cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from longshift.losses.contrastive import CONTRASTS, infonce, infonce_nd, released, supcon, supcon_nd
from tests.losses import loops
from tests.methods.oracle import close, load, tensor

FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "infonce_nd": infonce_nd,
    "supcon_nd": supcon_nd,
    "infonce": infonce,
    "supcon": supcon,
    "released": released,
}
READINGS: dict[str, Callable[..., Tensor]] = {
    "con_infonce_nd": infonce_nd,
    "con_supcon_nd": supcon_nd,
    "con_infonce": infonce,
    "con_supcon_linear": lambda *a, **k: supcon(*a, similarity="linear", **k),
    "con_supcon_exp": supcon,
}


def labels_of(case: dict[str, Any], key: str = "labels") -> Tensor:
    return tensor(case[key], torch.int64)


def check_terms(terms: Tensor, expected: list[float | None], what: str) -> None:
    close(terms, [0.0 if value is None else value for value in expected], what)


def test_paper_fixtures() -> None:
    checked = 0
    for case in load("ndcl_paper")["cases"]:
        if "augmented_predictions" in case:
            continue
        y = labels_of(case)
        for name, function in READINGS.items():
            expected, where = case["losses"][name], f"{case['name']}: {name}"
            p = tensor(case["predictions"]).requires_grad_()
            value = function(p, y, reduction="sum")
            close(value, expected["value"], where)
            close(torch.autograd.grad(value, p)[0], expected["grad"], f"{where} gradient")
            check_terms(function(p, y, reduction="none"), expected["terms"], f"{where} terms")
            mean = expected["value"] / max(expected["n_anchors"], 1)
            close(function(p, y, reduction="mean"), mean, f"{where} mean")
            checked += 1
    assert checked


def test_augmented_fixtures() -> None:
    cases = [case for case in load("ndcl_paper")["cases"] if "augmented_predictions" in case]
    assert cases
    for case in cases:
        y, c = labels_of(case), labels_of(case, "augmented_class")
        for name, negatives in (("aug_only", "augmented"), ("batch_plus_aug", "both")):
            expected = case["losses"][name]
            p = tensor(case["predictions"]).requires_grad_()
            q = tensor(case["augmented_predictions"]).requires_grad_()
            value = FUNCTIONS["infonce_nd"](p, y, q, c, negatives=negatives, reduction="sum")
            close(value, expected["value"], name)
            grad_p, grad_q = torch.autograd.grad(value, [p, q])
            close(grad_p, expected["grad"], f"{name} gradient")
            close(grad_q, expected["grad_augmented"], f"{name} gradient of the augmented")
            terms = FUNCTIONS["infonce_nd"](p, y, q, c, negatives=negatives, reduction="none")
            check_terms(terms, expected["terms"], f"{name} terms")


def test_released_margin_fixtures() -> None:
    for case in load("ndcl_released_losses")["cases"]:
        given = case["margin"]
        p = tensor(given["predictions"]).requires_grad_()
        q = tensor(given["augmented_predictions"]).requires_grad_()
        value = released(p, labels_of(given), q, labels_of(given, "augmented_class"))
        close(value, given["value"], case["name"])
        grad_p, grad_q = torch.autograd.grad(value, [p, q])
        close(grad_p, given["grad"], f"{case['name']} gradient")
        close(grad_q, given["grad_augmented"], f"{case['name']} gradient of the augmented")


def gradient_of_similarity(a: Tensor, b: Tensor) -> Tensor:
    """d s(a, b) / d a."""
    a2, b2 = (a * a).sum(), (b * b).sum()
    return b / (a2 * b2).sqrt() - loops.similarity(a, b) * a / a2


def test_closed_form_own_anchor_gradient() -> None:
    """The paper's gradient with its amplification factor is that of anchor i's own term."""
    for case in load("ndcl_paper")["cases"]:
        if "infonce_nd_own_term" not in case:
            continue
        expected, y = case["infonce_nd_own_term"], case["labels"]
        p = tensor(case["predictions"]).requires_grad_()
        terms = infonce_nd(p, labels_of(case), reduction="none")
        fixed = p.detach()
        for i, own in enumerate(y):
            where = f"{case['name']}, anchor {i}"
            actual = torch.autograd.grad(terms[i], p, retain_graph=True)[0][i]
            close(actual, expected["grad"][i], where)
            positives = [j for j, k in enumerate(y) if k == own and j != i]
            negatives = [j for j, k in enumerate(y) if k != own]
            if not negatives:
                assert expected["amplification_factor"][i] is None
                continue
            far = {j: 1 - loops.similarity(fixed[i], fixed[j]) for j in positives + negatives}
            factor = torch.stack([far[j] for j in negatives]).sum()
            factor = sum((far[j] for j in positives), torch.zeros_like(factor)) / factor
            close(factor, expected["amplification_factor"][i], f"{where} amplification factor")
            pull = sum((gradient_of_similarity(fixed[i], fixed[j]) for j in positives), torch.zeros_like(fixed[i]))
            push = sum((gradient_of_similarity(fixed[i], fixed[j]) for j in negatives), torch.zeros_like(fixed[i]))
            close(actual, ((push * factor - pull) / sum(far.values())).tolist(), f"{where} closed form")


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("negatives", ["augmented", "batch", "both"])
@pytest.mark.parametrize("name", CONTRASTS)
def test_against_plain_loops(name: str, negatives: str, normalized: bool) -> None:
    g = torch.Generator().manual_seed(3)
    y, c = [0, 0, 1, 1, 1, 2, 3, 0], [0, 0, 1, 2, 2, 0, 4]
    p = torch.randn(len(y), 5, generator=g, dtype=torch.float64).softmax(1)
    q = torch.randn(len(c), 5, generator=g, dtype=torch.float64).softmax(1)
    for kind in ("exp", "linear") if name in ("infonce", "supcon") else ("exp",):
        options: dict[str, Any] = {"similarity": kind} if name in ("infonce", "supcon") else {}
        options |= {"negatives": negatives, "normalized": normalized}
        expected = loops.contrast_terms(name, p, y, q, c, negatives=negatives, normalized=normalized, kind=kind)
        kept = {i: term for i, term in enumerate(expected) if term is not None}
        given = (p, tensor(y, torch.int64), q, tensor(c, torch.int64))
        actual = {r: FUNCTIONS[name](*given, reduction=r, **options) for r in ("none", "sum", "mean", "class")}
        assert torch.equal(actual["none"] != 0, torch.tensor([i in kept and kept[i] != 0 for i in range(len(y))]))
        for i, term in kept.items():
            close(actual["none"][i], term.item(), f"anchor {i}")
        close(actual["sum"], sum(t.item() for t in kept.values()), "sum")
        close(actual["mean"], sum(t.item() for t in kept.values()) / len(kept), "mean")
        classes = sorted({y[i] for i in kept})
        by_class = [[t.item() for i, t in kept.items() if y[i] == k] for k in classes]
        close(actual["class"], sum(sum(v) / len(v) for v in by_class) / len(classes), "class")


def test_normalized_contrast_ignores_how_many_positives_there_are() -> None:
    p = tensor([[0.7, 0.2, 0.1], [0.5, 0.3, 0.2], [0.1, 0.6, 0.3]])
    repeated = torch.cat([p[:1], p[1:2].expand(9, 3), p[2:]])
    few = infonce_nd(p, torch.tensor([0, 0, 1]), normalized=True, reduction="none")[0]
    many = infonce_nd(repeated, torch.tensor([0] * 10 + [1]), normalized=True, reduction="none")[0]
    torch.testing.assert_close(few, many)
    printed = infonce_nd(repeated, torch.tensor([0] * 10 + [1]), reduction="none")[0]
    assert printed > few + 0.5


def test_equal_predictions_give_the_value_of_equal_distances() -> None:
    """0/0 in eq. con as printed; with all distances equal the term is log |A(i)|."""
    p = torch.full((6, 4), 0.25, dtype=torch.float64, requires_grad=True)
    value = infonce_nd(p, torch.tensor([0, 0, 1, 1, 2, 3]), reduction="none")
    close(value, [torch.log(torch.tensor(5.0, dtype=torch.float64)).item()] * 6, "log |A|")
    assert torch.autograd.grad(value.sum(), p)[0].abs().max() == 0


@pytest.mark.parametrize("name", CONTRASTS)
def test_near_duplicates_in_float32_have_finite_gradients(name: str) -> None:
    g = torch.Generator().manual_seed(0)
    for scale in (1.0, 1e-3, 1e-5, 1e-7, 0.0):
        logits = (10 * torch.eye(4)[0] + scale * torch.randn(12, 4, generator=g)).requires_grad_()
        value = FUNCTIONS[name](logits.softmax(1), torch.arange(12) % 3)
        (grad,) = torch.autograd.grad(value, logits)
        assert torch.isfinite(value), scale
        assert torch.isfinite(grad).all(), scale


@pytest.mark.parametrize("name", ["infonce", "supcon"])
def test_tiny_similarities_of_sure_predictions_keep_their_digits(name: str) -> None:
    """Positives that are sure of different classes: s around 1e-9, whose logarithm leads the loss."""
    y = [0, 0, 1, 1]
    logits = 10 * tensor([[2, 0, 0], [0, 2.1, 0.2], [0.3, 0, 1.8], [0.1, 1.9, 0]])

    def loops_of(z: Tensor) -> Tensor:
        terms = loops.contrast_terms(name, z.softmax(1), y, negatives="batch", kind="linear")
        return torch.stack([term for term in terms if term is not None]).mean()

    def ours_of(z: Tensor) -> Tensor:
        return FUNCTIONS[name](z.softmax(1), torch.tensor(y), similarity="linear")

    for dtype, tolerance in ((torch.float64, 1e-13), (torch.float32, 1e-5)):
        z = logits.to(dtype).requires_grad_()
        ours, reference = ours_of(z), loops_of(z.double())
        torch.testing.assert_close(ours.double(), reference, rtol=tolerance, atol=0)
        expected = torch.autograd.grad(reference, z)[0]
        assert expected[0].abs().max() > 1e-2  # the pull between them is there
        torch.testing.assert_close(torch.autograd.grad(ours, z)[0], expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", ["infonce", "supcon"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_vanishing_similarities_have_finite_gradients(name: str, dtype: torch.dtype) -> None:
    for scale in (20.0, 40.0, 50.0, 90.0, 400.0, 1000.0):
        logits = (scale * torch.eye(4, dtype=dtype)).requires_grad_()
        value = FUNCTIONS[name](logits.softmax(1), torch.tensor([0, 0, 1, 1]), similarity="linear")
        assert value.isfinite(), scale
        assert torch.autograd.grad(value, logits)[0].isfinite().all(), scale


def test_errors_name_the_options() -> None:
    p, y = torch.full((2, 2), 0.5), torch.tensor([0, 1])
    with pytest.raises(ValueError, match="avg"):
        FUNCTIONS["infonce_nd"](p, y, reduction="avg")
    with pytest.raises(ValueError, match="augmented"):
        FUNCTIONS["infonce_nd"](p, y, negatives="mined")
    with pytest.raises(ValueError, match="`augmented_class`"):
        infonce_nd(p, y, negatives="both")
