"""The loss modules run on tensors without values: shapes are static and nothing is read on the host."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from longshift import losses

COUNTS = [[9, 3, 1], [1, 3, 9]]
Call = Callable[[nn.Module, Tensor, Tensor, Tensor, Tensor], Tensor]
MODULES: dict[str, tuple[Callable[[], nn.Module], Call]] = {
    "BalancedSoftmaxLoss": (lambda: losses.BalancedSoftmaxLoss(COUNTS), lambda m, f, z, y, d: m(z, y, d)),
    "LDAMLoss": (lambda: losses.LDAMLoss(COUNTS), lambda m, f, z, y, d: m(z, y, d)),
    "InverseFrequencyCE": (lambda: losses.InverseFrequencyCE(COUNTS), lambda m, f, z, y, d: m(z, y, d)),
    "FocalLoss": (losses.FocalLoss, lambda m, f, z, y, d: m(z, y)),
    "ReweightedCE": (losses.ReweightedCE, lambda m, f, z, y, d: m(z, y)),
    "CORALLoss": (lambda: losses.CORALLoss(2), lambda m, f, z, y, d: m(f, d)),
    "MMDLoss": (lambda: losses.MMDLoss(2), lambda m, f, z, y, d: m(f, d)),
    "IRMPenalty": (lambda: losses.IRMPenalty(2), lambda m, f, z, y, d: m(z, y, d)),
    "VRExPenalty": (lambda: losses.VRExPenalty(2), lambda m, f, z, y, d: m(f[:, 0], d)),
    "FishrPenalty": (lambda: losses.FishrPenalty(2, 3, 4), lambda m, f, z, y, d: m(f, z, y, d)),
    "BoDALoss": (lambda: losses.BoDALoss(COUNTS, 4), lambda m, f, z, y, d: m(f, y, d)),
    "PrototypeAlignment": (losses.PrototypeAlignment, lambda m, f, z, y, d: m(z.softmax(1), y, d)),
}


@pytest.mark.parametrize("name", list(MODULES))
def test_a_loss_reads_no_tensor(name: str) -> None:
    make, call = MODULES[name]
    module = make().to("meta")
    features = torch.empty(8, 4, device="meta", requires_grad=True)
    logits = torch.empty(8, 3, device="meta", requires_grad=True)
    y, d = torch.empty(2, 8, dtype=torch.int64, device="meta")
    value = call(module, features, logits, y, d)
    assert value.shape == ()
    value.backward()


def test_every_module_of_losses_is_tried() -> None:
    exported = {name for name in losses.__all__ if isinstance(getattr(losses, name), type)}
    modules = {name for name in exported if issubclass(getattr(losses, name), nn.Module)}
    others = {"NDCLLoss", "AmplitudeMix", "RandomConvolution"}  # tested with compilation and CUDA graphs; images
    assert modules - others == set(MODULES)
