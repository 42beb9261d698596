"""Whether published weights are available is known before anything is downloaded."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import timm
import torch
from safetensors.torch import save_file

from longshift.errors import LongshiftError
from longshift.nn import sources as pretrained
from longshift.nn.backbones import make_backbone


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[Any]]:
    """No network and empty caches; the hosts that are asked for."""
    asked: list[Any] = []

    def refuse(address: tuple[str, int], timeout: float) -> socket.socket:
        asked.append(address)
        raise OSError("no network")

    for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "https://weights.example")
    monkeypatch.setattr(socket, "create_connection", refuse)
    before = torch.hub.get_dir()
    torch.hub.set_dir(str(tmp_path / "torch"))
    yield asked
    torch.hub.set_dir(before)


@pytest.mark.parametrize(
    ("name", "host"), [("resnet18", "weights.example"), ("torchvision/resnet18", "download.pytorch.org")]
)
def test_without_internet_the_way_out_is_named(name: str, host: str, calls: list[Any]) -> None:
    with pytest.raises(LongshiftError, match=host) as caught:
        make_backbone(name, pretrained=True)
    assert "--weights" in str(caught.value)
    assert calls == [(host, 443)]
    assert not pretrained.weights_available(name)
    make_backbone(name)  # from nothing: nobody is asked
    assert len(calls) == 2


def test_a_host_that_answers_is_enough(calls: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "create_connection", lambda address, timeout: contextlib.nullcontext())
    assert pretrained.weights_available("resnet18")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert "HF_HUB_OFFLINE" in pretrained.obstacle("resnet18")


def test_a_proxy_is_left_to_loading(calls: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    assert pretrained.weights_available("resnet18")
    assert not calls


def test_weights_in_a_cache_need_no_network(calls: list[Any], tmp_path: Path) -> None:
    config = timm.get_pretrained_cfg("resnet18")
    assert config is not None
    folder = tmp_path / "hub" / f"models--{str(config.hf_hub_id).replace('/', '--')}"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text("0" * 40)
    snapshot = folder / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    save_file({"x": torch.zeros(1)}, snapshot / "model.safetensors")
    assert pretrained.weights_available("resnet18")
    checkpoints = tmp_path / "torch" / "checkpoints"
    checkpoints.mkdir(parents=True)
    (checkpoints / "resnet18-f37072fd.pth").touch()
    assert pretrained.weights_available("torchvision/resnet18")
    assert not calls


@pytest.mark.parametrize("name", ["resnet18d_nosuch", "test_vit4"])
def test_a_network_without_published_weights(name: str, calls: list[Any]) -> None:
    assert "timm" in pretrained.obstacle(name)
