"""A model for use without longshift: ONNX or torch.export, checked against PyTorch before the file is kept.

The graph takes what an image library gives, (N, size, size, 3) pixels from 0 to 255 as uint8, and holds scaling,
normalization and temperature itself; only decoding and resizing stay outside, and the JSON next to the file describes
them. A model of vectors takes (N, length) float32. Outputs: `logits` and calibrated `probabilities`.
"""

from __future__ import annotations

import copy
import importlib
import io
import logging
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

import longshift
from longshift.array_types import FloatArray
from longshift.data import BadImage, load_dataset, open_source, ordered_vectors, read_pixels
from longshift.errors import LongshiftError, UsageError
from longshift.inference.loading import LoadedModel, Weights, load_model
from longshift.inference.outputs import collect_outputs, expand_inputs, listed_paths
from longshift.inference.prediction import adapted_json, learn_offset, unsure_below
from longshift.io import replacing, require_writable, write_json
from longshift.training import ModelFile, RunFolder, normalize_pixels, read_config

Format = Literal["onnx", "torch"]
SUFFIX: dict[str, str] = {"onnx": ".onnx", "torch": ".pt2"}
CHECKED = 100  # inputs of each kind
TOLERANCE = 1e-4
MOST_NOISE = 1e-2  # twice what PyTorch's float32 itself is off by is accepted, up to this
Runner = Callable[[Tensor], tuple[Tensor, Tensor]]


class Deployed(nn.Module):
    """Pixels (or vectors) to logits and probabilities."""

    mean: Tensor
    std: Tensor
    offset: Tensor

    def __init__(self, model: LoadedModel, offset: FloatArray | None = None) -> None:
        super().__init__()
        self.predictor = model.predictor
        self.temperature = model.temperature
        self.vectors = model.info.vectors
        added = np.zeros(len(model.classes)) if offset is None else offset
        self.register_buffer("offset", torch.from_numpy(added).float())
        self.register_buffer("mean", model.inputs.mean.cpu())
        self.register_buffer("std", model.inputs.std.cpu())

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """(N, size, size, 3) uint8 or (N, length) float32."""
        x = inputs if self.vectors else normalize_pixels(inputs, self.mean, self.std)
        logits: Tensor = self.predictor(x) + self.offset
        return logits, (logits / self.temperature).softmax(1)


@dataclass(frozen=True)
class Exported:
    """What was written, and how far its outputs are from PyTorch's."""

    file: Path
    description: Path
    difference: float  # largest, over logits and probabilities
    random: int  # inputs it was checked on
    real: int
    noun: str = "images"  # or "vectors"
    warning: str = ""  # why the model should not be used, if its own record says so


def export(
    path: Path | str,
    format: Format = "onnx",
    out: Path | str | None = None,
    weights: Weights = "selected",
    reference: Iterable[str | os.PathLike[str]] | None = None,
    mix: Mapping[str, float] | None = None,
) -> Exported:
    """Write the model of a run or fit folder as ONNX or torch.export, with FILE.json next to it.

    Args:
        path: The folder of a run or a fit.
        format: "onnx" or "torch".
        out: The file to write; by default next to the model.
        weights: "selected" or "averaged".
        reference: Images of a site: the model is adapted to it, without labels, as `predict` would.
        mix: Known share of each class there.

    Returns:
        What was written, and the measured difference.

    Raises:
        LongshiftError: If the outputs differ from PyTorch's (no file is written), or a package is missing.

    Example:
        >>> longshift.export("fits/hospitals", "onnx", "model.onnx").difference  # doctest: +SKIP
        6.6e-06
    """
    if format not in SUFFIX:
        raise UsageError(f"expected the format onnx or torch, got {format!r}")
    if mix and reference is None:
        raise UsageError("the shares of classes are used with images of the site only: add --reference")
    model = load_model(path, weights, device="cpu")
    file = Path(out) if out else model.folder / f"model{SUFFIX[format]}"
    if file.suffix.lower() != SUFFIX[format]:
        other = next((name for name, suffix in SUFFIX.items() if suffix == file.suffix.lower()), None)
        hint = f"; for {file.suffix} use the format {other}" if other else ""
        raise UsageError(f"expected a file that ends with {SUFFIX[format]} for the format {format}, got {file}{hint}")
    require_writable(file)
    offset = None
    if reference is not None:
        files = expand_inputs(listed_paths(reference), model.info.vectors)
        offset = learn_offset(model, collect_outputs(model, files, features=False), mix=mix)
    deployed = Deployed(model, offset.values * model.temperature if offset else None).eval()
    made = random_inputs(model)
    payload, run = (_onnx if format == "onnx" else _torch)(deployed, made[:2])
    real = real_inputs(model)
    given = [made] + ([real] if real is not None else [])
    found = [compare(deployed, run, inputs) for inputs in given]
    difference = max(difference for difference, _ in found)
    if not all(difference <= max(TOLERANCE, min(2 * own, MOST_NOISE)) for difference, own in found):
        raise LongshiftError(
            f"the exported model differs from PyTorch by {difference:.2g}, at most {TOLERANCE:g} is allowed; "
            f"{file} was not written. Try the other format, or use the model with longshift predict"
        )
    with replacing(file) as temporary:
        temporary.write_bytes(payload)
    exported = Exported(
        file, file.with_name(file.name + ".json"), difference, len(made), 0 if real is None else len(real),
        "vectors" if model.info.vectors else "images", model.warning,
    )  # fmt: skip
    adapted = {"adapted": adapted_json(offset)} if offset else {}
    write_json(exported.description, describe(model, exported, format) | adapted)
    return exported


def compare(deployed: Deployed, run: Runner, inputs: Tensor) -> tuple[float, float]:
    """The largest difference to PyTorch, and what PyTorch's own float32 is off by where that was measured.

    Both are relative to the largest logit where that is above one.

    Float32 itself is the weaker side at times: group norm over flat pictures loses four digits in PyTorch and not in
    onnxruntime. Where the two differ too much, PyTorch computes again in float64, and the smaller difference counts.
    """
    found = run(inputs)
    difference = _gap(deployed, found, inputs)
    if difference <= TOLERANCE:
        return difference, 0.0
    exact, same = copy.deepcopy(deployed).double(), inputs.double() if deployed.vectors else inputs
    with torch.no_grad():
        own = _gap(exact, deployed(inputs), same)
    return min(difference, _gap(exact, found, same)), own


@torch.no_grad()
def _gap(reference: Deployed, found: tuple[Tensor, Tensor], inputs: Tensor) -> float:
    logits, probabilities = reference(inputs)
    scale = logits.abs().max().clamp_min(1.0)
    gap = torch.maximum((found[0] - logits).abs().max() / scale, (found[1] - probabilities).abs().max())
    return float(gap) if bool(torch.isfinite(gap)) else float("inf")


def random_inputs(model: LoadedModel, count: int = CHECKED) -> Tensor:
    """Noise of the right shape, the same every time."""
    generator = torch.Generator().manual_seed(0)
    if model.info.vectors:
        return torch.randn(count, model.info.input_dim, generator=generator)
    shape = (count, model.size, model.size, 3)
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)


def real_inputs(model: LoadedModel) -> Tensor | None:
    """Samples of the run's own data, evenly spread; None where the data cannot be read any more."""
    try:
        manifest = load_dataset(read_config(RunFolder(model.folder)).data)
        chosen = np.unique(np.linspace(0, len(manifest) - 1, min(CHECKED, len(manifest))).astype(int))
        if manifest.vectors:
            return torch.from_numpy(ordered_vectors(manifest)[0][chosen])
        with open_source(manifest) as source:
            pictures = [
                read_pixels(source.read(manifest.paths[i]), model.size, model.info.preprocessing) for i in chosen
            ]
    except (LongshiftError, BadImage):
        return None
    return torch.from_numpy(np.stack(pictures))


def _program(deployed: Deployed, example: Tensor) -> torch.export.ExportedProgram:
    batch = torch.export.Dim("batch", min=1)
    return torch.export.export(deployed, (example,), dynamic_shapes={"inputs": {0: batch}})


def _torch(deployed: Deployed, example: Tensor) -> tuple[bytes, Runner]:
    buffer = io.BytesIO()
    torch.export.save(_program(deployed, example), buffer)
    payload = buffer.getvalue()
    module = torch.export.load(io.BytesIO(payload)).module()  # what was written is what is checked

    def run(inputs: Tensor) -> tuple[Tensor, Tensor]:
        logits, probabilities = module(inputs)
        return logits, probabilities

    return payload, run


def _onnx(deployed: Deployed, example: Tensor) -> tuple[bytes, Runner]:
    for name in ("onnx", "onnxscript", "onnxruntime"):
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise UsageError(
                f"ONNX export needs {name}, which is not installed; pip install -e '.[export]', or use --format torch"
            ) from error
    import onnxruntime

    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter warns of its own internals
        program = torch.onnx.export(
            _program(deployed, example),
            input_names=["inputs"],
            output_names=["logits", "probabilities"],
            dynamo=True,
            verbose=False,
        )
    assert program is not None
    payload: bytes = program.model_proto.SerializeToString()
    session = onnxruntime.InferenceSession(payload, providers=["CPUExecutionProvider"])

    def run(inputs: Tensor) -> tuple[Tensor, Tensor]:
        logits, probabilities = session.run(["logits", "probabilities"], {"inputs": inputs.numpy()})
        return torch.from_numpy(logits), torch.from_numpy(probabilities)

    return payload, run


def _resizing(info: ModelFile) -> list[str]:
    """How a picture becomes a square, step by step."""
    how, size = info.preprocessing, info.size
    side, filtered = how.side(size), f"with antialiasing (Pillow's {how.interpolation.upper()})"
    if how.keep_ratio:
        return [f"resize the shorter side to {side} {filtered}", f"crop the center to {size}x{size}"]
    cropped = [f"crop the center to {size}x{size}"] if side > size else []
    return [f"resize the whole picture to {side}x{side} {filtered}", *cropped]


def describe(model: LoadedModel, exported: Exported, format: Format) -> dict[str, Any]:
    """How to use the file, for people and programs."""
    info, sure = model.info, model.knowledge.sure if model.knowledge else None
    images: dict[str, Any] = {"dtype": "uint8", "shape": ["batch", info.size, info.size, 3]}
    images |= {"meaning": "RGB pixels from 0 to 255", "resize": asdict(info.preprocessing)}
    vectors: dict[str, Any] = {"dtype": "float32", "shape": ["batch", info.input_dim]}
    source = info.vector_source
    vectors["meaning"] = f"vectors of {source.words() if source else 'the network that computed the training vectors'}"
    before = [
        "decode; turn upright as EXIF says; first frame only",
        "convert to RGB, transparency on white; 16-bit gray keeps its upper eight bits",
        *_resizing(info),
    ]
    inside = [
        "transpose to (batch, 3, height, width)",
        "divide by 255",
        f"subtract mean {list(info.mean)}, divide by std {list(info.std)}",
    ]
    return {
        "schema": 1,
        "format": format,
        "file": exported.file.name,
        **({"warning": exported.warning} if exported.warning else {}),
        "input": {"name": "inputs", **(vectors if info.vectors else images)},
        "preprocessing_outside": [] if info.vectors else before,
        "preprocessing_in_graph": [] if info.vectors else inside,
        "outputs": {
            "logits": ["batch", len(info.classes)],
            "probabilities": f"softmax(logits / {model.temperature}), calibrated on the validation set",
        },
        "classes": list(info.classes),
        "temperature": model.temperature,
        "unsure_below": unsure_below(sure),
        **({"sure_accuracy": sure.accuracy} if sure and sure.useful else {"all_unsure": True} if sure else {}),
        **({"vector_source": asdict(source)} if source else {}),
        "trained_on": list(info.sources),
        "method": info.method,
        "backbone": info.backbone,
        **({"head": info.head} if info.head else {}),
        "checked": {
            "largest_difference_to_pytorch": exported.difference,
            "random_inputs": exported.random,
            "real_inputs": exported.real,
        },
        "made_with": {"longshift": longshift.__version__, "torch": str(torch.__version__)},
    }
