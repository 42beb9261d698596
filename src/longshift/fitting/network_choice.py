"""Which network suits the data and the machine, and the sentence that says why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from longshift.data import Manifest, fitting_size, ordered_vectors, typical_side
from longshift.errors import UsageError
from longshift.nn import SMALL_CONV, VECTOR_MLP, make_backbone, weights_available, weights_header
from longshift.training import SMALL_IMAGE, RunConfig

UNREACHED = (
    " No pretrained weights can be reached from here; with --weights FILE.safetensors, or with internet, results on "
    "photographs are usually far better."
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
    """Backbone, starting weights and image size; what the user states stays as stated."""
    if manifest.vectors:
        return {"backbone": backbone}, "Vectors go through one hidden layer (256 units)."
    size = image_size or (224 if gpu else 128)
    if weights is not None:
        name = backbone if backbone != "auto" else network_of(Path(weights))
        if not name:
            raise UsageError(
                f"{weights} does not say which network it is for; name it with --backbone, as in --backbone resnet50"
            )
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
    reason = f"A small network is trained from nothing, on {size}x{size} pixels."
    if not small and pretrained is None:
        reason += UNREACHED
    return {"backbone": "small_conv", "image_size": size}, reason


def network_of(weights: Path) -> str:
    """The network that a file of weights says it is for, in its header or by its name; "" if neither does."""
    import timm

    stem = weights.name.removesuffix(".safetensors")
    return weights_header(weights).name or (stem if stem == SMALL_CONV or timm.is_model(stem) else "")


def try_network(config: RunConfig, manifest: Manifest) -> None:
    """Build the network once, with its starting weights, and show it one picture.

    A name that does not exist, a network for other data, weights that do not fit or cannot be reached, and an image
    size it does not take are all found here, before the images are decoded.
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
                f"backbone {name} does not take images of {config.size}x{config.size} pixels "
                f"({str(error).splitlines()[0]}); try {hint}"
            ) from error


def only_size(name: str) -> int:
    """The one image size that a network takes (vision transformers are made for one); 0 where any will do."""
    import timm

    if name in (SMALL_CONV, VECTOR_MLP) or "/" in name:
        return 0
    config = timm.get_pretrained_cfg(name)
    return int(config.input_size[-1]) if config is not None and config.fixed_input_size else 0
