"""Backbones: feature sizes, weights from files, frozen batch norm, precision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import timm
import torch
from safetensors.torch import save_file
from torch import nn

from longshift.errors import LongshiftError, UsageError
from longshift.nn.backbones import check_backbone, make_backbone, make_network


@pytest.mark.parametrize("name", ["small_conv", "resnet18", "mobilenetv3_small_050", "torchvision/mobilenet_v3_small"])
def test_features_have_the_stated_length(name: str) -> None:
    backbone = make_backbone(name)
    backbone.module.eval()
    with torch.no_grad():
        assert backbone.module(torch.rand(2, 3, 64, 64)).shape == (2, backbone.feature_dim)


def test_mean_and_std_come_from_the_backbone() -> None:
    assert make_backbone("resnet18").mean == pytest.approx((0.485, 0.456, 0.406))
    assert make_backbone("mobilenetv3_small_050").std == pytest.approx((0.229, 0.224, 0.225))


def test_torchvisions_network_without_its_classifier() -> None:
    from torchvision.models import resnet18

    torch.manual_seed(0)
    whole = resnet18().eval()
    backbone = make_backbone("torchvision/resnet18")
    state = {k: v for k, v in whole.state_dict().items() if not k.startswith("fc.")}
    backbone.module.load_state_dict(state)
    backbone.module.eval()
    x = torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(whole.fc(backbone.module(x)), whole(x))


@pytest.mark.parametrize("name", ["resnet5O", "torchvision/resnet5O", "small_con"])
def test_unknown_names_are_answered_with_close_ones(name: str) -> None:
    with pytest.raises(UsageError, match=name):
        make_backbone(name)


def _saved(path: Path, half: bool = False, **metadata: str) -> nn.Module:
    torch.manual_seed(1)
    model = timm.create_model("mobilenetv3_small_050", num_classes=10)
    state = {k: v.half() if half and v.is_floating_point() else v for k, v in model.state_dict().items()}
    save_file({k: v.contiguous() for k, v in state.items()}, path, metadata=metadata or None)
    return model.eval()


@pytest.mark.parametrize("half", [False, True])
def test_weights_from_a_file(tmp_path: Path, half: bool) -> None:
    """Weights of the same model load, half precision is widened, and the file's own classifier is left out."""
    original = _saved(tmp_path / "w.safetensors", half)
    backbone = make_backbone("mobilenetv3_small_050", weights=tmp_path / "w.safetensors")
    assert all(p.dtype == torch.float32 for p in backbone.module.parameters())
    x = torch.rand(1, 3, 64, 64)
    with torch.no_grad():
        expected = original.forward_head(original.forward_features(x), pre_logits=True)  # type: ignore[operator]
        found = backbone.module.eval()(x)
    torch.testing.assert_close(found, expected, rtol=0.05 if half else 1e-5, atol=0.05 if half else 1e-5)


def test_a_file_may_state_its_padding_and_scale(tmp_path: Path) -> None:
    arch = "timm mobilenetv3_small_050 pad_type=same"
    _saved(tmp_path / "w.safetensors", arch=arch, input="RGB, mean 0.5 std 0.25, 224")
    backbone = make_backbone("mobilenetv3_small_050", weights=tmp_path / "w.safetensors")
    assert (backbone.mean, backbone.std) == ((0.5,) * 3, (0.25,) * 3)
    assert any(type(part).__name__ == "Conv2dSame" for part in backbone.module.modules())


def test_weights_that_do_not_fit_are_explained(tmp_path: Path) -> None:
    _saved(tmp_path / "w.safetensors")
    with pytest.raises(LongshiftError, match=r"w\.safetensors"):
        make_backbone("resnet18", weights=tmp_path / "w.safetensors")
    with pytest.raises(LongshiftError, match=r"absent\.safetensors"):
        make_backbone("resnet18", weights=tmp_path / "absent.safetensors")
    (tmp_path / "w.pth").write_bytes(b"pickle")
    with pytest.raises(LongshiftError, match="pickle"):
        make_backbone("resnet18", weights=tmp_path / "w.pth")
    (tmp_path / "bad.safetensors").write_bytes(b"nonsense")
    with pytest.raises(LongshiftError, match=r"bad\.safetensors"):
        make_backbone("resnet18", weights=tmp_path / "bad.safetensors")


def test_frozen_batch_norm_keeps_its_statistics_and_can_be_unfrozen() -> None:
    for freeze, same in ((True, True), (False, False)):
        network = make_network(make_backbone("resnet18"), 3, freeze_bn=freeze)
        norm = network.featurizer.get_submodule("bn1")
        assert isinstance(norm, nn.BatchNorm2d)
        assert norm.running_mean is not None
        before = norm.running_mean.clone()
        network.train()
        network(torch.rand(4, 3, 32, 32))
        assert torch.equal(norm.running_mean, before) is same
        assert norm.training is not freeze


def test_bf16_stays_inside_the_featurizer() -> None:
    network = make_network(make_backbone("small_conv"), 3, precision="bf16")
    assert network.features(torch.rand(2, 3, 32, 32)).dtype == torch.float32
    assert network(torch.rand(2, 3, 32, 32)).dtype == torch.float32


def test_small_conv_has_no_published_weights() -> None:
    with pytest.raises(UsageError, match="small_conv"):
        make_backbone("small_conv", pretrained=True)


@pytest.mark.parametrize("name", ["resnet18.a:b", "resnet18.no_such_weights", "resnet18."])
def test_unknown_weights_of_a_network_are_refused_by_the_option(name: str) -> None:
    with pytest.raises(UsageError, match="--backbone"):
        check_backbone(name)
    check_backbone("resnet18.a1_in1k")


def test_a_network_that_is_too_large_takes_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[torch.device] = []

    def create(name: str, **options: Any) -> nn.Module:
        module: nn.Module = timm.models.create_model(name, **options)
        made.extend({parameter.device for parameter in module.parameters()})
        return module

    monkeypatch.setattr(timm, "create_model", create)
    with pytest.raises(LongshiftError, match="vit_giant_patch14_224"):
        make_backbone("vit_giant_patch14_224", most=10**6)
    assert made == [torch.device("meta")]
    assert make_backbone("resnet18", most=12 * 10**6).feature_dim == 512
