"""model.json: what is needed to use a run's weights without its data, its starting weights or its code.

It holds plain values only. Together with model.safetensors it is a model: no pickle, nothing that runs when loaded.
It names the hash of the weights that it describes: those of another run are refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from longshift.data import VectorSource, read_vector_source
from longshift.errors import LongshiftError
from longshift.io import read_json, write_json
from longshift.methods import Method, key_mistakes
from longshift.nn import weights_header
from longshift.training.batches import Inputs
from longshift.training.checkpoint import save_weights
from longshift.training.run_config import RunConfig
from longshift.training.run_folder import RunFolder
from longshift.training.task import Task
from longshift.training.weight_selection import FinalWeights

SCHEMA = 1


@dataclass(frozen=True)
class ModelFile:
    """A model's structure, its inputs and its classes."""

    method: str
    predictor: Literal["network", "method"]  # what maps inputs to logits; "method" needs the method's own layers
    backbone: str
    pad_type: str
    freeze_bn: bool
    input_dim: int  # length of a vector; 0 for images
    size: int  # pixels; 0 for vectors
    mean: tuple[float, ...]  # of pixels on [0, 1], per channel
    std: tuple[float, ...]
    classes: tuple[str, ...]
    sources: tuple[str, ...]  # domains it was trained on
    counts: tuple[tuple[int, ...], ...]  # training samples, sources x classes (one row if they were pooled)
    steps: int
    hparams: dict[str, Any]
    temperature: float  # probabilities are softmax(logits / temperature)
    averaged_temperature: float  # the same for averaged.safetensors
    # The head on top of the backbone, whose weights are then in network.safetensors; "": no part is frozen.
    head: Literal["", "mlp", "linear"] = ""
    vector_source: VectorSource | None = None  # where its training vectors come from, if their file tells
    weights: str = ""  # SHA-256 of the tensors of model.safetensors; known at the end
    averaged_weights: str = ""  # of averaged.safetensors
    network_weights: str = ""  # of network.safetensors
    adapted: bool = False  # the last layer was refitted with labels of another site (`longshift adapt`)

    @property
    def vectors(self) -> bool:
        """Whether inputs are vectors and not images."""
        return self.input_dim > 0


def describe_model(config: RunConfig, task: Task, method: Method, inputs: Inputs) -> ModelFile:
    """The description of a run's model; its temperatures are known only at the end."""
    return ModelFile(
        method=config.method,
        predictor="network" if method.predictor() is method.network else "method",
        backbone=config.backbone_name,
        pad_type=weights_header(Path(config.weights)).pad_type if config.weights else "",
        freeze_bn=config.freeze_bn,
        input_dim=int(task.store.inputs.shape[1]) if config.vectors else 0,
        size=config.size,
        mean=tuple(inputs.mean.reshape(-1).tolist()),
        std=tuple(inputs.std.reshape(-1).tolist()),
        classes=task.split.classes,
        sources=task.split.sources,
        counts=method.problem.counts,
        steps=config.steps,
        hparams=method.config.to_dict(),
        temperature=1.0,
        averaged_temperature=1.0,
        head=config.head if config.frozen else "",
        vector_source=read_vector_source(config.data) if config.vectors else None,
    )


def save_model(
    folder: RunFolder,
    described: ModelFile,
    task: Task,
    weights: FinalWeights,
    method: Method,
    measured: Mapping[str, Any],
) -> None:
    """Write the selected weights (which the method has now), the averaged ones and model.json with temperatures.

    `measured` has the parts "selected" and "averaged" of the result, with the temperatures.
    """
    if task.network is not None:
        below = save_weights(folder.network, task.network.backbone.module.state_dict())
        described = replace(described, network_weights=below)
    described = replace(described, weights=save_weights(folder.model, weights.best.weights))
    averager = weights.averager
    if averager and averager.best:
        with averager.swapped(averager.best.weights):
            described = replace(described, averaged_weights=save_weights(folder.averaged, method.state_dict()))
    # Without finite outputs on every set there is none.
    selected, averaged = ((measured[part] or {}).get("calibrated", {}) for part in ("selected", "averaged"))
    described = replace(
        described,
        temperature=selected.get("temperature", 1.0),
        averaged_temperature=averaged.get("temperature", 1.0),
    )
    write_json(folder.description, {"schema": SCHEMA, **asdict(described)})


def read_model_file(path: Path) -> ModelFile:
    """Read model.json; a file that is not one is named with what is wrong."""
    try:
        value = read_json(path)
    except LongshiftError as error:
        raise LongshiftError(f"{error}. Copy the folder again, or train the run again in another folder.") from error
    schema = value.get("schema") if isinstance(value, dict) else None
    if schema != SCHEMA:
        raise LongshiftError(f"{path} is not a model description: expected schema {SCHEMA}, got {schema!r}")
    try:
        model = TypeAdapter(ModelFile).validate_python(value)
    except ValidationError as error:
        wrong = [text for _, text in key_mistakes(error, ())]
    else:
        wrong = _mistakes(model)
    if wrong:
        raise LongshiftError(f"{path} is damaged: {'; '.join(wrong)}")
    return model


def _mistakes(model: ModelFile) -> list[str]:
    """Values that no run writes."""
    scales = (*model.mean, *model.std, model.temperature, model.averaged_temperature)
    checks = {
        "expected the hash of its weights": len(model.weights) == 64,
        "expected two or more classes": len(model.classes) >= 2,
        "expected a size or a length of vectors": (model.size > 0) != (model.input_dim > 0),
        "expected a size of at most 4096 pixels": model.size <= 4096 and model.input_dim <= 2**24,
        "expected three means and three standard deviations": len(model.mean) == len(model.std) == 3,
        "expected finite numbers": all(math.isfinite(value) for value in scales),
        "expected positive standard deviations": all(value > 0 for value in model.std),
        "expected positive temperatures": min(model.temperature, model.averaged_temperature) > 0,
        "expected one count for each class": all(len(row) == len(model.classes) for row in model.counts),
    }
    return [text for text, good in checks.items() if not good]
