"""Saved weights (safetensors, no pickle) and the state from which a broken-off run goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from longshift.errors import LongshiftError
from longshift.files import replacing


def copy_weights(module: nn.Module) -> dict[str, Tensor]:
    """A detached copy of all parameters and buffers, on their device."""
    return {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}


def save_weights(path: Path, weights: dict[str, Tensor]) -> None:
    """Write model.safetensors by rename."""
    # Shared storage is refused by the format, and channels-last tensors must be laid out plainly.
    plain = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in weights.items()}
    with replacing(path) as temporary:
        save_file(plain, temporary)


def require_weights(path: Path) -> None:
    """Raise where there is no .safetensors file."""
    if path.suffix != ".safetensors":
        raise LongshiftError(f"{path} is not a .safetensors file; other formats can run code when loaded")
    if not path.exists():
        raise LongshiftError(f"no model file {path}; the run was made with --no-model, or is not finished")


def load_weights(path: Path, module: nn.Module, prefix: str = "") -> None:
    """Load model.safetensors into a module of the same shape; with `prefix`, only the weights below that name."""
    require_weights(path)
    try:
        weights = load_file(path)
    except (SafetensorError, OSError) as error:
        raise LongshiftError(f"{path} is damaged: {error}") from error
    try:
        module.load_state_dict({k.removeprefix(prefix): v for k, v in weights.items() if k.startswith(prefix)})
    except RuntimeError as error:
        raise LongshiftError(f"{path} does not fit the run's network: {error}") from error


def save_resume(path: Path, state: dict[str, Any]) -> None:
    """Write the resume state by rename: a kill leaves the previous one."""
    with replacing(path) as temporary:
        torch.save(state, temporary)


def load_resume(path: Path, device: torch.device) -> dict[str, Any]:
    """Read the resume state; only tensors and plain values are accepted."""
    try:
        state: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
    except Exception as error:
        raise LongshiftError(f"cannot resume from {path}: {error}\nRemove it to start the run again.") from error
    return state
