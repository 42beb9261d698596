"""Sources of backbones: "torchvision/resnet50" is the backbone resnet50 of the source torchvision."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from torch import nn

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
