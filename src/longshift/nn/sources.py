"""Where backbones come from: sources such as "torchvision/resnet50", and whether published weights are available."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from torch import nn

from longshift.data import PLAIN, Preprocessing
from longshift.errors import LongshiftError, UsageError, unknown_name
from longshift.registry import Registry, plugin_version


@dataclass(frozen=True)
class Backbone:
    """A featurizer and the normalization of its inputs.

    Args:
        module: Maps images (B, 3, H, W), normalized, to features (B, feature_dim).
        feature_dim: Length of a feature vector.
        mean: Mean of each color channel, for pixels in [0, 1].
        std: Standard deviation of each color channel.
        pad_type: Padding of its convolutions, if it is not timm's default.
        preprocessing: How images are resized and cropped for its published weights.

    Example:
        >>> from torch import nn
        >>> module = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
        >>> Backbone(module, feature_dim=3, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5)).feature_dim
        3
    """

    module: nn.Module
    feature_dim: int
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    pad_type: str = ""
    preprocessing: Preprocessing = PLAIN


@dataclass(frozen=True)
class BackboneSource:
    """Where backbones with one prefix come from."""

    make: Callable[[str, bool], Backbone]  # (name without the prefix, whether to load published weights)
    names: Callable[[], Iterable[str]]
    obstacle: Callable[[str], str]  # why published weights are not available; "" if they are
    version: str = ""  # of the code, where a plugin defines it


SOURCES = Registry[BackboneSource]("source of backbones")


def register_backbones(
    prefix: str,
    make: Callable[[str, bool], Backbone],
    names: Callable[[], Iterable[str]],
    obstacle: Callable[[str], str] = lambda name: "there are none",
) -> None:
    """Add a source: `--backbone PREFIX/NAME` then builds the backbone NAME with `make`.

    Args:
        prefix: Name of the source.
        make: Builds a backbone from its name and from whether its published weights are wanted.
        names: Lists the names of the backbones.
        obstacle: Tells why the published weights of a backbone are not available; an empty text if they are. By
            default there are none.

    Raises:
        LongshiftError: If another source has this prefix.

    Example:
        >>> def make(name, pretrained):
        ...     module = nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten())
        ...     return Backbone(module, 48, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5))
        >>> register_backbones("lab", make, names=lambda: ["pooled"])
    """
    if not prefix or "/" in prefix:
        raise LongshiftError(f"Expected a prefix without '/', got {prefix!r}.")
    SOURCES.add(prefix, BackboneSource(make, names, obstacle, plugin_version(make)))


def source_of(name: str) -> tuple[BackboneSource, str] | None:
    """The source of a backbone and its name there; None for a name without a prefix."""
    prefix, slash, rest = name.partition("/")
    return (SOURCES.find(prefix), rest) if slash else None


def backbone_version(name: str) -> str:
    """The version of the code that builds a backbone of a plugin; "" for the other backbones."""
    prefix, slash, _ = name.partition("/")
    found = SOURCES.get(prefix) if slash else None
    return found.version if found else ""


def check_name(name: str) -> None:
    """Raise if a source has no backbone of that name; `name` has a prefix."""
    found = source_of(name)
    assert found is not None
    prefix = name.partition("/")[0]
    known = [f"{prefix}/{known}" for known in found[0].names()]
    if name not in known:
        raise UsageError(unknown_name("backbone", name, known))


WAIT = 3.0  # seconds


def download_obstacle(url: str) -> str:
    """Why a file that torch.hub downloads is not available; empty if it is."""
    import torch

    cached = Path(torch.hub.get_dir()) / "checkpoints" / Path(urlsplit(url).path).name
    return "" if cached.exists() else unreachable(url)


def unreachable(url: str) -> str:
    """Why a host cannot be reached; empty if it answers, or behind a proxy, where only a download can tell."""
    parts = urlsplit(url)
    secure = parts.scheme != "http"
    proxy = "HTTPS_PROXY" if secure else "HTTP_PROXY"
    if os.environ.get(proxy) or os.environ.get(proxy.lower()):
        return ""
    try:
        with socket.create_connection((parts.hostname or "", parts.port or (443 if secure else 80)), timeout=WAIT):
            return ""
    except OSError:
        return f"they are not in the local cache, and {parts.hostname} does not answer"


WEIGHTS = "IMAGENET1K_V1"
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def make_torchvision(name: str, pretrained: bool) -> Backbone:
    """Build a network of torchvision without its classifier."""
    from torchvision import models

    module: nn.Module = models.get_model(name, weights=WEIGHTS if pretrained else None)
    # The last linear layer is the ImageNet classifier; everything before it makes the features.
    heads = [path for path, part in module.named_modules() if isinstance(part, nn.Linear)]
    if not heads:
        raise UsageError(f"torchvision/{name} has no linear classifier that could be removed; choose another backbone")
    head = module.get_submodule(heads[-1])
    assert isinstance(head, nn.Linear)
    module.set_submodule(heads[-1], nn.Identity())
    for part in module.modules():  # dropout before the classifier is a hyper-parameter of the protocol
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    return Backbone(module, head.in_features, IMAGENET_MEAN, IMAGENET_STD)


def torchvision_names() -> Iterable[str]:
    """The classification networks of torchvision."""
    from torchvision import models

    names: list[str] = models.list_models(module=models)
    return names


def torchvision_obstacle(name: str) -> str:
    """Why the weights of a network are not available; empty if they are."""
    from torchvision import models

    try:
        found = models.get_model_weights(name)[WEIGHTS]
    except (KeyError, ValueError):
        return f"torchvision has no {WEIGHTS} for it"
    return download_obstacle(str(found.url))


register_backbones("torchvision", make_torchvision, torchvision_names, torchvision_obstacle)


HUB_FILES = ("model.safetensors", "pytorch_model.bin")


def require_pretrained(name: str) -> None:
    """Raise if the published weights of a backbone are not available."""
    for part in name.split(","):
        if why := obstacle(part):
            raise no_weights(part, why)


def no_weights(name: str, why: object) -> LongshiftError:
    """The error for published weights that are not available, and what to do instead."""
    file, url = f"{name.rpartition('/')[2]}.safetensors", weights_url(name)
    save = f"fetch {url} elsewhere, save it as {file}, and add" if url else "pass a file:"
    return LongshiftError(
        f"cannot get the pretrained weights of {name}: {why}\nWithout internet, {save} --weights {file}"
    )


def weights_url(name: str) -> str:
    """Where the published weights of a timm model can be fetched as safetensors; "" for other networks."""
    import timm
    from huggingface_hub import constants

    config = None if source_of(name) else timm.get_pretrained_cfg(name)
    if config is None or not config.hf_hub_id:
        return ""
    return f"{constants.ENDPOINT}/{config.hf_hub_id}/resolve/main/{HUB_FILES[0]}"


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
