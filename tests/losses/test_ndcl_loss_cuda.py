"""On a GPU: the NDCL loss never waits for the device, can be captured in a CUDA graph, and equals the CPU's."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from longshift.losses import NDCLLoss
from longshift.losses.ndcl_loss import RELEASED

pytestmark = pytest.mark.gpu


def inputs(seed: int, classes: int, device: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(96, classes, generator=g)
    y, lam = torch.randint(classes, (96,), generator=g), torch.rand(192, generator=g)
    return x.to(device), y.to(device), torch.arange(3).repeat_interleave(32).to(device), lam.to(device)


def loss_and_gradient(ndcl: NDCLLoss, given: tuple[Tensor, Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    x, y, d, lam = given
    scale = torch.ones_like(x[0]).requires_grad_()
    loss = ndcl(lambda v: scale * v, x, y, d, lam[: ndcl.recipe.n_lambdas(len(x))])
    return loss.detach(), torch.autograd.grad(loss, scale)[0]


@pytest.mark.parametrize("classes", [7, 65, 345])
@pytest.mark.parametrize(
    "options", [{}, {**RELEASED, "shared_lambda": False}, {"negatives": "both", "prior": "domain"}]
)
def test_captured_replays_equal_the_cpu(classes: int, options: dict[str, Any]) -> None:
    counts = torch.arange(1, 3 * classes + 1).reshape(3, classes)
    ndcl = NDCLLoss(counts, **options)
    on_gpu = NDCLLoss(counts, **options).cuda()
    static = inputs(0, classes, "cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        loss_and_gradient(on_gpu, static)
        torch.cuda.set_sync_debug_mode("error")
        try:
            loss_and_gradient(on_gpu, static)
        finally:
            torch.cuda.set_sync_debug_mode("default")
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = loss_and_gradient(on_gpu, static)
    for seed in (1, 2):  # another batch: other classes present, other shares, same graph
        for target, source in zip(static, inputs(seed, classes, "cuda"), strict=True):
            target.copy_(source)
        graph.replay()
        expected = loss_and_gradient(ndcl, inputs(seed, classes, "cpu"))
        for a, b in zip(captured, expected, strict=True):
            torch.testing.assert_close(a.cpu(), b, rtol=1e-4, atol=1e-6)
