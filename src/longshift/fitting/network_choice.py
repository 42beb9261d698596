"""Choose a network for the data and the machine, and try it on one image."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from longshift.data import Manifest, fitting_size, ordered_vectors, typical_side
from longshift.errors import UsageError
from longshift.nn import (
    SMALL_CONV,
    VECTOR_HEADS,
    make_backbone,
    require_network_of,
    require_pretrained,
    weights_available,
    weights_url,
)
from longshift.training import SMALL_IMAGE, RunConfig

LARGEST = 256  # pixels that a network gets by default, although it may be made for more


@dataclass(frozen=True)
class StartingNetwork:
    """A network of timm to start from. Its license and normalization are in timm's own configuration."""

    name: str
    level: str  # of --network; "" for a network that is chosen by its name
    accuracy: float  # percent on ImageNet-1k, as published
    measured: str  # how
    source: str


DINOV2, PROBE = "Oquab et al. 2024, arXiv:2304.07193", "linear probe"
NETWORKS = (
    StartingNetwork("mobilenetv3_large_100", "fast", 75.8, "top-1", "timm, results-imagenet.csv"),
    StartingNetwork("vit_small_patch14_dinov2", "balanced", 81.1, PROBE, DINOV2),
    StartingNetwork(
        "vit_base_patch16_siglip_224.v2_webli", "", 78.2, "zero-shot", "Tschannen et al. 2025, arXiv:2502.14786"
    ),
    StartingNetwork("vit_base_patch14_dinov2", "", 84.5, PROBE, DINOV2),
    StartingNetwork("vit_large_patch14_dinov2", "best", 86.3, PROBE, DINOV2),
)
LEVELS = {network.level: network.name for network in NETWORKS if network.level}
DEFAULT = LEVELS["balanced"]


def choose_network(
    manifest: Manifest,
    gpu: bool,
    network: str = "auto",
    weights: str | None = None,
    pretrained: bool | None = None,
    image_size: int = 0,
    trainable: str | None = None,
) -> tuple[dict[str, Any], str]:
    """Choose backbone, starting weights, image size and what is trained, where the user did not.

    Only a head is trained if there are starting weights and no GPU.

    Returns:
        Values for `RunConfig`, and where the weights are that were wanted and cannot be downloaded here ("": none).
    """
    backbone = named_network(network)
    if manifest.vectors:
        # Options of images are passed on: they are errors here.
        given = {"weights": weights, "pretrained": bool(pretrained), "image_size": image_size}
        asked = {"trainable": trainable} if trainable else {}
        return {"backbone": backbone, **given, **asked}, ""
    unreached = ""
    if weights is not None:
        name = backbone if backbone != "auto" else require_network_of(Path(weights))
        start: dict[str, Any] = {"backbone": name, "weights": weights}
    elif backbone != "auto":
        if pretrained is None and backbone not in (SMALL_CONV, *VECTOR_HEADS):
            require_pretrained(backbone)  # few want to train a published network from random weights
            pretrained = True
        name, start = backbone, {"backbone": backbone, "pretrained": bool(pretrained)}
    elif pretrained is not False and (pretrained or typical_side(manifest) > SMALL_IMAGE):
        name, start = DEFAULT, {"backbone": DEFAULT, "pretrained": True}
        if not pretrained and not weights_available(DEFAULT):
            name, start, unreached = SMALL_CONV, {"backbone": SMALL_CONV}, weights_url(DEFAULT)
    else:
        name, start = SMALL_CONV, {"backbone": SMALL_CONV}
    starting = bool(weights or start.get("pretrained"))
    head = trainable == "head" or (trainable is None and starting and not gpu)
    size = image_size or usual_size(name) or (224 if gpu or head else 128)
    if name == SMALL_CONV:
        size = image_size or fitting_size(manifest, SMALL_IMAGE if backbone == "auto" and not weights else size)
    frozen = {"trainable": "head", "preprocessing": "network"} if head else {"trainable": "all"}
    return {**start, "image_size": size, **frozen}, unreached


def named_network(network: str) -> str:
    """The backbone of a value of --network."""
    return ",".join(LEVELS.get(part.strip(), part.strip()) for part in network.split(","))


def try_network(config: RunConfig, manifest: Manifest) -> None:
    """Build the network with its starting weights and run it on one image.

    This finds unknown names, networks for other data, weights that do not match or cannot be downloaded and unsupported
    image sizes before the images are decoded.
    """
    name = config.backbone_name
    length = ordered_vectors(manifest)[0].shape[1] if manifest.vectors else 0
    start = Path(config.weights) if config.weights else None
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        try:
            backbone = make_backbone(
                name, pretrained=config.pretrained, weights=start, input_dim=length, size=config.size
            )
            if not manifest.vectors:
                backbone.module.eval()(torch.zeros(1, 3, config.size, config.size))
        except (AssertionError, RuntimeError, ValueError) as error:
            usual = usual_size(name)
            hint = f"--image-size {usual}" if usual else "a larger --image-size or another network"
            raise UsageError(
                f"Expected an image size that {name} supports, got {config.size}x{config.size} pixels "
                f"({str(error).splitlines()[0]}). Try {hint}"
            ) from error


def usual_size(name: str) -> int:
    """The image size that a network is made for, at most 224 if that is large; 0 if it takes any size."""
    import timm

    for part in name.split(","):
        config = None if part in (SMALL_CONV, *VECTOR_HEADS) or "/" in part else timm.get_pretrained_cfg(part)
        if config is not None and config.fixed_input_size:
            return int(config.input_size[-1]) if config.input_size[-1] <= LARGEST else 224
    return 0
