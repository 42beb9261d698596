"""Which network a fit takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from longshift.data import load_dataset
from longshift.errors import LongshiftError, UsageError
from longshift.fitting.network_choice import choose_network
from tests.fitting.colored_sites import COUNTS, sites
from tests.training.frozen import small_weights


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sites(tmp_path_factory.mktemp("data") / "colors", COUNTS)


def test_which_network(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = load_dataset(data)
    values, unreached = choose_network(manifest, gpu=False)
    assert values == {"backbone": "small_conv", "image_size": 20, "trainable": "all"}
    assert not unreached
    values, _ = choose_network(manifest, gpu=True, backbone="resnet18", pretrained=True)
    assert values == {"backbone": "resnet18", "pretrained": True, "image_size": 224, "trainable": "all"}
    values, unreached = choose_network(manifest, gpu=True, backbone="resnet18")
    assert (values["pretrained"], unreached) == (False, True)
    monkeypatch.setattr("longshift.fitting.network_choice.weights_available", lambda name: name == "resnet18")
    assert choose_network(manifest, gpu=True, backbone="resnet18")[0]["pretrained"] is True
    assert choose_network(manifest, gpu=True, backbone="resnet18", pretrained=False)[0]["pretrained"] is False
    with pytest.raises(LongshiftError, match="absent"):
        choose_network(manifest, gpu=False, weights="absent.safetensors")


@pytest.mark.parametrize(
    ("gpu", "trainable", "chosen"),
    [
        (False, None, ("head", 224)),
        (True, None, ("all", 224)),
        (False, "all", ("all", 128)),
        (True, "head", ("head", 224)),
    ],
)
def test_a_head_is_trained_without_a_gpu(
    data: Path, gpu: bool, trainable: str | None, chosen: tuple[str, int], tmp_path: Path
) -> None:
    weights = str(small_weights(tmp_path))
    values, _ = choose_network(load_dataset(data), gpu, "resnet18", weights, trainable=trainable)
    assert (values["trainable"], values["image_size"]) == chosen


def test_weights_name_their_network(data: Path, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import save_file

    manifest = load_dataset(data)
    save_file({"x": torch.zeros(1)}, tmp_path / "named.safetensors", {"arch": "timm mobilenetv2_100 pad_type=same"})
    save_file({"x": torch.zeros(1)}, tmp_path / "silent.safetensors")
    values, _ = choose_network(manifest, gpu=False, weights=str(tmp_path / "named.safetensors"))
    assert values["backbone"] == "mobilenetv2_100"
    with pytest.raises(UsageError, match="Add --backbone"):
        choose_network(manifest, gpu=False, weights=str(tmp_path / "silent.safetensors"))
    for name in ("mobilenetv2_050", "small_conv"):  # a file of published weights often has nothing but its name
        (tmp_path / "silent.safetensors").rename(tmp_path / f"{name}.safetensors")
        values, _ = choose_network(manifest, gpu=False, weights=str(tmp_path / f"{name}.safetensors"))
        assert values["backbone"] == name
        (tmp_path / f"{name}.safetensors").rename(tmp_path / "silent.safetensors")


def test_a_network_made_for_one_size_gets_it(data: Path) -> None:
    manifest = load_dataset(data)
    assert choose_network(manifest, gpu=False, backbone="vit_tiny_patch16_224")[0]["image_size"] == 224
    assert choose_network(manifest, gpu=False, backbone="resnet18")[0]["image_size"] == 128
    assert choose_network(manifest, gpu=False, backbone="small_conv")[0]["image_size"] == 20
