"""Backbones of torchvision, whose weights DomainBed starts from: "torchvision/resnet50"."""

from __future__ import annotations

from collections.abc import Iterable

from torch import nn

from longshift.errors import UsageError
from longshift.nn.backbone_sources import Backbone, register_backbones
from longshift.nn.weight_downloads import download_obstacle

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
