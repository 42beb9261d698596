"""The folder of a run: what is in it, and how it is written and read.

config.json        the RunConfig and the resolved hyper-parameters
environment.json   versions, hardware, commit
split.json         which files were used for what
metrics.jsonl      one line per evaluation: step, validation metrics, means of the logged terms
result.json        the outcome; present only when the run is finished
model.safetensors  the selected weights
model.json         how to use them: structure, preprocessing, classes, temperature
averaged.safetensors  the selected averaged weights, where weights were averaged
resume.pt          everything needed to go on; removed when the run is finished
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longshift.errors import LongshiftError
from longshift.files import read_json, write_json, write_text

if TYPE_CHECKING:  # reading results must not wait for torch
    from longshift.engine.config import RunConfig

SCHEMA = 1


@dataclass(frozen=True)
class RunFolder:
    """Paths inside a run's folder."""

    path: Path

    @property
    def config(self) -> Path:
        """config.json."""
        return self.path / "config.json"

    @property
    def environment(self) -> Path:
        """environment.json."""
        return self.path / "environment.json"

    @property
    def split(self) -> Path:
        """split.json."""
        return self.path / "split.json"

    @property
    def metrics(self) -> Path:
        """metrics.jsonl."""
        return self.path / "metrics.jsonl"

    @property
    def result(self) -> Path:
        """result.json."""
        return self.path / "result.json"

    @property
    def model(self) -> Path:
        """model.safetensors."""
        return self.path / "model.safetensors"

    @property
    def description(self) -> Path:
        """model.json."""
        return self.path / "model.json"

    @property
    def averaged(self) -> Path:
        """averaged.safetensors."""
        return self.path / "averaged.safetensors"

    @property
    def resume(self) -> Path:
        """resume.pt."""
        return self.path / "resume.pt"

    @property
    def predictions(self) -> Path:
        """predictions.npz."""
        return self.path / "predictions.npz"

    def finished(self) -> bool:
        """Whether the run has a result."""
        return self.result.exists()


def write_config(folder: RunFolder, config: RunConfig) -> None:
    """Write config.json; a folder that holds another run is refused."""
    value: dict[str, Any] = {
        "schema": SCHEMA,
        "fingerprint": config.fingerprint(),
        "run": config.model_dump(),
        "hparams": config.method_config().to_dict(),
    }
    if folder.config.exists():
        found = read_json(folder.config)
        if found.get("fingerprint") != value["fingerprint"]:
            changed = [k for k, v in value["run"].items() if found.get("run", {}).get(k) != v]
            raise LongshiftError(
                f"{folder.path} holds another run (it differs in {', '.join(changed) or 'its hyper-parameters'}). "
                "Choose another --out, or remove the folder."
            )
        return
    write_json(folder.config, value)


def read_config(folder: RunFolder) -> RunConfig:
    """The run's configuration."""
    from longshift.engine.config import parse_run_config

    if not folder.config.exists():
        raise LongshiftError(f"{folder.path} is not a run: it has no config.json")
    value = read_json(folder.config)
    if value.get("schema") != SCHEMA:
        raise LongshiftError(f"{folder.config}: expected schema {SCHEMA}, found {value.get('schema')!r}")
    return parse_run_config(value["run"], str(folder.config))


def write_metrics(folder: RunFolder, rows: list[dict[str, Any]]) -> None:
    """Write metrics.jsonl whole, so that a resumed run never repeats or loses a line."""
    write_text(folder.metrics, "".join(json.dumps(row) + "\n" for row in rows))


def read_metrics(folder: RunFolder) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl."""
    if not folder.metrics.exists():
        return []
    return [json.loads(line) for line in folder.metrics.read_text(encoding="utf-8").splitlines() if line]
