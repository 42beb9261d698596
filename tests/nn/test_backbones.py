"""Backbones: feature sizes, weights from files, ResNet-50 as first published, frozen batch norm, precision."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timm
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F

from longshift.data.images import decode, resize
from longshift.errors import LongshiftError, UsageError
from longshift.nn.backbones import (
    check_backbone,
    make_backbone,
    make_network,
    network_of,
    require_network_of,
    stated_padding,
)
from longshift.nn.sources import Backbone
from tests.data.trees import pacs


@pytest.mark.parametrize("name", ["small_conv", "resnet18", "mobilenetv3_small_050", "torchvision/mobilenet_v3_small"])
def test_features_have_the_stated_length(name: str) -> None:
    backbone = make_backbone(name)
    backbone.module.eval()
    with torch.no_grad():
        assert backbone.module(torch.rand(2, 3, 64, 64)).shape == (2, backbone.feature_dim)


def test_mean_and_std_come_from_the_backbone() -> None:
    assert make_backbone("resnet18").mean == pytest.approx((0.485, 0.456, 0.406))
    assert make_backbone("mobilenetv3_small_050").std == pytest.approx((0.229, 0.224, 0.225))


def test_a_network_made_for_one_size_takes_another(tmp_path: Path) -> None:
    name, file = "vit_tiny_patch16_224", tmp_path / "vit.safetensors"
    torch.manual_seed(0)
    save_file(timm.create_model(name, num_classes=5).state_dict(), file)
    found = make_backbone(name, weights=file, size=256).module.eval()
    options: dict[str, Any] = {"pretrained_cfg_overlay": {"file": str(file), "num_classes": 5}}
    expected = timm.create_model(name, pretrained=True, num_classes=0, img_size=256, **options).eval()
    x = torch.rand(1, 3, 256, 256)
    with torch.no_grad():
        torch.testing.assert_close(found(x), expected(x))


def close(joined: Backbone, parts: Sequence[Backbone]) -> None:
    """The features are those of all parts, each with its own normalization."""
    pixels = torch.rand(2, 3, 64, 64)

    def features(backbone: Backbone) -> Tensor:
        mean, std = (torch.tensor(values)[None, :, None, None] for values in (backbone.mean, backbone.std))
        with torch.no_grad():
            found: Tensor = backbone.module.eval()((pixels - mean) / std)
        return found

    torch.testing.assert_close(features(joined), torch.cat([features(part) for part in parts], 1), rtol=1e-4, atol=1e-5)


def test_joined_networks_give_the_features_of_each_with_its_own_normalization() -> None:
    torch.manual_seed(0)
    names = ("mobilenetv3_small_050", "small_conv")
    joined = make_backbone(",".join(names))
    torch.manual_seed(0)
    parts = [make_backbone(name) for name in names]
    assert parts[0].mean != parts[1].mean
    close(joined, parts)
    assert joined.feature_dim == sum(part.feature_dim for part in parts)
    with pytest.raises(UsageError, match="mobilenetv9"):
        check_backbone("small_conv,mobilenetv9")


def test_joined_networks_have_weights_each(tmp_path: Path) -> None:
    names, files = ("small_conv", "mobilenetv3_small_050"), []
    headers = ({"input": "mean 0.5 std 0.5"}, {"input": "mean 0.3", "arch": "mobilenetv3_small_050 pad_type=same"})
    for name, about in zip(names, headers, strict=True):
        torch.manual_seed(3)
        files.append(tmp_path / f"{name}.safetensors")
        save_file(make_backbone(name).module.state_dict(), files[-1], about)
    several = Path(",".join(map(str, files)))
    joined = make_backbone(",".join(names), weights=several)
    assert network_of(several) == ",".join(names)
    assert joined.pad_type == stated_padding(several) == ",same"
    parts = [make_backbone(name, weights=file) for name, file in zip(names, files, strict=True)]
    close(joined, parts)
    loaded = make_backbone(",".join(names), pad_type=joined.pad_type)  # as a saved model is
    loaded.module.load_state_dict(joined.module.state_dict())
    close(loaded, parts)
    for name, weights in ((",".join(names), files[0]), ("small_conv", several)):
        with pytest.raises(UsageError, match="--weights"):
            make_backbone(name, weights=weights)


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
    _saved(tmp_path / "three.safetensors", input="RGB mean 0.485,0.456,0.406 std 0.229,0.224,0.225")
    backbone = make_backbone("mobilenetv3_small_050", weights=tmp_path / "three.safetensors")
    assert (backbone.mean, backbone.std) == ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def plain_resnet50_v1(state: dict[str, Tensor], x: Tensor) -> Tensor:
    """The features of ResNet-50 as first published, written out: a block's stride is in its first convolution."""

    def conv_norm(name: str, norm: str, x: Tensor, stride: int, padding: int = 0) -> Tensor:
        x = F.conv2d(x, state[f"{name}.weight"].float(), stride=stride, padding=padding)
        mean, var, scale, shift = (
            state[f"{norm}.{part}"].float()[:, None, None] for part in ("running_mean", "running_var", "weight", "bias")
        )
        return (x - mean) / (var + 1e-5).sqrt() * scale + shift

    x = F.max_pool2d(conv_norm("conv1", "bn1", x, 2, 3).relu(), 3, 2, 1)
    for stage, blocks in enumerate((3, 4, 6, 3), start=1):
        for block in range(blocks):
            at, stride = f"layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1
            y = conv_norm(f"{at}.conv1", f"{at}.bn1", x, stride).relu()
            y = conv_norm(f"{at}.conv2", f"{at}.bn2", y, 1, 1).relu()
            y = conv_norm(f"{at}.conv3", f"{at}.bn3", y, 1)
            if block == 0:
                x = conv_norm(f"{at}.downsample.0", f"{at}.downsample.1", x, stride)
            x = (x + y).relu()
    return x.mean((2, 3))


def test_resnet50_v1_has_its_stride_in_the_first_convolution() -> None:
    torch.manual_seed(0)
    backbone = make_backbone("resnet50_v1")
    for part in backbone.module.modules():
        if isinstance(part, nn.BatchNorm2d):
            nn.init.uniform_(part.weight, 0.5, 1)
    x = torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        found = backbone.module.eval()(x)
        torch.testing.assert_close(found, plain_resnet50_v1(backbone.module.state_dict(), x), rtol=1e-4, atol=1e-5)
        other = make_backbone("resnet50").module.eval()
        other.load_state_dict(backbone.module.state_dict())
        assert (other(x) - found).abs().max() > 0.01 * found.abs().max()
    with pytest.raises(LongshiftError, match="--weights"):
        make_backbone("resnet50_v1", pretrained=True)


@pytest.mark.slow
def test_resnet50_v1_with_its_published_weights_on_photographs() -> None:
    archive = pacs()
    weights = archive.parent / "weights" / "resnet50_v1_in1k.safetensors"
    if not weights.exists():
        pytest.skip(f"no weights at {weights}")
    with zipfile.ZipFile(archive) as images:
        names = sorted(name for name in images.namelist() if "/photo/" in name and name.endswith(".webp"))[::400]
        pixels = np.stack([resize(decode(images.read(name)), 224) for name in names])
    assert network_of(weights) == "resnet50_v1"
    found, wrong = (make_backbone(name, weights=weights) for name in ("resnet50_v1", "resnet50"))
    assert (found.mean, found.std) == ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    scale = torch.tensor([found.mean, found.std])[:, :, None, None]
    x = (torch.from_numpy(pixels).permute(0, 3, 1, 2) / 255 - scale[0]) / scale[1]
    with torch.no_grad():
        features = found.module.eval()(x)
        torch.testing.assert_close(features, plain_resnet50_v1(load_file(weights), x), rtol=1e-3, atol=1e-3)
        assert F.cosine_similarity(features, wrong.module.eval()(x)).max() < 0.95


@pytest.mark.parametrize(
    ("file", "metadata", "network"),
    [
        ("anything", {"arch": "timm mobilenetv3_small_050 pad_type=same"}, "mobilenetv3_small_050"),
        ("resnet50", {"arch": "resnet50_v1"}, "resnet50_v1"),
        ("resnet50_v1_in1k", {}, "resnet50_v1"),
        ("resnet50-0676ba61", {}, "resnet50"),
        ("tf_efficientnet_lite4_in1k", {}, "tf_efficientnet_lite4"),
        ("small_conv", {}, "small_conv"),
    ],
)
def test_a_file_tells_its_network(tmp_path: Path, file: str, metadata: dict[str, str], network: str) -> None:
    save_file({"a": torch.zeros(1)}, tmp_path / f"{file}.safetensors", metadata=metadata or None)
    assert require_network_of(tmp_path / f"{file}.safetensors") == network


def test_a_file_that_does_not_tell_its_network(tmp_path: Path) -> None:
    save_file({"a": torch.zeros(1)}, tmp_path / "best.safetensors")
    assert network_of(tmp_path / "best.safetensors") == ""
    with pytest.raises(UsageError, match="--backbone"):
        require_network_of(tmp_path / "best.safetensors")


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
    save_file({"x": torch.zeros(1)}, tmp_path / "w.safetensors", {"arch": "timm mobilenetv2_100 pad_type=same"})
    with pytest.raises(LongshiftError, match=r"mobilenetv2_100.*resnet18"):
        make_backbone("resnet18", weights=tmp_path / "w.safetensors")


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
