"""Vectors of images are computed in float32 proper."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from longshift.data.image_cache import Store
from longshift.data.manifest import Manifest
from longshift.inference.embedding import embed
from longshift.nn import Backbone


class Watched(nn.Module):
    """Means of the colours; notes whether cuDNN may round to TF32 meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.rounds: list[bool] = []

    def forward(self, x: Tensor) -> Tensor:
        self.rounds.append(torch.backends.cudnn.allow_tf32)
        return x.mean((2, 3))


def test_vectors_are_not_rounded_to_tf32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)  # PyTorch's own default
    pixels = np.random.default_rng(0).integers(0, 256, (70, 4, 4, 3), dtype=np.uint8)
    labels, domains = np.zeros(70, dtype=np.int64), np.zeros(70, dtype=np.int64)
    manifest = Manifest("x", None, tuple(map(str, range(70))), labels, domains, ("a",), ("d",))
    module = Watched()
    found = embed(Store(manifest, pixels, 4, "x"), Backbone(module, 3, (0.5, 0.4, 0.3), (0.2, 0.3, 0.4)), "cpu")
    expected = (pixels / 255 - np.array([0.5, 0.4, 0.3])) / np.array([0.2, 0.3, 0.4])
    np.testing.assert_allclose(found, expected.mean((1, 2)), rtol=0, atol=1e-5)
    assert module.rounds == [False, False]
    assert torch.backends.cudnn.allow_tf32
