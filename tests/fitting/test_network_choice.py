"""Which network a fit takes."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from longshift.data import load_dataset
from longshift.errors import LongshiftError, UsageError
from longshift.fitting.network_choice import LEVELS, NETWORKS, choose_network
from tests.fitting.colored_sites import COUNTS, sites
from tests.training.frozen import small_weights


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sites(tmp_path_factory.mktemp("data") / "colors", COUNTS)


def available(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    monkeypatch.setattr("longshift.nn.sources.unreachable", lambda url: "no internet")
    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", lambda repo, file: repo if repo in names else None)


def test_which_network(data: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    manifest = load_dataset(data)
    values, unreached = choose_network(manifest, gpu=False)
    assert values == {"backbone": "small_conv", "image_size": 20, "trainable": "all"}
    assert not unreached
    values, _ = choose_network(manifest, gpu=True, network="resnet18", pretrained=True)
    assert values == {"backbone": "resnet18", "pretrained": True, "image_size": 224, "trainable": "all"}
    assert choose_network(manifest, gpu=True, network="resnet18", pretrained=False)[0]["pretrained"] is False
    available(monkeypatch)
    with pytest.raises(LongshiftError, match=r"timm/resnet18\..*/model\.safetensors.* --weights resnet18\.safetensors"):
        choose_network(manifest, gpu=True, network="resnet18")
    with pytest.raises(LongshiftError, match="absent"):
        choose_network(manifest, gpu=False, weights="absent.safetensors")
    photos = sites(tmp_path / "photos", COUNTS)
    for file in photos.rglob("*.png"):
        Image.open(file).resize((80, 80)).save(file)
    values, unreached = choose_network(load_dataset(photos), gpu=False)
    assert values["backbone"] == "small_conv"
    assert "timm/vit_small_patch14_dinov2.lvd142m" in unreached
    available(monkeypatch, "timm/vit_small_patch14_dinov2.lvd142m", "timm/resnet18.a1_in1k")
    head = {"trainable": "head", "preprocessing": "network"}
    balanced = {"backbone": "vit_small_patch14_dinov2", "pretrained": True, "image_size": 224, **head}
    assert choose_network(load_dataset(photos), gpu=False) == (balanced, "")
    assert choose_network(manifest, gpu=False, network="balanced") == (balanced, "")
    values, _ = choose_network(manifest, gpu=False, network="balanced, resnet18")
    assert values["backbone"] == "vit_small_patch14_dinov2,resnet18"
    with pytest.raises(LongshiftError, match="mobilenetv3_large_100"):
        choose_network(manifest, gpu=False, network="balanced,fast")


def test_every_network_of_the_table_has_published_weights() -> None:
    import timm

    for network in NETWORKS:
        config = timm.get_pretrained_cfg(network.name)
        assert config is not None
        assert config.license == "apache-2.0"
        assert config.hf_hub_id
    assert set(LEVELS) == {"fast", "balanced", "best"}


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
    for name, size in (("vit_tiny_patch16_224", 224), ("vit_small_patch14_dinov2", 224), ("resnet18", 128)):
        assert choose_network(manifest, gpu=False, network=name, pretrained=False)[0]["image_size"] == size
    assert choose_network(manifest, gpu=False, network="small_conv")[0]["image_size"] == 20
