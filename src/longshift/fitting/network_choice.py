"""Choose a network for the data and the machine, and try it on one image."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from longshift.data import Manifest, fitting_size, ordered_vectors, typical_side
from longshift.errors import UsageError
from longshift.nn import SMALL_CONV, VECTOR_HEADS, make_backbone, require_network_of, weights_available
from longshift.training import SMALL_IMAGE, RunConfig


def choose_network(
    manifest: Manifest,
    gpu: bool,
    backbone: str = "auto",
    weights: str | None = None,
    pretrained: bool | None = None,
    image_size: int = 0,
    trainable: str | None = None,
) -> tuple[dict[str, Any], bool]:
    """Choose backbone, starting weights, image size and what is trained, where the user did not.

    Only a head is trained if there are starting weights and no GPU.

    Returns:
        Values for `RunConfig`, and whether pretrained weights were wanted and cannot be downloaded here.
    """
    if manifest.vectors:
        # Options of images are passed on: they are errors here.
        given = {"weights": weights, "pretrained": bool(pretrained), "image_size": image_size}
        asked = {"trainable": trainable} if trainable else {}
        return {"backbone": backbone, **given, **asked}, False
    name = "resnet50" if gpu else "resnet18"
    small = backbone == "auto" and weights is None and typical_side(manifest) <= SMALL_IMAGE
    if weights is not None:
        name = backbone if backbone != "auto" else require_network_of(Path(weights))
        start: dict[str, Any] = {"backbone": name, "weights": weights}
    elif backbone != "auto":
        reachable = pretrained is None and backbone not in (SMALL_CONV, *VECTOR_HEADS) and weights_available(backbone)
        name, start = backbone, {"backbone": backbone, "pretrained": bool(pretrained) or reachable}
    elif not small and pretrained is not False and (pretrained or weights_available(name)):
        start = {"backbone": name, "pretrained": True}
    else:
        name, start = SMALL_CONV, {"backbone": SMALL_CONV}
    starting = bool(weights or start.get("pretrained"))
    head = trainable == "head" or (trainable is None and starting and not gpu)
    size = image_size or only_size(name) or (224 if gpu or head else 128)
    if name == SMALL_CONV:
        size = image_size or fitting_size(manifest, SMALL_IMAGE if backbone == "auto" and not weights else size)
    unreached = pretrained is None and not (starting or small or backbone == SMALL_CONV)
    return {**start, "image_size": size, "trainable": "head" if head else "all"}, unreached


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

    if name in (SMALL_CONV, *VECTOR_HEADS) or "/" in name:
        return 0
    config = timm.get_pretrained_cfg(name)
    return int(config.input_size[-1]) if config is not None and config.fixed_input_size else 0
