"""Which network suits the data and the machine, and the sentence that says why."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import numpy as np

from longshift.data.images import decode
from longshift.data.manifest import Manifest
from longshift.data.source import open_source
from longshift.engine.config import SMALL_IMAGE
from longshift.errors import UsageError
from longshift.nn.backbones import weights_header

Choice = tuple[dict[str, Any], str]  # values for RunConfig, and why


def choose_network(
    manifest: Manifest,
    gpu: bool,
    backbone: str = "auto",
    weights: str | None = None,
    pretrained: bool | None = None,
    image_size: int = 0,
) -> Choice:
    """Backbone, starting weights and image size; what the user states stays as stated."""
    if manifest.vectors:
        return {"backbone": backbone}, "Vectors go through one hidden layer (256 units)."
    side = typical_side(manifest)
    size = image_size or (224 if gpu else 128)
    if weights is not None:
        name = backbone if backbone != "auto" else weights_header(Path(weights)).name
        if not name:
            raise UsageError(f"{weights} does not say which network it is for; name it with --backbone")
        return (
            {"backbone": name, "weights": weights, "image_size": size},
            f"{name} starts from {Path(weights).name}, on {size}x{size} pixels.",
        )
    if backbone != "auto":
        wanted = bool(pretrained)
        start = "pretrained weights" if wanted else "random weights"
        size = image_size or min(size, side if backbone == "small_conv" else size)
        return (
            {"backbone": backbone, "pretrained": wanted, "image_size": size},
            f"{backbone} starts from {start}, on {size}x{size} pixels.",
        )
    name = "resnet50" if gpu else "resnet18"
    small = side <= SMALL_IMAGE
    if not small and pretrained is not False and (pretrained or at_hand(name)):
        return (
            {"backbone": name, "pretrained": True, "image_size": size},
            f"{name} starts from pretrained weights, on {size}x{size} pixels.",
        )
    size = image_size or min(max(side, 16), SMALL_IMAGE)
    reason = f"A small network is trained from nothing, on {size}x{size} pixels."
    if not small:
        reason += (
            " No pretrained weights can be reached from here; with --weights FILE.safetensors, or with internet, "
            "results on photographs are usually far better."
        )
    return {"backbone": "small_conv", "image_size": size}, reason


def typical_side(manifest: Manifest, looked_at: int = 32) -> int:
    """Median of the shorter sides of some images."""
    if manifest.root is None:
        return 32
    chosen = np.unique(np.linspace(0, len(manifest) - 1, min(looked_at, len(manifest))).astype(int))
    with open_source(manifest) as source:
        sides = [min(decode(source.read(manifest.paths[i])).size) for i in chosen]
    return int(np.median(sides))


def at_hand(name: str, wait: float = 3.0) -> bool:
    """Whether timm's weights are in the local cache, or their host answers; trying to load them takes minutes."""
    import timm
    from huggingface_hub import try_to_load_from_cache

    config = timm.get_pretrained_cfg(name)
    if config is None or not config.hf_hub_id:
        return False
    if isinstance(try_to_load_from_cache(config.hf_hub_id, "model.safetensors"), str):
        return True
    if os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on"):
        return False
    if os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy"):
        return True  # what lies behind a proxy only loading can tell
    try:
        with socket.create_connection(("huggingface.co", 443), timeout=wait):
            return True
    except OSError:
        return False
