"""Whether published weights can be had from here: a download that cannot succeed takes a minute to say so."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from urllib.parse import urlsplit

from longshift.errors import LongshiftError

TORCHVISION = "torchvision/"  # the prefix of torchvision's models, whose weights DomainBed starts from
TORCHVISION_WEIGHTS = "IMAGENET1K_V1"
HUB_FILES = ("model.safetensors", "pytorch_model.bin")


def require_pretrained(name: str) -> None:
    """Raise, with the way out, where the weights of a backbone cannot be had."""
    why = obstacle(name)
    if why:
        raise no_weights(name, why)


def no_weights(name: str, why: object) -> LongshiftError:
    """The error for published weights that could not be loaded."""
    file = name.removeprefix(TORCHVISION)
    return LongshiftError(
        f"cannot get the pretrained weights of {name}: {why}\n"
        f"Without internet, pass a file: --weights {file}.safetensors; or start from nothing: --no-pretrained"
    )


def weights_available(name: str) -> bool:
    """Whether the weights are in the local cache, or their host answers."""
    return not obstacle(name)


def obstacle(name: str) -> str:
    """Why the weights cannot be had; empty where nothing speaks against it."""
    if name.startswith(TORCHVISION):
        return _torchvision_obstacle(name.removeprefix(TORCHVISION))
    import timm
    from huggingface_hub import constants, try_to_load_from_cache

    config = timm.get_pretrained_cfg(name)
    if config is None or not (config.hf_hub_id or config.url):
        return "timm has none for it"
    if not config.hf_hub_id:
        return _download_obstacle(str(config.url))
    files = (config.hf_hub_filename,) if config.hf_hub_filename else HUB_FILES
    if any(isinstance(try_to_load_from_cache(config.hf_hub_id, file), str) for file in files):
        return ""
    if os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on"):
        return "they are not in the local cache, and HF_HUB_OFFLINE is set"
    return unreachable(constants.ENDPOINT)


def _torchvision_obstacle(name: str) -> str:
    from torchvision import models

    try:
        found = models.get_model_weights(name)[TORCHVISION_WEIGHTS]
    except (KeyError, ValueError):
        return f"torchvision has no {TORCHVISION_WEIGHTS} for it"
    return _download_obstacle(str(found.url))


def _download_obstacle(url: str) -> str:
    """Of a file that torch's hub fetches."""
    import torch

    cached = Path(torch.hub.get_dir()) / "checkpoints" / Path(urlsplit(url).path).name
    return "" if cached.exists() else unreachable(url)


def unreachable(url: str, wait: float = 3.0) -> str:
    """Why a host cannot be reached; empty where it answers, and behind a proxy, where only loading can tell."""
    parts = urlsplit(url)
    secure = parts.scheme != "http"
    proxy = "HTTPS_PROXY" if secure else "HTTP_PROXY"
    if os.environ.get(proxy) or os.environ.get(proxy.lower()):
        return ""
    try:
        with socket.create_connection((parts.hostname or "", parts.port or (443 if secure else 80)), timeout=wait):
            return ""
    except OSError:
        return f"they are not in the local cache, and {parts.hostname} does not answer"
