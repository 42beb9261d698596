"""Backbones by name: any of timm's or torchvision's, the small conv net, or an MLP for vectors (embeddings)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import nn

from longshift.errors import LongshiftError, UsageError, unknown_name
from longshift.nn.network import Network, Precision
from longshift.nn.pretrained import TORCHVISION, TORCHVISION_WEIGHTS, no_weights, require_pretrained
from longshift.nn.small_conv import small_conv
from longshift.nn.vector_mlp import HIDDEN, VectorMLP

SMALL_CONV = "small_conv"
VECTOR_MLP = "mlp"
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
HALF = (0.5, 0.5, 0.5)


@dataclass(frozen=True)
class Backbone:
    """A featurizer with what it expects of its inputs."""

    module: nn.Module
    feature_dim: int
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    pad_type: str = ""  # how its convolutions pad, where that is not timm's default


def make_backbone(
    name: str, *, pretrained: bool = False, weights: Path | None = None, input_dim: int = 0, pad_type: str = ""
) -> Backbone:
    """Build a featurizer: timm's `name`, "torchvision/NAME", "small_conv", or "mlp" for vectors of length `input_dim`.

    `pretrained` asks timm or torchvision for its own weights (internet or cache); `weights` is a .safetensors file of
    the same model, whose header may state a `pad_type`.
    """
    if weights is not None and pretrained:
        raise UsageError("pretrained and weights were both given; choose one source of weights")
    if input_dim > 0 and name != VECTOR_MLP:
        raise UsageError(f"backbone {name!r} is for images, but the data are vectors of length {input_dim}; use 'mlp'")
    if name == SMALL_CONV:
        if pretrained:
            raise UsageError("small_conv has no published weights; drop --pretrained, or name another backbone")
        module, features = small_conv()
        backbone = Backbone(module, features, HALF, HALF)
    elif name == VECTOR_MLP:
        if input_dim < 1:
            raise UsageError("backbone 'mlp' is for vectors (embeddings), but the data are images; try 'small_conv'")
        backbone = Backbone(VectorMLP(input_dim), HIDDEN, HALF, HALF)
    elif name.startswith(TORCHVISION):
        backbone = _torchvision_backbone(name.removeprefix(TORCHVISION), pretrained)
    else:
        backbone = _timm_backbone(name, pretrained, weights, pad_type)
    if weights is not None:
        load_weights(backbone.module, weights)
    return backbone


def check_backbone(name: str, pretrained: bool = False) -> None:
    """Raise where a backbone does not exist or its published weights cannot be had; builds nothing."""
    if name in (SMALL_CONV, VECTOR_MLP):
        return
    if name.startswith(TORCHVISION):
        from torchvision import models

        known = [TORCHVISION + known for known in models.list_models(module=models)]
        if name not in known:
            raise UsageError(unknown_name("backbone", name, known))
    else:
        import timm

        if not timm.is_model(name.split(".")[0]):
            raise UsageError(unknown_name("backbone", name, [*timm.list_models(), SMALL_CONV, VECTOR_MLP]))
    if pretrained:
        require_pretrained(name)


def _timm_backbone(name: str, pretrained: bool, weights: Path | None, pad_type: str) -> Backbone:
    import timm

    check_backbone(name, pretrained)
    header = weights_header(weights) if weights is not None else WeightsHeader()
    options: dict[str, Any] = {"num_classes": 0}
    pad_type = header.pad_type or pad_type
    if pad_type:
        options["pad_type"] = pad_type
    try:
        module: Any = timm.create_model(name, pretrained=pretrained, **options)
    except Exception as error:
        if not pretrained:
            raise
        raise no_weights(name, error) from error
    config = module.pretrained_cfg
    # Some models (MobileNetV3) have a layer between the pooled features and the classifier; its length counts.
    features = int(getattr(module, "head_hidden_size", module.num_features))
    mean, std = header.mean or config.get("mean", HALF), header.std or config.get("std", HALF)
    return Backbone(module, features, tuple(mean), tuple(std), pad_type)


def _torchvision_backbone(name: str, pretrained: bool) -> Backbone:
    from torchvision import models

    check_backbone(TORCHVISION + name, pretrained)
    try:
        module: nn.Module = models.get_model(name, weights=TORCHVISION_WEIGHTS if pretrained else None)
    except OSError as error:
        raise no_weights(TORCHVISION + name, error) from error
    # The last linear layer is the ImageNet classifier; everything before it makes the features.
    heads = [path for path, part in module.named_modules() if isinstance(part, nn.Linear)]
    if not heads:
        raise UsageError(f"torchvision's {name} has no linear classifier to take off; choose another backbone")
    head = module.get_submodule(heads[-1])
    assert isinstance(head, nn.Linear)
    module.set_submodule(heads[-1], nn.Identity())
    for part in module.modules():  # dropout before the classifier is a hyper-parameter of the protocol
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    return Backbone(module, head.in_features, IMAGENET_MEAN, IMAGENET_STD)


@dataclass(frozen=True)
class WeightsHeader:
    """What a weights file says of the model it belongs to; empty where it is silent."""

    pad_type: str = ""  # TensorFlow-born weights want TensorFlow's padding ("same")
    mean: tuple[float, float, float] | None = None
    std: tuple[float, float, float] | None = None
    name: str = ""  # of the model


def weights_header(path: Path) -> WeightsHeader:
    """Read the safetensors header: `arch` may hold "timm NAME pad_type=same", `input` may hold "mean 0.5 std 0.5"."""
    _require_safetensors(path)
    try:
        with safe_open(path, framework="pt") as file:
            header: dict[str, str] = file.metadata() or {}
    except SafetensorError as error:
        raise LongshiftError(f"cannot read {path} as safetensors: {error}") from error
    pad = re.search(r"\bpad_type=(\w+)", header.get("arch", ""))
    name = re.match(r"(?:timm[ /:])?([A-Za-z]\w*)", header.get("arch", ""))
    scale = re.search(r"\bmean ([0-9.]*[0-9]) std ([0-9.]*[0-9])", header.get("input", ""))
    mean, std = (float(scale[1]), float(scale[2])) if scale else (None, None)
    return WeightsHeader(
        pad[1] if pad else "",
        (mean, mean, mean) if mean is not None else None,
        (std, std, std) if std is not None else None,
        name[1] if name else "",
    )


def _require_safetensors(path: Path) -> None:
    if not path.exists():
        raise LongshiftError(f"no weights file {path}")
    if path.suffix != ".safetensors":
        raise LongshiftError(
            f"{path} is not a .safetensors file; pickled weights are refused because loading them can run code. "
            "Convert them once: safetensors.torch.save_file(torch.load(FILE, weights_only=True), 'out.safetensors')."
        )


def load_weights(module: nn.Module, path: Path) -> None:
    """Load a .safetensors file; half-precision weights are widened, a wrong shape or name is reported in full."""
    _require_safetensors(path)
    try:
        given = {
            name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in load_file(path).items()
        }
    except (SafetensorError, OSError) as error:
        raise LongshiftError(f"cannot read {path} as safetensors: {error}") from error
    own = module.state_dict()
    # Batch-norm counters do not influence anything and some exporters leave them out.
    missing = [name for name in own if name not in given and not name.endswith("num_batches_tracked")]
    heads = ("fc.", "classifier.", "head.")
    extra = [name for name in given if name not in own and not name.startswith(heads)]
    wrong = [name for name in given if name in own and given[name].shape != own[name].shape]
    if missing or extra or wrong:
        listed = "; ".join(
            f"{len(names)} {what} (e.g. {', '.join(names[:3])})"
            for names, what in ((missing, "missing"), (extra, "unknown"), (wrong, "of another shape"))
            if names
        )
        raise LongshiftError(f"{path} does not fit this backbone: {listed}. Was it saved from another model?")
    module.load_state_dict({name: given[name] for name in given if name in own}, strict=False)


def make_network(
    backbone: Backbone, classes: int, *, dropout: float = 0.0, freeze_bn: bool = True, precision: Precision = "fp32"
) -> Network:
    """Featurizer plus a fresh linear head."""
    head = nn.Linear(backbone.feature_dim, classes)
    return Network(backbone.module, head, dropout, freeze_bn, precision)
