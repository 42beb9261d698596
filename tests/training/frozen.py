"""A small network with weights, for runs that train a head on its features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from longshift.nn import make_backbone
from longshift.training.run_config import RunConfig, parse_run_config


def small_weights(folder: Path, seed: int = 0) -> Path:
    """A file of weights of small_conv, named after it."""
    folder.mkdir(parents=True, exist_ok=True)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        file = folder / "small_conv.safetensors"
        save_file(make_backbone("small_conv").module.state_dict(), file)
    return file


def head_config(file: Path, **changes: Any) -> RunConfig:
    """ERM on the digits: a head on the features of small_conv."""
    base: dict[str, Any] = {
        "data": "digits", "setting": "Balanced", "target": "ink", "method": "erm", "steps": 40, "eval_every": 20,
        "backbone": "small_conv", "weights": str(file), "trainable": "head", "hparams": {"batch_size": 16},
    }  # fmt: skip
    return parse_run_config({**base, **changes})
