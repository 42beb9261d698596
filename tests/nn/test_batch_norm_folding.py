"""Folding frozen batch norm into convolutions changes neither outputs nor gradients."""

import copy
from typing import Any

import pytest
import timm
import torch
from torch import nn

from longshift.nn.backbones import make_backbone
from longshift.nn.batch_norm_folding import FoldedConv2d, OneDnnConv2d, fold_frozen_norms, use_onednn


def _randomize(module: nn.Module) -> None:
    """Batch norm as after training: no statistic or parameter at its initial value."""
    generator = torch.Generator().manual_seed(0)
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            assert part.running_mean is not None
            assert part.running_var is not None
            for tensor, low, high in (
                (part.weight, 0.5, 1.5),
                (part.bias, -0.3, 0.3),
                (part.running_mean, -0.3, 0.3),
                (part.running_var, 0.5, 2.0),
            ):
                tensor.data.uniform_(low, high, generator=generator)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [("resnet18", {}, 20), ("mobilenetv2_100", {"pad_type": "same"}, 52), ("mobilenetv3_small_050", {}, 34)],
)
def test_folding_changes_neither_outputs_nor_gradients(name: str, options: dict[str, Any], expected: int) -> None:
    torch.manual_seed(0)
    plain = timm.create_model(name, num_classes=0, **options).double().eval()
    _randomize(plain)
    folded = copy.deepcopy(plain)
    x = torch.randn(2, 3, 64, 64, dtype=torch.float64)
    assert fold_frozen_norms(folded, x) == expected
    assert list(folded.state_dict()) == list(plain.state_dict())
    weights = torch.randn(1, plain(x).shape[1], dtype=torch.float64)
    for model in (plain, folded):
        (model(x) * weights).sum().backward()
    torch.testing.assert_close(folded(x), plain(x), rtol=1e-9, atol=1e-9)
    for (key, a), (_, b) in zip(plain.named_parameters(), folded.named_parameters(), strict=True):
        assert a.grad is not None
        assert b.grad is not None
        assert torch.allclose(b.grad, a.grad, rtol=1e-7, atol=1e-8), key


@pytest.mark.parametrize(
    ("name", "options"), [("resnet18", {}), ("mobilenetv2_050", {"pad_type": "same"}), ("convnext_atto", {})]
)
def test_onednn_kernels_give_the_same_features(name: str, options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    plain = timm.create_model(name, num_classes=0, **options).eval()
    _randomize(plain)
    fast, x = copy.deepcopy(plain), torch.randn(2, 3, 65, 65)
    fold_frozen_norms(fast, x)
    use_onednn(fast)
    with torch.no_grad():
        torch.testing.assert_close(fast(x), plain(x), rtol=1e-4, atol=1e-4)
    assert any(isinstance(part, OneDnnConv2d) for part in fast.modules())
    assert not any(isinstance(part, FoldedConv2d) for part in fast.modules())


@pytest.mark.parametrize(
    "options", [{"padding": "same"}, {"padding": "valid"}, {"padding": 1, "padding_mode": "reflect"}]
)
def test_onednn_leaves_convolutions_with_other_padding(options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Conv2d(3, 4, 3, **options), nn.BatchNorm2d(4)).eval()
    _randomize(plain)
    fast, x = copy.deepcopy(plain), torch.randn(2, 3, 9, 9)
    assert fold_frozen_norms(fast, x) == 1
    use_onednn(fast)
    with torch.no_grad():
        torch.testing.assert_close(fast(x), plain(x))


@pytest.mark.parametrize("name", ["resnet18", "torchvision/mobilenet_v2", "densenet121"])
def test_folding_a_network_in_training_mode_changes_no_statistic(name: str) -> None:
    module = make_backbone(name).module.train()
    before = {key: value.clone() for key, value in module.state_dict().items()}
    folded = fold_frozen_norms(module, torch.rand(2, 3, 64, 64))
    assert folded > 0 or name == "densenet121"  # a densenet normalizes before it convolves
    assert all(torch.equal(value, before[key]) for key, value in module.state_dict().items())
    assert all(part.training for part in module.modules())


class _Shared(nn.Module):
    """A convolution whose output is used by the batch norm and by something else."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv(x)
        return torch.as_tensor(self.norm(y) + y)


def test_a_convolution_that_is_used_elsewhere_is_left_alone() -> None:
    model = _Shared().eval()
    _randomize(model)
    x = torch.randn(1, 3, 8, 8)
    before = model(x)
    assert fold_frozen_norms(model, x) == 0
    assert type(model.conv) is nn.Conv2d
    torch.testing.assert_close(model(x), before)


@pytest.mark.gpu
def test_folding_happens_on_a_gpu_that_rounds_to_tf32() -> None:
    model = make_backbone("mobilenetv2_100").module.cuda()
    allowed = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = True
    try:
        assert fold_frozen_norms(model, torch.rand(2, 3, 224, 224, device="cuda")) == 52
        assert torch.backends.cudnn.allow_tf32
    finally:
        torch.backends.cudnn.allow_tf32 = allowed


def test_a_copy_of_a_folded_module_uses_its_own_norm() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4)).eval()
    x = torch.randn(1, 3, 8, 8)
    assert fold_frozen_norms(model, x) == 1
    twin = copy.deepcopy(model)
    assert isinstance(twin[0], FoldedConv2d)
    assert twin[0].norm[0] is twin[1]
