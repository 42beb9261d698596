"""Full precision in losses."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from longshift.losses.common import full_precision


@full_precision
def product(a: Tensor, b: Tensor) -> Tensor:
    return a @ b


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_product_of_matrices_is_that_of_float32(dtype: torch.dtype) -> None:
    a, b = torch.rand(2, 8, 8, generator=torch.Generator().manual_seed(0)).to(dtype)
    expected = a.float() @ b.float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not torch.equal((a.float() @ b.float()).float(), expected)  # what it is for
        for found in (product(a, b), product(a, b=b), product(a=a, b=b)):
            assert found.dtype == torch.float32
            assert torch.equal(found, expected)


def test_autocast_is_checked_for_the_device_of_named_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def enabled(device: str) -> bool:
        asked.append(device)
        return False

    monkeypatch.setattr(torch, "is_autocast_enabled", enabled)
    for device in ("meta", "cpu"):  # meta tensors have no autocast, and asking PyTorch about it is an error
        a = torch.empty(8, 8, device=device)
        product(a=a, b=a)
    assert asked == ["cpu"]


def test_a_compiled_function_stays_in_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    def available(device: str) -> bool:
        raise AssertionError("PyTorch 2.11 cannot compile this function")

    monkeypatch.setattr(torch.amp, "is_autocast_available", available)
    torch.compiler.reset()
    a = torch.rand(8, 8, generator=torch.Generator().manual_seed(0))
    compiled = torch.compile(product, backend="eager", fullgraph=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = compiled(a, a)
    assert torch.equal(found, a @ a)
