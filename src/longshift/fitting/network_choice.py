"""Choose a network for the data and the machine, with a sentence that explains the choice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from longshift.data import Manifest, fitting_size, ordered_vectors, typical_side
from longshift.errors import UsageError
from longshift.nn import SMALL_CONV, VECTOR_MLP, make_backbone, require_network_of, weights_available
from longshift.training import SMALL_IMAGE, RunConfig

UNREACHED = (
    " Pretrained weights cannot be downloaded here. With internet access or --weights FILE.safetensors, results on "
    "photographs are usually much better."
)
Choice = tuple[dict[str, Any], str]  # values for RunConfig, and why


def choose_network(
    manifest: Manifest,
    gpu: bool,
    backbone: str = "auto",
    weights: str | None = None,
    pretrained: bool | None = None,
    image_size: int = 0,
) -> Choice:
    """Choose backbone, starting weights and image size where the user did not."""
    if manifest.vectors:
        return {"backbone": backbone}, "The network for vectors has one hidden layer (256 units)."
    size = image_size or (224 if gpu else 128)
    if weights is not None:
        name = backbone if backbone != "auto" else require_network_of(Path(weights))
        size = image_size or only_size(name) or size
        return (
            {"backbone": name, "weights": weights, "image_size": size},
            f"{name} starts from {Path(weights).name}, on {size}x{size} pixels.",
        )
    if backbone != "auto":
        reachable = pretrained is None and backbone not in (SMALL_CONV, VECTOR_MLP) and weights_available(backbone)
        wanted = bool(pretrained) or reachable
        start = "pretrained weights" if wanted else "random weights"
        if backbone == SMALL_CONV:
            size = image_size or fitting_size(manifest, size)
        else:
            size = image_size or only_size(backbone) or size
        return (
            {"backbone": backbone, "pretrained": wanted, "image_size": size},
            f"{backbone} starts from {start}, on {size}x{size} pixels."
            + (UNREACHED if pretrained is None and not wanted and backbone != SMALL_CONV else ""),
        )
    name = "resnet50" if gpu else "resnet18"
    small = typical_side(manifest) <= SMALL_IMAGE
    if not small and pretrained is not False and (pretrained or weights_available(name)):
        return (
            {"backbone": name, "pretrained": True, "image_size": size},
            f"{name} starts from pretrained weights, on {size}x{size} pixels.",
        )
    size = image_size or fitting_size(manifest, SMALL_IMAGE)
    reason = f"A small network starts from random weights, on {size}x{size} pixels."
    if not small and pretrained is None:
        reason += UNREACHED
    return {"backbone": "small_conv", "image_size": size}, reason


def try_network(config: RunConfig, manifest: Manifest) -> None:
    """Build the network with its starting weights and run it on one image.

    This finds unknown names, networks for other data, weights that do not match or cannot be downloaded and unsupported
    image sizes before the images are decoded.
    """
    name = config.backbone_name
    length = ordered_vectors(manifest)[0].shape[1] if manifest.vectors else 0
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        start = Path(config.weights) if config.weights else None
        backbone = make_backbone(name, pretrained=config.pretrained, weights=start, input_dim=length)
        if manifest.vectors:
            return
        try:
            backbone.module.eval()(torch.zeros(1, 3, config.size, config.size))
        except (AssertionError, RuntimeError, ValueError) as error:
            hint = f"--image-size {only_size(name)}" if only_size(name) else "a larger --image-size or another network"
            raise UsageError(
                f"Expected an image size that {name} supports, got {config.size}x{config.size} pixels "
                f"({str(error).splitlines()[0]}). Try {hint}"
            ) from error


def only_size(name: str) -> int:
    """The only image size that a network supports (most vision transformers have one); 0 if it has no fixed size."""
    import timm

    if name in (SMALL_CONV, VECTOR_MLP) or "/" in name:
        return 0
    config = timm.get_pretrained_cfg(name)
    return int(config.input_size[-1]) if config is not None and config.fixed_input_size else 0
