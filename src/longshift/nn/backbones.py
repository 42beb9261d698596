"""Backbones by name: timm's, those of a registered source, the small conv net, heads for vectors (embeddings)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor, nn

from longshift.data import Preprocessing
from longshift.errors import LongshiftError, UsageError, unknown_name
from longshift.io import split_paths
from longshift.nn.layers import HIDDEN, VectorLinear, VectorMLP, small_conv
from longshift.nn.network import Network, Precision
from longshift.nn.sources import Backbone, check_name, no_weights, require_pretrained, source_of
from longshift.text import counted

SMALL_CONV = "small_conv"
RESNET50_V1 = "resnet50_v1"  # ResNet-50 as first published; torchvision's and timm's resnet50 is v1.5
FIRST_PUBLISHED = Preprocessing("bilinear", 224 / 256, keep_ratio=True)
VECTOR_MLP = "mlp"
VECTOR_LINEAR = "linear"
VECTOR_HEADS = (VECTOR_MLP, VECTOR_LINEAR)
HALF = (0.5, 0.5, 0.5)


def make_backbone(
    name: str,
    *,
    pretrained: bool = False,
    weights: Path | None = None,
    input_dim: int = 0,
    pad_type: str = "",
    most: int = 0,
    size: int = 0,
) -> Backbone:
    """Build a featurizer.

    Args:
        name: A name of timm, "SOURCE/NAME" for a registered source such as "torchvision/resnet50", "resnet50_v1" (as
            first published), "small_conv", or "mlp" or "linear" for vectors. Several names with commas between them are
            one backbone, whose features are those of all; the first decides how images are resized.
        pretrained: Whether to load the published weights, from the local cache or the internet.
        weights: A .safetensors file of the same model; its header may state a `pad_type`. For several names as many
            files, with commas between them.
        input_dim: Length of the vectors; 0 for images.
        pad_type: Padding of the convolutions, if it is not timm's default; with commas for several names.
        most: Refuse a network with more weights, before memory is taken for it; 0 for no limit.
        size: Side of the images. The position embeddings of a network made for another size are resampled.

    Returns:
        The featurizer and the normalization of its inputs.

    Raises:
        UsageError: If the name is unknown or the backbone does not fit the data.
        LongshiftError: If the weights are not available or do not fit.

    Example:
        >>> make_backbone("small_conv").feature_dim
        64
    """
    if weights is not None and pretrained:
        raise UsageError("Expected either pretrained or weights, got both.")
    if input_dim > 0 and name not in VECTOR_HEADS:
        raise UsageError(f"backbone {name!r} is for images, but the data are vectors of length {input_dim}; use 'mlp'")
    if input_dim < 1 and name in VECTOR_HEADS:
        raise UsageError(f"backbone {name!r} is for vectors (embeddings), but the data are images; try 'small_conv'")
    if most:
        try:
            with torch.device("meta"):  # shapes without memory
                module = make_backbone(name, input_dim=input_dim, pad_type=pad_type).module
            count = sum(tensor.numel() for tensor in module.state_dict().values())
        except (NotImplementedError, RuntimeError):  # of a plugin, whose code reads numbers
            count = 0
        if count > most:
            raise LongshiftError(f"backbone {name!r} has {count:,} weights, at most {most:,} can belong to it")
    if "," in name:
        names = name.split(",")
        files: Sequence[Path | None] = [None] * len(names) if weights is None else split_paths(weights)
        _require_one_each(names, files)
        pads = pad_type.split(",") if pad_type else [""] * len(names)
        return _joined([
            make_backbone(part, pretrained=pretrained, weights=file, pad_type=pad, size=size)
            for part, file, pad in zip(names, files, pads, strict=True)
        ])  # fmt: skip
    if weights is not None:
        _require_one_each([name], split_paths(weights))
    if name == SMALL_CONV:
        if pretrained:
            raise UsageError("small_conv has no published weights; drop --pretrained, or name another backbone")
        module, features = small_conv()
        backbone = Backbone(module, features, HALF, HALF)
    elif name == VECTOR_MLP:
        backbone = Backbone(VectorMLP(input_dim), HIDDEN, HALF, HALF)
    elif name == VECTOR_LINEAR:
        backbone = Backbone(VectorLinear(input_dim), input_dim, HALF, HALF)
    elif (found := source_of(name)) is not None:
        check_backbone(name, pretrained)
        try:
            backbone = found[0].make(found[1], pretrained)
        except OSError as error:
            raise no_weights(name, error) from error
    else:
        backbone = _timm_backbone(name, pretrained, weights, pad_type)
    if weights is not None:
        load_weights(backbone.module, weights)
    config = getattr(backbone.module, "pretrained_cfg", {})
    if size and config.get("fixed_input_size") and size != config["input_size"][-1]:
        backbone.module.set_input_size(img_size=(size, size))  # type: ignore[operator]
    return backbone


class JoinedFeatures(nn.Module):
    """Several networks; inputs are normalized for the first, and each of the others normalizes them anew."""

    scale: Tensor
    shift: Tensor

    def __init__(self, parts: Sequence[Backbone]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(part.module for part in parts)
        mean, std = (torch.tensor([getattr(part, name) for part in parts]) for name in ("mean", "std"))
        for name, value in (("scale", std[0] / std), ("shift", (mean[0] - mean) / std)):
            self.register_buffer(name, value[:, :, None, None])

    def forward(self, x: Tensor) -> Tensor:
        """Concatenated features (B, sum of the lengths)."""
        inputs = [x * scale + shift for scale, shift in zip(self.scale, self.shift, strict=True)]
        return torch.cat([part(given) for part, given in zip(self.parts, inputs, strict=True)], dim=1)


def _require_one_each(names: Sequence[str], files: Sequence[object]) -> None:
    """Raise unless there is one file of weights for each network."""
    if len(files) != len(names):
        raise UsageError(
            f"--weights: expected one file for each of {', '.join(names)}, in this order and with commas between them; "
            f"got {counted(len(files), 'file')}"
        )


def _joined(parts: Sequence[Backbone]) -> Backbone:
    length = sum(part.feature_dim for part in parts)
    first, pads = parts[0], [part.pad_type for part in parts]
    padding = ",".join(pads) if any(pads) else ""
    return Backbone(JoinedFeatures(parts), length, first.mean, first.std, padding, first.preprocessing)


def check_backbone(name: str, pretrained: bool = False) -> None:
    """Raise if a backbone does not exist or its published weights are not available; builds nothing."""
    if "," in name:
        for part in name.split(","):
            check_backbone(part, pretrained)
        return
    if name in (SMALL_CONV, *VECTOR_HEADS):
        return
    if "/" in name:
        check_name(name)
    elif name != RESNET50_V1:
        import timm

        model, dot, _ = name.partition(".")
        if not timm.is_model(model):
            raise UsageError(
                unknown_name("backbone", name, [*timm.list_models(), RESNET50_V1, SMALL_CONV, *VECTOR_HEADS])
            )
        tagged = timm.list_pretrained(f"{model}.*")  # "resnet50.a1_in1k": the weights that it is published with
        if dot and name not in tagged:
            raise UsageError(f"--backbone: {unknown_name('backbone', name, [model, *tagged])}")
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
        known = "resnet50" if name == RESNET50_V1 else name
        module: Any = timm.create_model(known, pretrained=pretrained, **options)
    except Exception as error:
        if pretrained:
            raise no_weights(name, error) from error
        if header.pad_type and isinstance(error, TypeError):  # an option that this network does not have
            raise LongshiftError(
                f"{weights} has the weights of {header.name or 'another network'}, not of {name}"
            ) from error
        raise
    if name == RESNET50_V1:  # the stride is in the 1x1 convolution, in v1.5 in the 3x3
        for stage in (module.layer2, module.layer3, module.layer4):
            stage[0].conv1.stride, stage[0].conv2.stride = (2, 2), (1, 1)
    config = module.pretrained_cfg
    features = timm_feature_dim(module)
    assert features is not None
    mean, std = header.mean or config.get("mean", HALF), header.std or config.get("std", HALF)
    found = FIRST_PUBLISHED if name == RESNET50_V1 else _preprocessing(config)
    return Backbone(module, features, tuple(mean), tuple(std), pad_type, found)


def _preprocessing(config: Mapping[str, Any]) -> Preprocessing:
    """What timm's configuration of a model states. A few models pad images; theirs are resized to a square."""
    return Preprocessing(
        "bilinear" if config.get("interpolation") == "bilinear" else "bicubic",
        config.get("crop_pct") or 1.0,
        config.get("crop_mode", "center") == "center",
    )


def timm_feature_dim(module: nn.Module) -> int | None:
    """The length of the features of a timm model without a classifier; None for a module of another kind."""
    # Some models (MobileNetV3) have a layer between the pooled features and the classifier; its length counts.
    found = getattr(module, "head_hidden_size", getattr(module, "num_features", None))
    return found if isinstance(found, int) else None


@dataclass(frozen=True)
class WeightsHeader:
    """What the header of a weights file states about its model; empty where it states nothing."""

    pad_type: str = ""  # TensorFlow-born weights want TensorFlow's padding ("same")
    mean: tuple[float, float, float] | None = None
    std: tuple[float, float, float] | None = None
    name: str = ""  # of the model


def weights_header(path: Path) -> WeightsHeader:
    """Read the safetensors header: `arch` may hold "timm NAME pad_type=same", `input` "mean 0.5 std 0.2,0.3,0.2"."""
    _require_safetensors(path)
    try:
        with safe_open(path, framework="pt") as file:
            header: dict[str, str] = file.metadata() or {}
    except SafetensorError as error:
        raise LongshiftError(f"cannot read {path} as safetensors: {error}") from error
    pad = re.search(r"\bpad_type=(\w+)", header.get("arch", ""))
    name = re.match(r"(?:timm[ /:])?([A-Za-z]\w*)", header.get("arch", ""))
    return WeightsHeader(
        pad[1] if pad else "",
        _channels("mean", header.get("input", "")),
        _channels("std", header.get("input", "")),
        name[1] if name else "",
    )


def _channels(word: str, text: str) -> tuple[float, float, float] | None:
    """The three numbers, or one for all channels, after a word."""
    found = re.search(rf"\b{word} (\d*\.?\d+)(?:, ?(\d*\.\d+), ?(\d*\.\d+))?", text)
    return (float(found[1]), float(found[2] or found[1]), float(found[3] or found[1])) if found else None


def stated_padding(weights: Path) -> str:
    """The `pad_type` of the backbone that a file of weights makes, or several files."""
    pads = [weights_header(file).pad_type for file in split_paths(weights)]
    return ",".join(pads) if any(pads) else ""


def network_of(weights: Path) -> str:
    """The network of a file of weights: what its header states, else the start of its name; "" if neither tells."""
    import timm

    if len(files := split_paths(weights)) > 1:
        names = [network_of(file) for file in files]
        return ",".join(names) if all(names) else ""
    if stated := weights_header(weights).name:
        return stated
    stem = weights.name.removesuffix(".safetensors")
    # "resnet50_v1_in1k" and "resnet50-0676ba61": the longest beginning that is a network
    starts = [stem, *(stem[: part.start()] for part in reversed(list(re.finditer(r"[-_.]", stem))))]
    return next((name for name in starts if name in (SMALL_CONV, RESNET50_V1) or timm.is_model(name)), "")


def require_network_of(weights: Path) -> str:
    """The network of a file of weights; an error if the file does not tell."""
    if name := network_of(weights):
        return name
    raise UsageError(
        f"Expected the name of a network in the header or the name of {weights}, got none. Add "
        f"--backbone (fit: --network), for example --backbone resnet50 (or {RESNET50_V1}, which has the same weights "
        "and other strides)"
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
