"""What a run keeps: weights (safetensors, no pickle), model.json, the state to resume from; the writer of its folder.

model.json is what is needed to use weights without the data, the starting weights or the code of the run. It holds
plain values only and names the hash of the weights that it describes: those of another run are refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import torch
from pydantic import Field, FiniteFloat, TypeAdapter, ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from longshift.data import PLAIN, Preprocessing, VectorSource, read_vector_source
from longshift.errors import LongshiftError
from longshift.io import read_json, replacing, require_regular, write_json
from longshift.methods import Method, key_mistakes
from longshift.nn import stated_padding
from longshift.settings import save_split
from longshift.training.device import describe_environment
from longshift.training.resolve_run import require_version
from longshift.training.run_folder import RunFolder, refuse_finished, write_config, write_metrics

if TYPE_CHECKING:
    from longshift.training.average import Averager, BestWeights
    from longshift.training.inputs import Inputs
    from longshift.training.run_config import RunConfig
    from longshift.training.task import Task

RESUME = "longshift-resume-1"  # in the first line of resume.pt
DIGEST = "sha256"  # key in the header of model.safetensors


def copy_weights(module: nn.Module) -> dict[str, Tensor]:
    """A detached copy of all parameters and buffers, on their device."""
    return {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}


def save_weights(path: Path, weights: dict[str, Tensor]) -> str:
    """Write model.safetensors by rename, with a hash of its tensors in the header; return the hash."""
    # Shared storage is refused by the format, and channels-last tensors must be laid out plainly.
    plain = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in weights.items()}
    # Both formats are put together in memory: on a full disk their own writers raise errors that don't say so.
    found = digest(plain)
    with replacing(path) as temporary:
        temporary.write_bytes(save(plain, {DIGEST: found}))
    return found


def digest(weights: Mapping[str, Tensor]) -> str:
    """SHA-256 over names, types, shapes and bytes of tensors on the CPU."""
    found = hashlib.sha256()
    for name in sorted(weights):
        tensor = weights[name]
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        found.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


def require_weights(path: Path) -> None:
    """Raise an error unless the path is an existing .safetensors file."""
    if path.suffix != ".safetensors":
        raise LongshiftError(f"{path} is not a .safetensors file; other formats can run code when loaded")
    if not path.exists():
        raise LongshiftError(f"no model file {path}; the run was made with --no-keep-model, or is not finished")


def load_weights(path: Path, module: nn.Module, prefix: str = "", expected: str = "") -> None:
    """Load model.safetensors into a module of the same shape; with `prefix`, only the weights below that name.

    `expected` is the hash of the weights that the model's description names.
    """
    require_weights(path)
    again = "Copy it again, or train the run again in another folder."
    try:
        require_regular(path)
        with safe_open(path, framework="pt") as file:
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
            own = (file.metadata() or {}).get(DIGEST)
    except (SafetensorError, OSError, ValueError, RuntimeError) as error:
        raise LongshiftError(f"{path} is damaged: {error}. {again}") from error
    found = digest(weights)
    if own not in (None, found):  # a flipped bit would be a wrong number
        raise LongshiftError(f"{path} is damaged: its weights are not those that were saved. {again}")
    if expected not in ("", found):
        raise LongshiftError(f"{path} has the weights of another model than the model.json next to it. {again}")
    try:
        module.load_state_dict({k.removeprefix(prefix): v for k, v in weights.items() if k.startswith(prefix)})
    except RuntimeError as error:
        raise LongshiftError(f"{path} does not fit the run's network: {error}") from error


def save_resume(path: Path, state: dict[str, Any]) -> None:
    """Write the resume state by rename, below a line with its hash: a kill leaves the previous one."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        buffer = io.BytesIO()
        torch.save(state, buffer)
        file.write(f"{RESUME} {hashlib.sha256(buffer.getbuffer()).hexdigest()}\n".encode())
        file.write(buffer.getbuffer())


class ResumeWriter:
    """Writes resume states in a thread while training continues; training waits only for the copy to the host.

    An error of a write is raised by the next call. A kill in between leaves the previous state.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="resume")
        self._writing: Future[None] | None = None

    def save(self, state: dict[str, Any]) -> None:
        """Start to write a copy of the state, once the previous one is written."""
        self.wait()
        self._writing = self._thread.submit(save_resume, self.path, _on_host(state))

    def wait(self) -> None:
        """Return when everything is written."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def close(self) -> None:
        """Return when everything is written; nothing can be saved afterwards."""
        self.wait()
        self._thread.shutdown()


def _on_host(value: Any) -> Any:
    """The same nest of dicts and lists, every tensor and array copied, tensors to the CPU."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, Tensor):
        return value.detach().cpu() if value.device.type != "cpu" else value.detach().clone()
    if isinstance(value, Mapping):
        return {key: _on_host(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_on_host(item) for item in value)
    return value


def load_resume(path: Path, device: torch.device) -> dict[str, Any]:
    """Read the resume state; only tensors and plain values are accepted."""
    try:
        require_regular(path)
        with path.open("rb") as file:
            head, payload = file.readline(100), file.read()
        # torch does not check what it reads: from a damaged file it may take whatever the memory held before.
        if head != f"{RESUME} {hashlib.sha256(payload).hexdigest()}\n".encode():
            raise ValueError("it is damaged: it does not have the checksum it was written with")
        state: dict[str, Any] = torch.load(io.BytesIO(payload), map_location=device, weights_only=True)
        if not isinstance(state, dict):
            raise TypeError(f"expected the state of a run, got a {type(state).__name__}")
    except Exception as error:
        raise damaged_resume(path, error) from error
    return state


def damaged_resume(path: Path, error: Exception) -> LongshiftError:
    """The error for a resume state that cannot be used."""
    why = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
    return LongshiftError(f"cannot resume from {path}: {why}\nRemove it to start the run again.")


SCHEMA = 1
Positive = Annotated[FiniteFloat, Field(gt=0)]


@dataclass(frozen=True)
class ModelFile:
    """A model's structure, its inputs and its classes."""

    method: str
    predictor: Literal["network", "method"]  # what maps inputs to logits; "method" needs the method's own layers
    backbone: str
    pad_type: str
    freeze_bn: bool
    input_dim: Annotated[int, Field(ge=0, le=2**24)]  # length of a vector; 0 for images
    size: Annotated[int, Field(ge=0, le=4096)]  # pixels; 0 for vectors
    mean: Annotated[tuple[FiniteFloat, ...], Field(min_length=3, max_length=3)]  # of pixels on [0, 1], per channel
    std: Annotated[tuple[Positive, ...], Field(min_length=3, max_length=3)]
    classes: Annotated[tuple[str, ...], Field(min_length=2)]
    sources: tuple[str, ...]  # domains it was trained on
    counts: tuple[tuple[int, ...], ...]  # training samples, sources x classes (one row if they were pooled)
    steps: int
    hparams: dict[str, Any]
    temperature: Positive  # probabilities are softmax(logits / temperature)
    averaged_temperature: Positive  # the same for averaged.safetensors
    # The head on top of the backbone, whose weights are then in network.safetensors; "": no part is frozen.
    head: Literal["", "mlp", "linear"] = ""
    preprocessing: Preprocessing = PLAIN
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
        pad_type=stated_padding(Path(config.weights)) if config.weights else "",
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
        preprocessing=task.network.backbone.preprocessing if task.network else PLAIN,
        vector_source=read_vector_source(config.data) if config.vectors else None,
    )


def save_model(
    folder: RunFolder,
    described: ModelFile,
    task: Task,
    best: BestWeights,
    averager: Averager | None,
    method: Method,
    measured: Mapping[str, Any],
) -> None:
    """Write the selected weights (which the method has now), the averaged ones and model.json with temperatures.

    `measured` has the parts "selected" and "averaged" of the result, with the temperatures.
    """
    if task.network is not None:
        below = save_weights(folder.network, task.network.backbone.module.state_dict())
        described = replace(described, network_weights=below)
    described = replace(described, weights=save_weights(folder.model, best.weights))
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
        wrong = "; ".join(text for _, text in key_mistakes(error, ()))
        raise LongshiftError(f"{path} is damaged: {wrong}") from error
    rows = all(len(row) == len(model.classes) for row in model.counts)
    if len(model.weights) != 64 or (model.size > 0) == (model.input_dim > 0) or not rows:
        raise LongshiftError(f"{path} is damaged: its weights, size, input_dim or counts are not those of a model")
    return model


class RunWriter:
    """The folder of one run that is being trained."""

    def __init__(self, path: Path, config: RunConfig, task: Task, device: torch.device) -> None:
        self.folder, self.config, self.task, self.device = RunFolder(path), config, task, device
        self._checkpoints = ResumeWriter(self.folder.resume)

    def open(self) -> dict[str, Any] | None:
        """Write what is known before training; return the state of the checkpoint if there is one to resume from.

        A folder with another run is refused.
        """
        folder = self.folder
        refuse_finished(folder)
        write_config(folder, self.config)
        state = load_resume(folder.resume, self.device) if folder.resume.exists() else None
        if state is not None:
            # A resumed run must see the files it started with: else validation images could end up in training.
            saved, own = {name: str(state.get(name)) for name in self._own()}, self._own()
            if saved["run"] != own["run"]:
                raise damaged_resume(folder.resume, ValueError(f"it belongs to another run ({saved['run'][:12]})"))
            what = f"the data of {folder.path} have changed since the run started"
            require_version(saved["data_version"], own["data_version"], what)
            if saved["split"] != own["split"]:
                raise LongshiftError(f"{what}: the files give another split. Restore them, or use another folder.")
        write_json(folder.environment, describe_environment(self.device))
        save_split(self.task.split, folder.split)
        return state

    def _own(self) -> dict[str, str]:
        split, store = self.task.split, self.task.store
        return {"run": self.config.fingerprint(), "split": split.fingerprint, "data_version": store.version}

    def save(self, rows: list[dict[str, Any]], state: dict[str, Any]) -> None:
        """Write the evaluations so far and start to write a checkpoint."""
        write_metrics(self.folder, rows)
        self._checkpoints.save({**self._own(), **state})

    def wait(self) -> None:
        """Return when the checkpoint is written."""
        self._checkpoints.wait()

    def finish(self, rows: list[dict[str, Any]], result: dict[str, Any]) -> dict[str, Any]:
        """Write the result, which is returned, and remove the checkpoint."""
        write_metrics(self.folder, rows)
        write_json(self.folder.result, result)
        with contextlib.suppress(LongshiftError):  # the run is finished: a checkpoint that failed is not needed
            self._checkpoints.close()
        self.folder.resume.unlink(missing_ok=True)
        return result
