"""The folder of a run: what is in it, and how it is written and read.

config.json        the RunConfig and the resolved hyper-parameters
environment.json   versions, hardware, commit
split.json         which files were used for what
metrics.jsonl      one line per evaluation: step, validation metrics, means of the logged terms
result.json        the outcome; present only when the run is finished
model.safetensors  the selected weights
network.safetensors  the frozen network below a head, where only a head was trained
model.json         how to use them: structure, preprocessing, classes, temperature (of a fit: accuracy at unseen sites)
averaged.safetensors  the selected averaged weights, where weights were averaged
predictions.npz    logits, features, labels and domains of each set, where they are kept
resume.pt          everything needed to resume; removed when the run is finished
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longshift.data import what_changed
from longshift.errors import LongshiftError
from longshift.io import FileIn, read_json, replacing, require_regular, write_json, write_text

if TYPE_CHECKING:  # reading results must not wait for torch
    import numpy.typing as npt

    from longshift.methods import Value
    from longshift.settings import Split
    from longshift.training.run_config import RunConfig

RUN_SCHEMA = 2


@dataclass(frozen=True)
class RunFolder:
    """Paths inside a run's folder."""

    path: Path

    config = FileIn("config.json")
    environment = FileIn("environment.json")
    split = FileIn("split.json")
    metrics = FileIn("metrics.jsonl")
    result = FileIn("result.json")
    model = FileIn("model.safetensors")
    description = FileIn("model.json")
    averaged = FileIn("averaged.safetensors")
    network = FileIn("network.safetensors")
    resume = FileIn("resume.pt")
    predictions = FileIn("predictions.npz")

    def finished(self) -> bool:
        """Whether the run has a result."""
        return self.result.exists()


def refuse_finished(folder: RunFolder) -> None:
    """Raise if the folder holds a finished run."""
    path = folder.path
    if folder.finished():
        raise LongshiftError(
            f"{path} holds a finished run. See it with `longshift evaluate {path}`, or train in another folder "
            "with --out FOLDER."
        )


def write_config(folder: RunFolder, config: RunConfig) -> None:
    """Write config.json; a folder that holds another run is refused."""
    value: dict[str, Any] = {
        "schema": RUN_SCHEMA,
        "fingerprint": config.fingerprint(),
        "run": config.model_dump(),
        "hparams": config.method_config().to_dict(),
        "style": style_values(config),
    }
    if folder.config.exists():
        found = _read_config(folder)
        if found.get("fingerprint") != value["fingerprint"]:
            changed = [k for k, v in value["run"].items() if found["run"].get(k) != v]
            listed = ", ".join(changed) or "its hparams, style, or the contents of its weights or vectors"
            if "data_version" in changed:
                listed += f": the data have changed, {what_changed(found['run']['data_version'], config.data_version)}"
            raise LongshiftError(
                f"{folder.path} holds another run (it differs in {listed}). Choose another --out, or remove the folder."
            )
        return
    write_json(folder.config, value)


def style_values(config: RunConfig) -> dict[str, Value] | None:
    """Every option of the style mixing of a run; None if it has none."""
    style = config.style_config()
    return style.to_dict() if style else None


def read_config(folder: RunFolder) -> RunConfig:
    """The run's configuration."""
    from longshift.training.run_config import parse_run_config

    if not folder.config.exists():
        raise LongshiftError(f"{folder.path} is not a run: it has no config.json")
    value = _read_config(folder)
    return parse_run_config(value["run"], str(folder.config))


def _read_config(folder: RunFolder) -> dict[str, Any]:
    value = read_json(folder.config)
    if not isinstance(value, dict) or value.get("schema") != RUN_SCHEMA or not isinstance(value.get("run"), dict):
        raise LongshiftError(
            f"{folder.config} is not the configuration of a run: expected schema {RUN_SCHEMA}. "
            f"Remove {folder.path} and train again with the flags of the run."
        )
    return value


def new_result(config: RunConfig, hparams: Mapping[str, Value], split: Split) -> dict[str, Any]:
    """The parts of a result that are known before anything is measured; the trainer adds the rest."""
    return {
        "schema": RUN_SCHEMA,
        "fingerprint": config.fingerprint(),
        "run": config.model_dump(),
        "hparams": dict(hparams),
        "style": style_values(config),
        "backbone": config.backbone_name,
        "split": {
            "fingerprint": split.fingerprint,
            "classes": list(split.classes),
            "sources": list(split.sources),
            "shots": list(split.shots),
            "counts": split.counts.tolist(),
        },
    }


def read_result(folder: RunFolder, fingerprint: str = "") -> dict[str, Any]:
    """The result of a finished run; if a fingerprint is given, it must be that run's."""
    value = read_json(folder.result)
    found = value if isinstance(value, dict) else {}
    if found.get("schema") != RUN_SCHEMA or fingerprint not in ("", found.get("fingerprint")):
        raise LongshiftError(
            f"{folder.result} is not the result of this run. Remove it and run the same command: only this run is made "
            "again."
        )
    return found


def write_predictions(folder: RunFolder, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write predictions.npz by rename."""
    import numpy as np

    with replacing(folder.predictions) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **dict[str, Any](arrays))


def read_predictions(path: Path) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a predictions.npz by name, such as "target_logits"; sets without samples have none."""
    import numpy as np

    try:
        require_regular(path)
        with np.load(path, allow_pickle=False) as found:
            return {name: found[name] for name in found.files}
    except Exception as error:  # zipfile, zlib and numpy raise nearly anything on damaged files
        raise LongshiftError(f"cannot read {path}: {error}. Remove it to continue without it.") from error


def write_metrics(folder: RunFolder, rows: list[dict[str, Any]]) -> None:
    """Write metrics.jsonl whole, so that a resumed run never repeats or loses a line."""
    write_text(folder.metrics, "".join(json.dumps(row) + "\n" for row in rows))


def read_metrics(folder: RunFolder) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl."""
    if not folder.metrics.exists():
        return []
    try:
        require_regular(folder.metrics)
        return [json.loads(line) for line in folder.metrics.read_text(encoding="utf-8").splitlines() if line]
    except (OSError, ValueError, RecursionError) as error:
        raise LongshiftError(
            f"{folder.metrics} is damaged: {error}. It is used only for curves: remove it to continue without it."
        ) from error
