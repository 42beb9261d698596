"""Saved weights (safetensors, no pickle) and the state from which an interrupted run resumes."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from longshift.errors import LongshiftError
from longshift.io import replacing, require_regular

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
    weights = _read_weights(path, expected)
    try:
        module.load_state_dict({k.removeprefix(prefix): v for k, v in weights.items() if k.startswith(prefix)})
    except RuntimeError as error:
        raise LongshiftError(f"{path} does not fit the run's network: {error}") from error


def check_weights(path: Path, expected: str) -> None:
    """Raise unless a file holds the weights with this hash, whole."""
    require_weights(path)
    _read_weights(path, expected)


def _read_weights(path: Path, named: str) -> dict[str, Tensor]:
    """The tensors of a file, which must match the hash in its header: a flipped bit would be a wrong number."""
    again = "Copy it again, or train the run again in another folder."
    try:
        require_regular(path)
        with safe_open(path, framework="pt") as file:
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
            expected = (file.metadata() or {}).get(DIGEST)
    except (SafetensorError, OSError, ValueError, RuntimeError) as error:
        raise LongshiftError(f"{path} is damaged: {error}. {again}") from error
    found = digest(weights)
    if expected is not None and expected != found:
        raise LongshiftError(f"{path} is damaged: its weights are not those that were saved. {again}")
    if named and named != found:
        raise LongshiftError(f"{path} has the weights of another model than the model.json next to it. {again}")
    return weights


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
