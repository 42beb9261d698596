"""Short runs on the embedded digits, for tests that need a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from longshift.training.run_config import RunConfig, Runtime
from longshift.training.task import Task, make_task
from longshift.training.trainer import Trainer

CPU = Runtime(device="cpu")


def digits_config(**changes: Any) -> RunConfig:
    """ERM on a balanced split, 80 small steps: enough to be clearly better than chance on the sources."""
    base: dict[str, Any] = {
        "data": "digits", "setting": "Balanced", "target": "ink", "method": "erm", "steps": 80, "eval_every": 40,
        "hparams": {"batch_size": 16, "lr": 3e-3},
    }  # fmt: skip
    return RunConfig(**{**base, **changes})


def train(out: Path, task: Task | None = None, runtime: Runtime = CPU, **changes: Any) -> dict[str, Any]:
    """Train into a folder and return the result."""
    config = digits_config(**changes)
    return Trainer(config, make_task(config, known=task), out, runtime).run()
