"""Whether published weights are available: a download that cannot succeed fails only after a minute."""

from __future__ import annotations

import os

from longshift.errors import LongshiftError
from longshift.nn import torchvision_backbones as torchvision_backbones  # which registers its source
from longshift.nn.backbone_sources import source_of
from longshift.nn.weight_downloads import download_obstacle, unreachable

HUB_FILES = ("model.safetensors", "pytorch_model.bin")


def require_pretrained(name: str) -> None:
    """Raise if the published weights of a backbone are not available."""
    why = obstacle(name)
    if why:
        raise no_weights(name, why)


def no_weights(name: str, why: object) -> LongshiftError:
    """The error for published weights that are not available, and what to do instead."""
    file = name.rpartition("/")[2]
    return LongshiftError(
        f"cannot get the pretrained weights of {name}: {why}\n"
        f"Without internet, pass a file: --weights {file}.safetensors"
    )


def weights_available(name: str) -> bool:
    """Whether the published weights are in the local cache, or their host answers."""
    return not obstacle(name)


def obstacle(name: str) -> str:
    """Why the published weights are not available; empty if they are."""
    found = source_of(name)
    if found is not None:
        source, rest = found
        return source.obstacle(rest)
    import timm
    from huggingface_hub import constants, try_to_load_from_cache

    config = timm.get_pretrained_cfg(name)
    if config is None or not (config.hf_hub_id or config.url):
        return "timm has none for it"
    if not config.hf_hub_id:
        return download_obstacle(str(config.url))
    files = (config.hf_hub_filename,) if config.hf_hub_filename else HUB_FILES
    if any(isinstance(try_to_load_from_cache(config.hf_hub_id, file), str) for file in files):
        return ""
    if os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on"):
        return "they are not in the local cache, and HF_HUB_OFFLINE is set"
    return unreachable(constants.ENDPOINT)
