"""Small runs for the engine's tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from longshift.training.run_config import RunConfig, Runtime, parse_run_config
from longshift.training.task import Task, make_task
from longshift.training.trainer import Trainer

CPU = Runtime(device="cpu", precision="fp32")


def config(**values: Any) -> RunConfig:
    """Digits at half their size, a few steps, a small batch; `values` on top."""
    hparams = {"batch_size": 6, **values.pop("hparams", {})}
    base: dict[str, Any] = {
        "data": "digits", "image_size": 16, "target": "ink", "method": "erm", "steps": 6, "eval_every": 3,
    }  # fmt: skip
    return parse_run_config({**base, **values, "hparams": hparams})


def train(run: RunConfig, out: Path, task: Task | None = None, runtime: Runtime = CPU, **how: Any) -> dict[str, Any]:
    """Train it."""
    return Trainer(run, task or make_task(run), out, runtime).run(**how)
