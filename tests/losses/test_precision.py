"""Full precision: half-precision tensors become float32, and autocast is off, however arguments are given."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from longshift.losses.precision import full_precision


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


def test_autocast_of_the_device_of_named_arguments_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def available(device: str) -> bool:
        asked.append(device)
        return False

    monkeypatch.setattr(torch.amp, "is_autocast_available", available)
    a = torch.empty(8, 8, device="meta")
    product(a=a, b=a)
    assert asked == ["meta"]
