"""Class-conditional HSIC against loops over domains and classes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from longshift.losses.hsic import class_hsic, class_medians, classes_present
from longshift.losses.kernels import squared_distances


def loop_kernel(x: Tensor) -> Tensor:
    squared = torch.stack([((x - row) ** 2).sum(1) for row in x])
    kernel = torch.exp(-squared / (2 * squared[squared > 0].median()))
    center = torch.eye(len(x), dtype=x.dtype) - 1 / len(x)
    return center @ kernel @ center


def loop_hsic(a: Tensor, b: Tensor, y: Tensor, classes: int) -> Tensor:
    rows = []
    for a_d, b_d, y_d in zip(a, b, y, strict=True):
        total = torch.zeros((), dtype=a.dtype)
        for k in range(classes):
            mask = y_d == k
            if int(mask.sum()) >= 2:
                total = total + (loop_kernel(a_d[mask]) * loop_kernel(b_d[mask])).sum()
        rows.append(total)
    return torch.stack(rows)


def draw(domains: int, n: int, classes: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(n + classes)
    a = torch.randn(domains, n, 3, generator=generator, dtype=torch.float64)
    b = torch.randn(domains, n, 4, generator=generator, dtype=torch.float64)
    return a, b, torch.randint(classes, (domains, n), generator=generator)


@pytest.mark.parametrize(("domains", "n", "classes"), [(2, 2, 2), (3, 8, 5), (5, 9, 3), (2, 20, 65), (3, 6, 1)])
def test_value_and_gradient(domains: int, n: int, classes: int) -> None:
    a, b, y = draw(domains, n, classes)
    a.requires_grad_()
    b.requires_grad_()
    weights = torch.arange(1.0, domains + 1, dtype=torch.float64)
    actual, expected = class_hsic(a, b, y, classes), loop_hsic(a, b, y, classes)
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-11)
    if expected.requires_grad:
        for got, wanted in zip(
            torch.autograd.grad((weights * actual).sum(), (a, b)),
            torch.autograd.grad((weights * expected).sum(), (a, b)),
            strict=True,
        ):
            torch.testing.assert_close(got, wanted, rtol=0, atol=1e-11)


def test_medians_leave_out_zero_distances() -> None:
    x = torch.tensor([[[0.0], [0.0], [1.0], [3.0], [7.0], [7.0]]])
    y = torch.tensor([[0, 0, 0, 0, 2, 2]])
    # Class 0: pairs at 0 (left out), 1, 1, 4, 9, 9: the lower median is 4. Class 2: one pair, at 0. Class 1: none.
    assert class_medians(squared_distances(x, x), y, 3).tolist() == [[4.0, 1.0, 1.0]]


def test_coinciding_samples_contribute_nothing_and_have_finite_gradients() -> None:
    a, b, y = draw(2, 6, 3)
    a[:] = 1.0
    a.requires_grad_()
    total = class_hsic(a, b, y, 3).sum()
    (gradient,) = torch.autograd.grad(total, a)
    assert float(total.detach()) == pytest.approx(0, abs=1e-15)
    assert bool(gradient.isfinite().all())


def test_classes_present() -> None:
    assert classes_present(torch.tensor([[0, 0, 2], [1, 1, 1]]), 4).tolist() == [2, 1]
